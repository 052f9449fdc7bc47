// Figures as people read them. A figure that there is not is a dash.

const NONE = "–";

function fixed(value, digits) {
  return value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// Three significant digits or so.
function rounded(value) {
  const size = Math.abs(value);
  return fixed(value, size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

function given(value, format) {
  return value === null || value === undefined || Number.isNaN(value) ? NONE : format(value);
}

export const shown = {
  count: (value) => given(value, (v) => fixed(v, 0)),
  number: (value) => given(value, rounded),
  plain: (value) => given(value, (v) => fixed(v, 2)),
  ms: (value) => given(value, (v) => `${fixed(v, 2)} ms`),
  ms3: (value) => given(value, (v) => `${fixed(v, 3)} ms`),
  percent: (value) => given(value, (v) => `${fixed(100 * v, 1)}%`),
  rate: (value) => given(value, (v) => `${rounded(v)}/s`),
  megabytes: (value) => given(value, (v) => `${fixed(v, 2)} MB/s`),
  seconds: (value) => given(value, duration),
  bytes: (value) => given(value, bytes),
};

// A duration in seconds.
export function duration(seconds) {
  const units = [
    ["days", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  const [unit, size] = units.find(([, size]) => seconds >= 2 * size) ?? units[3];
  return `${rounded(seconds / size)} ${unit}`;
}

export function bytes(count) {
  const units = [
    ["TB", 1e12],
    ["GB", 1e9],
    ["MB", 1e6],
    ["KB", 1e3],
    ["B", 1],
  ];
  const [unit, size] = units.find(([, size]) => count >= size) ?? units[4];
  return `${rounded(count / size)} ${unit}`;
}

// A speed of the playback in words.
export function slowness(speed) {
  if (speed === 1) {
    return "real time";
  }
  return speed > 1 ? `${fixed(speed, 0)} times faster` : `${fixed(1 / speed, 0)} times slower`;
}
