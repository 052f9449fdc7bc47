// A scenario's text, as `headtime simulate` reads it, from settings.

// Strings of TOML have the escapes of JSON.
function value(of) {
  return typeof of === "string" ? JSON.stringify(of) : String(of);
}

function lines(settings) {
  const kept = Object.entries(settings).filter(([, of]) => of !== "" && of !== null && of !== undefined);
  return kept.map(([key, of]) => `${key} = ${value(of)}\n`).join("");
}

// `tasks` are tables of tasks.
export function scenario(settings, tasks = []) {
  return lines(settings) + tasks.map((task) => `\n[[task]]\n${lines(task)}`).join("");
}
