// The laboratory: every setting of a run, and a trace of the visitor's own.
import { RESPONSE, aRun, cacheChoice, driveChoice, tableOf } from "./steps.js";
import { Refusal } from "./engine.js";
import { shown } from "./format.js";

const names = (key) => (catalogue) => catalogue[key];
const BACKGROUNDS = ["none", "scan", "scan:64", "rescan"];

export const LAB = {
  key: "lab",
  name: "Laboratory",
  title: "The laboratory",
  speed: 1 / 20,
  curves: true,
  map: true,
  manual: true,
  text: () => [
    "Everything that you have seen, with settings of your own. The second row is the same run without background " +
      "work, admission policy and with requests in order of arrival. The address keeps the settings.",
    "A trace is a recording of requests: it is read in this page and sent nowhere.",
  ],
  controls: [
    driveChoice,
    { key: "workload", label: "Workload", kind: "text", default: "oltp", options: names("workloads") },
    { key: "order", label: "Order", kind: "select", default: "sptf", options: names("orders") },
    { key: "fill", label: "Fill", kind: "select", default: "headtime", options: names("fills") },
    { key: "background", label: "Background", kind: "select", default: "scan", options: () => BACKGROUNDS },
    {
      key: "admit",
      label: "Admission",
      kind: "select",
      default: "none",
      options: (c) => c.admits.filter((a) => a !== "das:POLICY"),
    },
    cacheChoice,
    { key: "noise", label: "Noise", kind: "select", default: "profile", options: () => ["profile", "off", "measured"] },
    { key: "seconds", label: "Virtual seconds", kind: "number", default: "30", min: "0.1", max: "3600" },
    { key: "seed", label: "Seed", kind: "number", default: "1", min: "0" },
    {
      key: "format",
      label: "Format of the trace",
      kind: "select",
      default: "plain-csv",
      options: names("trace_formats"),
    },
    { key: "beyond", label: "Beyond the drive", kind: "select", default: "wrap", options: () => ["refuse", "wrap"] },
    { key: "trace", label: "A trace of yours (plain or compressed)", kind: "file" },
  ],
  runs: (values, file) => {
    const { disk, workload, order, fill, background, admit, cache, noise, seconds, seed, format, beyond } = values;
    if (values.trace && !file) {
      throw new Refusal(`The address has only the name of the trace ${values.trace}: choose the file again.`);
    }
    const source = file ? { trace: file.name, trace_format: format, beyond } : { workload };
    const numbers = { seconds: Number(seconds), seed: Number(seed) };
    const limits = { usesFile: Boolean(file), commands: 60_000 };
    const settings = { disk, ...source, order, fill, background, admit, write_cache: cache, noise, ...numbers };
    const plain = { disk, ...source, order: "fcfs", noise, ...numbers };
    return [
      aRun("yours", "your settings", settings, { main: true, ...limits }),
      aRun("plain", "in order of arrival, nothing else", plain, limits),
    ];
  },
  table: (results, done) => {
    const all = tableOf(
      "Your run",
      [
        ...RESPONSE,
        ["MB/s", "foreground.mb_s", shown.plain],
        ["background, MB/s", "freeblock.mb_s", shown.plain],
        ["read", "freeblock.scanned_fraction", shown.percent],
      ],
      results,
      done,
      "yours",
    );
    const refused = results.yours?.refused_lines ?? [];
    const beyond =
      refused.length > 0 ? ` Requests beyond the drive were left out; the first lines: ${refused.join(", ")}.` : "";
    return { ...all, note: all.note + beyond };
  },
  summary: ({ yours }) => {
    const { foreground, freeblock } = yours.result;
    return (
      `${shown.count(foreground.requests)} requests, mean response ${shown.ms(foreground.response_ms.mean)}; ` +
      `the background got ${shown.megabytes(freeblock.mb_s)}.`
    );
  },
};
