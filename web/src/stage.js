// A run on the platter: the drawing, the strip of what the head does, and the controls of the playback.
import { Platter } from "./platter.js";
import { Strip, legend } from "./strip.js";
import { h, prefersStill, say } from "./dom.js";
import { bytes, shown, slowness } from "./format.js";
import { lastUpTo } from "./recording.js";

const SPEEDS = [1 / 2000, 1 / 500, 1 / 100, 1 / 20, 1 / 4, 1, 10];
// Of the strip, in wall-clock time: what passes in this number of seconds is visible; but no more virtual time than
// that.
const STRIP_SECONDS = 8;
const LONGEST_STRIP_NS = 1e9;
// While it plays, words and slider follow so often: who could read more? In ms.
const WORDS_MS = 100;
// With reduced motion the playback shows one phase after the other, each so long, in ms.
const PHASE_MS = 1200;
// A page that was in the background does not catch up.
const LONGEST_FRAME_MS = 100;
const SLIDER_STEPS = 10_000;

const DOING = {
  seek: (c) => `the arm moves to cylinder ${shown.count(c.cylinder)}`,
  rotate: () => "the head waits for the blocks to come round",
  transfer: (c) =>
    `${c.kind === 1 ? "writes" : "reads"} ${shown.count(c.count - c.free)} blocks ` +
    `from block ${shown.count(c.lbn + c.free)}`,
  free: (c) => `reads ${shown.count(c.free)} blocks for the background, from block ${shown.count(c.lbn)}`,
  idle: () => "the head does nothing",
};

export class Stage {
  // `onTime` is called when the instant shown has changed, `onRest` when the playback has come to rest.
  constructor({ speed = 1 / 100, onTime = () => {}, onRest = () => {} } = {}) {
    this.recording = null;
    this.t = 0;
    this.playing = false;
    this.onTime = onTime;
    this.onRest = onRest;
    this.frame = 0;
    this.told = 0;
    this.build(speed);
  }

  build(speed) {
    this.canvas = h("canvas", { class: "platter", role: "img", "aria-label": "Platter and arm; no run yet" });
    this.stripCanvas = h("canvas", { class: "strip", "aria-hidden": "true" });
    this.words = h("p", { class: "now", "aria-live": "polite" });
    this.platter = new Platter(this.canvas);
    this.strip = new Strip(this.stripCanvas);
    this.playButton = h("button", { type: "button", class: "play", click: () => this.toggle() }, "Play");
    const phase = (label, way) => h("button", { type: "button", click: () => this.phase(way) }, label);
    this.slider = h("input", {
      type: "range",
      min: 0,
      max: SLIDER_STEPS,
      value: 0,
      "aria-label": "Instant of the run",
    });
    this.slider.addEventListener("input", () => this.seek((this.slider.value / SLIDER_STEPS) * this.recording?.end));
    const option = (s, i) => h("option", { value: i, selected: s === speed }, slowness(s));
    this.speeds = h("select", { name: "speed", change: () => this.pace() }, SPEEDS.map(option));
    this.speed = speed;
    this.moments = h("span", { class: "moments" });
    const transport = h(
      "div",
      { class: "transport" },
      this.playButton,
      phase("Phase before", -1),
      phase("Next phase", 1),
      this.moments,
      h("label", {}, "Speed ", this.speeds),
    );
    this.element = h(
      "div",
      { class: "stage" },
      transport,
      this.canvas,
      this.words,
      this.stripCanvas,
      this.slider,
      legend(),
    );
    // Not at once: what is drawn may have a size of its own, and that would be seen again.
    this.resized = new ResizeObserver(() => requestAnimationFrame(() => this.draw()));
    this.resized.observe(this.canvas);
  }

  pace() {
    this.speed = SPEEDS[Number(this.speeds.value)];
    this.draw();
  }

  // Shows a run from an instant, at rest.
  show(recording, t = 0) {
    this.pause();
    this.recording = recording;
    this.seek(t);
  }

  // Offers instants of interest: buttons to the one before and to the next.
  offer(label, instants) {
    this.instants = instants;
    const go = (way) => {
      const here = lastUpTo(
        this.instants.map((t) => ({ t })),
        "t",
        this.t + (way > 0 ? 1 : -1),
      );
      const next = this.instants[way > 0 ? here + 1 : Math.max(0, here)];
      if (next !== undefined) {
        this.seek(next);
      }
    };
    const button = (text, way) => h("button", { type: "button", click: () => go(way) }, text);
    const both = instants.length > 1 ? [button(`${label} before`, -1), button(`Next ${label.toLowerCase()}`, 1)] : [];
    this.moments.replaceChildren(...both);
  }

