// A step of the story, or the laboratory: text, settings, a run on the platter, figures. What differs is in its
// definition (steps.js, lab.js).
import { Recording } from "./recording.js";
import { Stage } from "./stage.js";
import { bar } from "./strip.js";
import { drawCurves, drawMap } from "./map.js";
import { h, say } from "./dom.js";
import { duration, shown } from "./format.js";
import { Refusal } from "./engine.js";

// Requests whose commands are recorded, unless a step says otherwise, and intervals and cells of a map.
const COMMANDS = 20_000;
const SLICES = 120;
const CELLS = 1_024;

export class View {
  constructor(definition, app) {
    this.definition = definition;
    this.app = app;
    this.values = {};
    this.planned = [];
    this.results = {};
    this.stop = new AbortController();
    this.file = null;
  }

  get defaults() {
    return Object.fromEntries(this.definition.controls.map((c) => [c.key, c.default ?? ""]));
  }

  // Builds the view with the values of an address, and begins its runs.
  open(values) {
    this.values = { ...this.defaults, ...values };
    const { definition } = this;
    this.status = h("p", { class: "status", role: "status" });
    this.form = h("form", { class: "settings", submit: (e) => this.submit(e) });
    this.form.append(...definition.controls.map((control) => this.control(control)));
    if (definition.manual) {
      this.form.append(h("button", { type: "submit", class: "run" }, "Run"));
    }
    this.stage = new Stage({
      speed: definition.speed,
      onTime: (t) => this.timed(t),
      onRest: (t) => this.rested(t),
    });
    this.figures = h("div", { class: "figures" });
    this.curves = h("canvas", { class: "curves", role: "img" });
    this.map = h("canvas", { class: "map", role: "img" });
    this.progress = h("p", { class: "progress" });
    this.command = h("pre", { tabindex: 0 });
    this.element = h(
      "section",
      { class: "view", "aria-labelledby": "title" },
      h("h2", { id: "title", tabindex: -1 }, definition.title),
      h(
        "div",
        { class: "text" },
        definition.text().map((text) => h("p", {}, text)),
      ),
      this.form,
      this.status,
      h(
        "div",
        { class: "columns" },
        this.stage.element,
        h(
          "div",
          { class: "results" },
          this.figures,
          definition.curves ? h("h3", {}, "Response times: share of requests that take no longer") : null,
          definition.curves ? this.curves : null,
          definition.map ? h("h3", {}, "What the background has read, from the first block to the last") : null,
          definition.map ? this.map : null,
          definition.map ? this.progress : null,
          h("details", {}, h("summary", {}, "The same run on the command line"), this.command),
        ),
      ),
    );
    // For tests and for the curious: each run's scenario and result.
    this.element.runs = () =>
      Object.fromEntries(
        this.planned.map(({ id, text }) => [id, { scenario: text, result: this.results[id]?.result }]),
      );
    this.run();
    return this.element;
  }

  close() {
    this.stop.abort();
    this.stage.close();
  }

  // A setting, with its label.
  control(control) {
    const { key, label, kind } = control;
    const changed = (value) => this.change(key, value);
    if (kind === "again") {
      const next = () => changed(String(Number(this.values[key]) + 1));
      return h("button", { type: "button", name: key, click: next }, label);
    }
    if (kind === "select") {
      const option = ([value, text]) => h("option", { value, selected: value === this.values[key] }, text);
      const options = control.options(this.app.catalogue).map((o) => (Array.isArray(o) ? o : [o, o]));
      const select = h("select", { name: key, change: (e) => changed(e.target.value) }, options.map(option));
      return h("label", {}, h("span", {}, label), select);
    }
    if (kind === "file") {
      const input = h("input", { type: "file", name: key, change: (e) => this.take(e.target.files[0] ?? null) });
      return h("label", { class: "wide" }, h("span", {}, label), input);
    }
    const list = control.options ? `list-${key}` : null;
    const input = h("input", {
      type: kind === "number" ? "number" : "text",
      name: key,
      value: this.values[key],
      list,
      min: control.min,
      max: control.max,
      step: "any",
      inputmode: kind === "number" ? "decimal" : null,
      autocomplete: "off",
      spellcheck: "false",
      change: (e) => changed(e.target.value),
    });
    const options = control.options?.(this.app.catalogue).map((value) => h("option", { value }));
    return h("label", {}, h("span", {}, label), input, options ? h("datalist", { id: list }, options) : null);
  }

  change(key, value) {
    this.values[key] = value;
    delete this.values.t;
    this.app.moved(this);
    if (!this.definition.manual) {
      this.run();
    }
  }

  submit(event) {
    event.preventDefault();
    for (const input of this.form.querySelectorAll("input[name]:not([type=file])")) {
      this.values[input.name] = input.value;
    }
    this.app.moved(this);
    this.run();
  }

