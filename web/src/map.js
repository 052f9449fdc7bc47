// A map of what background work has read, and the distribution of response times.
import { colours, fitted } from "./dom.js";

const COLUMNS = 64;

// Draws the cells of a map: one digit each, 0 to f, from the first block of the drive to the last.
export function drawMap(canvas, cells) {
  const { context, width, height } = fitted(canvas);
  const paint = colours();
  context.clearRect(0, 0, width, height);
  if (!cells) {
    return;
  }
  const rows = Math.ceil(cells.length / COLUMNS);
  const [w, tall] = [width / COLUMNS, height / rows];
  for (let i = 0; i < cells.length; i += 1) {
    const level = parseInt(cells[i], 16) / 15;
    const [x, y] = [(i % COLUMNS) * w, Math.floor(i / COLUMNS) * tall];
    context.globalAlpha = 1;
    context.fillStyle = paint.platter;
    context.fillRect(x, y, w - 1, tall - 1);
    if (level > 0) {
      context.globalAlpha = 0.2 + 0.8 * level;
      context.fillStyle = paint.free;
      context.fillRect(x, y, w - 1, tall - 1);
    }
  }
  context.globalAlpha = 1;
}

// Draws distributions: for each time, the share of requests that take no longer. `curves` have a name and points.
export function drawCurves(canvas, curves) {
  const { context, width, height } = fitted(canvas);
  const paint = colours();
  context.clearRect(0, 0, width, height);
  const drawn = curves.filter((curve) => curve.points.length > 0);
  if (drawn.length === 0) {
    return;
  }
  // The last hundredth would make the rest small.
  const longest = Math.max(...drawn.map(({ points }) => points.find(([, share]) => share >= 0.99)?.[0] ?? 1));
  const [left, bottom, top] = [34, height - 20, 6];
  const x = (ms) => left + (Math.min(ms, longest) / longest) * (width - left - 8);
  const y = (share) => bottom - share * (bottom - top);
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = paint.faint;
  context.strokeStyle = paint["platter-line"];
  context.lineWidth = 1;
  context.textAlign = "right";
  for (const share of [0, 0.5, 1]) {
    context.fillText(`${100 * share}%`, left - 4, y(share) + 4);
    context.beginPath();
    context.moveTo(left, y(share));
    context.lineTo(width - 8, y(share));
    context.stroke();
  }
  context.textAlign = "center";
  for (const part of [0, 0.5, 1]) {
    const ms = part * longest;
    context.fillText(`${ms >= 10 ? ms.toFixed(0) : ms.toFixed(1)} ms`, Math.min(x(ms) + 8, width - 24), height - 4);
  }
  const styles = [paint.ink, paint.free, paint.seek, paint.rotate];
  for (const [i, { points }] of drawn.entries()) {
    context.strokeStyle = styles[i % styles.length];
    context.lineWidth = i === 0 ? 1.5 : 2.5;
    context.setLineDash(i === 0 ? [] : [6, 3]);
    context.beginPath();
    context.moveTo(x(0), y(0));
    for (const [ms, share] of points) {
      if (ms <= longest) {
        context.lineTo(x(ms), y(share));
      }
    }
    context.stroke();
  }
  context.setLineDash([]);
}