  seek(t) {
    if (!this.recording) {
      return;
    }
    this.t = Math.min(Math.max(0, t || 0), this.recording.end);
    this.draw();
    this.onTime(this.t);
    if (!this.playing) {
      this.rest();
    }
  }

  // Says what is shown; while it moves, it is said only for the eyes.
  rest() {
    say(this.words, this.describe());
    this.canvas.setAttribute("aria-label", `Platter and arm. ${this.describe()}`);
    this.onRest(this.t);
  }

  describe() {
    if (this.t > this.recording.known && this.recording.known < this.recording.end) {
      return `${shown.ms3(this.t / 1e6)}: later than the last command that was recorded`;
    }
    const { doing, command } = this.recording.head(this.t);
    const waiting = this.recording.waiting(this.t).length;
    const queue = waiting > 1 ? `; ${waiting} requests wait or are served` : "";
    return `${shown.ms3(this.t / 1e6)}: ${DOING[doing](command)}${queue}`;
  }

  toggle() {
    if (this.playing) {
      this.pause();
    } else {
      this.play();
    }
  }

  play() {
    if (!this.recording || this.playing) {
      return;
    }
    if (this.t >= this.recording.end) {
      this.t = 0;
    }
    this.playing = true;
    say(this.playButton, "Pause");
    this.words.setAttribute("aria-live", "off");
    this.last = null;
    this.frame = requestAnimationFrame((now) => this.tick(now));
  }

  pause() {
    cancelAnimationFrame(this.frame);
    this.words.setAttribute("aria-live", "polite");
    say(this.playButton, "Play");
    if (this.playing) {
      this.playing = false;
      this.rest();
    }
  }

  tick(now) {
    const elapsed = this.last === null ? 0 : Math.min(now - this.last, LONGEST_FRAME_MS);
    if (prefersStill()) {
      if (this.last === null || now - this.last >= PHASE_MS) {
        this.last = now;
        this.told = 0;
        this.phase(1);
      }
    } else {
      this.last = now;
      this.t = Math.min(this.t + elapsed * 1e6 * this.speed, this.recording.end);
      this.draw();
      this.onTime(this.t);
    }
    if (this.t >= this.recording.end) {
      this.pause();
    } else {
      this.frame = requestAnimationFrame((next) => this.tick(next));
    }
  }

  // Goes to the beginning of the next phase, or of the one before. An instant within the phase is shown, so that it is
  // clear which one it is.
  phase(way) {
    if (!this.recording) {
      return;
    }
    const { index } = this.recording.head(this.t);
    const near = this.recording.commands.slice(Math.max(0, index - 2), index + 3);
    const instants = near.flatMap((one) => this.recording.phases(one)).map(({ from, to }) => (from + to) / 2);
    const later = instants.find((t) => t > this.t + 1);
    const earlier = instants.findLast((t) => t < this.t - 1);
    this.seek(way > 0 ? (later ?? this.recording.end) : (earlier ?? 0));
  }

  draw() {
    this.platter.draw(this.recording, this.t);
    this.strip.draw(this.recording, this.t, Math.min(STRIP_SECONDS * 1e9 * this.speed, LONGEST_STRIP_NS));
    if (this.recording && (!this.playing || performance.now() - this.told > WORDS_MS)) {
      this.told = performance.now();
      if (this.playing) {
        say(this.words, this.describe());
      }
      this.slider.value = this.recording.end > 0 ? (this.t / this.recording.end) * SLIDER_STEPS : 0;
      this.slider.setAttribute("aria-valuetext", shown.ms(this.t / 1e6));
    }
  }

  close() {
    this.pause();
    this.resized.disconnect();
  }
}

// What a gap held, in words.
export function gapInWords(gap, drive) {
  const size = bytes(gap.sectors * drive.sector_bytes);
  const legs = gap.legs.length === 1 ? "one read" : `${gap.legs.length} reads`;
  return `between ${shown.ms(gap.from / 1e6)} and ${shown.ms(gap.to / 1e6)}: ${size} in ${legs}`;
}
