// Elements of the page.

// Creates an element. `attributes` with a function are listeners; `false` and `null` leave an attribute out.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name, value);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// Sets an element's text, but only if it differs: screen readers read what is replaced.
export function say(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

// The colours of the page, which follow its style and the visitor's preference.
export const NAMES = ["seek", "rotate", "transfer", "free", "idle"];
const OTHERS = ["ink", "faint", "platter", "platter-line", "arm", "paper", "waiting"];
let known = null;

export function colours() {
  if (!known) {
    const style = getComputedStyle(document.documentElement);
    known = Object.fromEntries([...NAMES, ...OTHERS].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }
  return known;
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const still = matchMedia("(prefers-reduced-motion: reduce)");

// Calls `redraw` when the visitor's preferences change.
export function onPreferences(redraw) {
  dark.addEventListener("change", () => {
    known = null;
    redraw();
  });
  still.addEventListener("change", redraw);
}

export function prefersStill() {
  return still.matches;
}

// Sizes of canvases, which are looked up once: asking for them in each frame would make the browser lay out the page.
const sizes = new WeakMap();
const observer = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    sizes.set(target, contentRect);
  }
});

// Fits a canvas to its place and the screen's pixels; returns its context, and its size in CSS pixels.
export function fitted(canvas) {
  if (!sizes.has(canvas)) {
    sizes.set(canvas, canvas.getBoundingClientRect());
    observer.observe(canvas);
  }
  const box = sizes.get(canvas);
  const scale = Math.min(window.devicePixelRatio || 1, 2);
  const [width, height] = [Math.round(box.width * scale), Math.round(box.height * scale)];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return { context, width: box.width, height: box.height, scale };
}
