// What the head does over time: a strip that moves under a mark, and bars of shares.
import { NAMES, colours, fitted, h } from "./dom.js";
import { lastUpTo } from "./recording.js";
import { shown } from "./format.js";

// Of the strip's width, the part before the mark.
const PAST = 0.5;

export class Strip {
  constructor(canvas) {
    this.canvas = canvas;
  }

  // Draws `span` nanoseconds around an instant.
  draw(recording, t, span) {
    const { context, width, height } = fitted(this.canvas);
    const paint = colours();
    context.clearRect(0, 0, width, height);
    if (!recording) {
      return;
    }
    const begin = t - span * PAST;
    const x = (at) => ((at - begin) / span) * width;
    const [top, bottom] = [6, height - 18];
    context.fillStyle = paint.idle;
    const known = Math.min(width, x(recording.known));
    context.fillRect(Math.max(0, x(0)), top, Math.max(0, known - Math.max(0, x(0))), bottom - top);
    const first = Math.max(0, lastUpTo(recording.commands, "end", begin));
    // Each kind of phase at once: a change of the colour costs more than a rectangle.
    for (const doing of NAMES) {
      context.fillStyle = paint[doing];
      for (let i = first; i < recording.commands.length && recording.commands[i].start < begin + span; i += 1) {
        const phase = recording.phase(recording.commands[i], doing);
        if (phase.to > phase.from) {
          context.fillRect(x(phase.from), top, Math.max(0.5, x(phase.to) - x(phase.from)), bottom - top);
        }
      }
    }
    context.fillStyle = paint.ink;
    context.fillRect(width * PAST - 1, 0, 2, bottom + 4);
    this.scale(context, paint, span, begin, width, height, x);
  }

  // Marks at round times, about five of them.
  scale(context, paint, span, begin, width, height, x) {
    const rough = span / 5;
    const ten = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * ten).find((n) => n >= rough);
    context.fillStyle = paint.faint;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    for (let at = Math.max(0, Math.ceil(begin / step) * step); at <= begin + span; at += step) {
      const label = `${Number((at / 1e6).toPrecision(10))} ms`;
      context.fillRect(x(at), height - 18, 1, 4);
      if (x(at) > 22 && x(at) < width - 22) {
        context.fillText(label, x(at), height - 3);
      }
    }
  }
}

export const MEANING = {
  seek: "seek: the arm moves",
  rotate: "rotation: the head waits for the blocks",
  transfer: "transfer: the request's blocks pass",
  free: "free: blocks of the background pass",
  idle: "idle",
};

// The key to the colours.
export function legend(names = NAMES) {
  const item = (name) => h("li", {}, h("span", { class: `swatch ${name}` }), MEANING[name]);
  return h("ul", { class: "legend" }, names.map(item));
}

// A bar of the shares of the head time. Each part has its share as text, so colours do not say it alone.
export function bar(label, shares) {
  const text = NAMES.map((name) => `${name} ${shown.percent(shares[name])}`).join(", ");
  const part = (name) => {
    const share = shares[name] ?? 0;
    return h("span", {
      class: `part ${name}`,
      style: `flex-basis: ${100 * share}%`,
      title: `${name} ${shown.percent(share)}`,
    });
  };
  return h(
    "div",
    { class: "bar-row" },
    h("span", { class: "bar-label" }, label),
    h("span", { class: "bar", role: "img", "aria-label": `${label}: ${text}` }, NAMES.map(part)),
  );
}
