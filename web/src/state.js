// The state of the page in its address: which step, and what differs from the step's defaults. So every state can be
// kept as a link, and the browser's buttons go back to it.

// Returns the state that an address has: the step's name and the values that are given.
export function read(hash) {
  const values = Object.fromEntries(new URLSearchParams(hash.replace(/^#/, "")));
  const { step = "1", ...rest } = values;
  return { step, values: rest };
}

// Returns the address of a state. Values that are the defaults are left out.
export function written(step, values, defaults) {
  const search = new URLSearchParams({ step });
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined && value !== null && String(value) !== String(defaults[key] ?? "")) {
      search.set(key, value);
    }
  }
  return `#${search}`;
}
