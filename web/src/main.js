// The page: which step is shown, and how one goes from one to another.
import { Engine } from "./engine.js";
import { LAB } from "./lab.js";
import { STEPS } from "./steps.js";
import { View } from "./view.js";
import { read, written } from "./state.js";
import { h, onPreferences } from "./dom.js";

const PAGES = [...STEPS, LAB];

class App {
  constructor() {
    this.engine = new Engine(WORKER_SOURCE, PROGRAM);
    this.drives = new Map();
    this.view = null;
  }

  async start() {
    this.content = document.getElementById("content");
    this.steps = document.getElementById("steps");
    this.catalogue = await this.engine.run({ do: "catalogue" });
    this.steps.append(
      ...PAGES.map(({ key, name }, i) =>
        h("li", {}, h("a", { href: `#step=${key}`, "data-step": key }, i < STEPS.length ? `${i + 1}. ${name}` : name)),
      ),
    );
    addEventListener("hashchange", () => this.show());
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("resize", () => this.view?.redraw());
    onPreferences(() => this.view?.redraw());
    this.show();
  }

  // A drive's description, which is asked for once.
  async drive(name) {
    if (!this.drives.has(name)) {
      this.drives.set(name, await this.engine.run({ do: "drive", disk: name }));
    }
    return this.drives.get(name);
  }

  // Shows what the address says.
  show(hash = location.hash) {
    const { step, values } = read(hash);
    const definition = PAGES.find((page) => page.key === step) ?? PAGES[0];
    const first = this.view === null;
    this.view?.close();
    this.view = new View(definition, this);
    this.content.replaceChildren(this.view.open(values), this.neighbours(definition));
    for (const link of this.steps.querySelectorAll("a")) {
      const here = link.dataset.step === definition.key;
      link.toggleAttribute("aria-current", here);
      if (here) {
        link.setAttribute("aria-current", "step");
      }
    }
    document.title = `${definition.title} – headtime`;
    if (!first) {
      // Who cannot see the page learns where it is now.
      document.getElementById("title").focus({ preventScroll: true });
      scrollTo(0, 0);
    }
  }

  neighbours(definition) {
    const at = PAGES.indexOf(definition);
    const link = (page, text) => (page ? h("a", { href: `#step=${page.key}` }, text(page.name)) : h("span"));
    return h(
      "nav",
      { class: "neighbours", "aria-label": "Step before and next step" },
      link(PAGES[at - 1], (name) => `← ${name}`),
      link(PAGES[at + 1], (name) => `${name} →`),
    );
  }

  // A setting or the instant has changed: the address follows, without a step in the browser's history for each.
  moved(view) {
    if (view !== this.view) {
      return;
    }
    history.replaceState(null, "", written(view.definition.key, view.values, view.defaults));
  }

  // Arrow keys go from step to step, except where they have a meaning.
  key(event) {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const taken = event.target.closest?.("input, select, textarea, pre, .scroll");
    if (!way || taken || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) {
      return;
    }
    const next = PAGES[PAGES.indexOf(this.view?.definition) + way];
    if (next) {
      event.preventDefault();
      location.hash = `#step=${next.key}`;
    }
  }
}

const app = new App();
app.start().catch((failure) => {
  document
    .getElementById("content")
    .replaceChildren(
      h("p", { class: "status error", role: "alert" }, `This browser cannot run the page: ${failure.message}`),
    );
  document.body.dataset.ready = "error";
});