  // A trace of the visitor's; it is read here and goes nowhere.
  async take(file) {
    this.file = file && { name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) };
    this.values.trace = file?.name ?? "";
    this.app.moved(this);
  }

  // Runs what the settings say; what runs already is given up.
  async run() {
    this.stop.abort();
    this.stop = new AbortController();
    const { signal } = this.stop;
    this.element?.setAttribute("aria-busy", "true");
    document.body.dataset.ready = "";
    this.results = {};
    this.status.classList.remove("error");
    say(this.status, "Simulating …");
    try {
      const runs = this.definition.runs(this.values, this.file);
      this.planned = runs;
      const main = runs.find((run) => run.main) ?? runs[0];
      say(
        this.command,
        runs
          .map((run) => `${run.text}\n`)
          .join(`\n# another run: ${"-".repeat(20)}\n\n`)
          .trim(),
      );
      this.drive = await this.app.drive(main.disk);
      // The run on the platter comes first, so that there is something to see.
      for (const run of [main, ...runs.filter((other) => other !== main)]) {
        this.results[run.id] = await this.simulate(run, run === main, signal);
        if (signal.aborted) {
          return;
        }
        this.show(runs);
      }
      say(this.status, this.definition.summary(this.results, this));
      this.element?.setAttribute("aria-busy", "false");
      document.body.dataset.ready = "yes";
    } catch (failure) {
      if (!signal.aborted) {
        this.fail(failure);
      }
    }
  }

  fail(failure) {
    this.status.classList.add("error");
    say(this.status, failure instanceof Refusal ? failure.message : `This page has a fault: ${failure.message}`);
    this.figures.replaceChildren();
    this.element.setAttribute("aria-busy", "false");
    document.body.dataset.ready = "error";
  }

  async simulate(run, isMain, signal) {
    const request = { do: "simulate", scenario: run.text };
    const recording = new Recording(this.drive);
    if (isMain) {
      const sliceMs = Math.max(1, Math.ceil((1000 * (run.seconds ?? 60)) / SLICES));
      Object.assign(request, { commands: run.commands ?? COMMANDS, slice_ms: sliceMs, cells: CELLS });
      this.recording = recording;
    }
    const files = this.file && run.usesFile ? { [this.file.name]: this.file.bytes } : {};
    const onLine = (line) => {
      if (isMain) {
        recording.take(line);
        if (line.slice && !signal.aborted) {
          this.slice(line.slice);
        }
      }
    };
    const last = await this.app.engine.run(request, { files, onLine, signal });
    if (isMain) {
      const { all, first } = this.definition.instants?.(recording, this) ?? { all: [], first: 0 };
      this.stage.show(recording, this.values.t === undefined ? first : Number(this.values.t) * 1e6);
      this.stage.offer(this.definition.instantLabel ?? "", all);
    }
    return last;
  }

  // Shows figures and bars of the runs that are done.
  show(runs) {
    const done = runs.filter((run) => this.results[run.id]);
    const bars = done.map((run) => bar(run.label, this.results[run.id].result.head_time));
    const table = this.definition.table(this.results, done, this);
    this.figures.replaceChildren(...(table ? tables(table) : []), h("h3", {}, "Time of the head"), ...bars);
    const curves = done.map((run) => ({ name: run.label, points: this.results[run.id].distribution }));
    this.drawn = curves;
    if (this.definition.curves) {
      const solid = curves.map(({ name }, i) => `${name} (${i === 0 ? "solid" : "dashed"})`).join(", ");
      this.curves.setAttribute("aria-label", `Distributions of response times: ${solid}; figures are in the table`);
    }
    this.redraw();
  }

  // Shows the figures so far.
  slice(slice) {
    this.shown = slice;
    if (this.definition.map) {
      const sectors = this.drive.capacity_sectors;
      const text =
        `After ${duration(slice.t / 1e9)}: ${shown.count(slice.requests)} requests, mean response ` +
        `${shown.ms(slice.mean_ms)}, 95% within ${shown.ms(slice.p95_ms)}; ` +
        `${shown.percent(slice.scanned_sectors / sectors)} of the drive read in the background`;
      say(this.progress, text);
      this.map.setAttribute("aria-label", `Map of what was read. ${text}`);
      drawMap(this.map, slice.cells);
    }
  }

  timed(t) {
    const slice = this.recording?.slice(t);
    if (slice && slice !== this.shown) {
      this.slice(slice);
    }
    this.definition.timed?.(t, this);
  }

  rested(t) {
    // The instant belongs to the address only if the visitor chose it.
    if (document.body.dataset.ready === "yes") {
      this.values.t = (t / 1e6).toFixed(3);
      this.app.moved(this);
    }
  }

  redraw() {
    this.stage.draw();
    if (this.definition.curves && this.drawn) {
      drawCurves(this.curves, this.drawn);
    }
    if (this.definition.map && this.shown) {
      drawMap(this.map, this.shown.cells);
    }
  }
}

// Tables of figures: `rows` have a label and cells; a cell has what is shown and where in a result it is from.
function tables(all) {
  return [all].flat().map(({ caption, columns, rows, note }) => {
    const cell = ({ text, run, path, value }) => {
      return h("td", { "data-run": run, "data-path": path, "data-value": value }, text);
    };
    const row = ({ label, cells, chosen }) =>
      h("tr", { class: chosen ? "chosen" : null }, h("th", { scope: "row" }, label), cells.map(cell));
    const head = h(
      "tr",
      {},
      ["", ...columns].map((name) => h("th", { scope: "col" }, name)),
    );
    const table = h("table", {}, h("caption", {}, caption), h("thead", {}, head), h("tbody", {}, rows.map(row)));
    return h(
      "div",
      { class: "scroll", tabindex: 0, role: "group", "aria-label": caption },
      table,
      note ? h("p", {}, note) : null,
    );
  });
}

// A cell of a run's result: the figure at a path such as `foreground.per_second`.
export function figure(results, run, path, format) {
  const value = path.split(".").reduce((of, key) => of?.[key], results[run.id].result);
  return { text: format(value), run: run.id, path, value: value ?? "" };
}
