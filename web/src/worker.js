// The worker in which the simulator runs, so that the page stays responsive. The page sends it the program, packed or
// as it was unpacked by the worker before, and then one request at a time. It sends back lines as they are written.
import { unpack } from "./program.js";
import { runWasi } from "./wasi.js";

let simulator = null;

function serve({ number, request, files }) {
  let rest = "";
  const onText = (text) => {
    const end = text.lastIndexOf("\n");
    if (end < 0) {
      rest += text;
      return;
    }
    postMessage({ number, text: rest + text.slice(0, end) });
    rest = text.slice(end + 1);
  };
  try {
    runWasi(simulator, new TextEncoder().encode(JSON.stringify(request)), files, onText);
    postMessage({ number, done: true });
  } catch (failure) {
    postMessage({ number, done: true, failed: failure.message });
  }
}

onmessage = ({ data }) => {
  if (data.packed) {
    const program = unpack(data.packed);
    simulator = new WebAssembly.Module(program);
    postMessage({ program });
  } else if (data.program) {
    simulator = new WebAssembly.Module(data.program);
  } else {
    serve(data);
  }
};
