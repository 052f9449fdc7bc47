// A drive's platter and arm, drawn from its layout: zones from the outside to the inside, each block at its cylinder
// and angle. The head moves along the arc of its arm, so blocks of one angle lie on such an arc, as on a real drive.
import { colours, fitted } from "./dom.js";

const TURN = 2 * Math.PI;
// Radii as parts of the platter's: the innermost track, the hub.
const INNER = 0.42;
const HUB = 0.2;
// The arm's pivot, from the platter's centre.
const PIVOT = { x: 1.12, y: 0.62 };
const ARM = Math.hypot(PIVOT.x, PIVOT.y) * 0.93;
// Most blocks read for free that stay visible, and for how many turns.
const MOST_TRACES = 300;
const TRACE_TURNS = 12;

export class Platter {
  constructor(canvas) {
    this.canvas = canvas;
    this.still = null;
    this.key = "";
  }

  // Draws the recording at an instant.
  draw(recording, t) {
    const { context, width, height, scale } = fitted(this.canvas);
    const paint = colours();
    context.clearRect(0, 0, width, height);
    if (width === 0 || !recording) {
      return;
    }
    // The platter is at the left, the pivot at its lower right.
    const radius = Math.min(height / 2 - 4, (width - 12) / 2.3);
    const centre = { x: radius + 4 + Math.max(0, (width - 2.34 * radius) / 2), y: height / 2 };
    const head = recording.head(t);
    const turned = recording.angle(t);
    const place = (cylinder) => this.place(recording.drive, cylinder);
    context.save();
    context.translate(centre.x, centre.y);
    context.scale(radius, radius);
    this.rotated(context, recording.drive, turned, scale * radius, paint);
    this.traces(context, recording, head.index, t, turned, place, paint);
    this.wanted(context, recording, head, t, turned, place, paint);
    this.arm(context, place(head.cylinder), paint, paint[head.doing]);
    context.restore();
  }

  // The radius of a cylinder, and the angle of the head there, as seen from the centre.
  place(drive, cylinder) {
    const inwards = cylinder / Math.max(1, drive.cylinders - 1);
    const r = 0.985 - (0.985 - INNER) * inwards;
    const distance = Math.hypot(PIVOT.x, PIVOT.y);
    const toPivot = Math.atan2(PIVOT.y, PIVOT.x);
    const between = Math.acos((r * r + distance * distance - ARM * ARM) / (2 * r * distance));
    return { r, head: toPivot - between };
  }

  // The platter itself, which is drawn once and then turned.
  rotated(context, drive, turned, pixels, paint) {
    const side = Math.max(2, Math.ceil(2 * pixels));
    const key = `${drive.name} ${side} ${paint.platter} ${paint["platter-line"]}`;
    if (key !== this.key) {
      this.key = key;
      this.still = document.createElement("canvas");
      this.still.width = side;
      this.still.height = side;
      const still = this.still.getContext("2d");
      still.translate(side / 2, side / 2);
      still.scale(side / 2, side / 2);
      this.surface(still, drive, paint);
    }
    context.save();
    context.rotate(-turned * TURN);
    context.drawImage(this.still, -1, -1, 2, 2);
    context.restore();
  }

  surface(context, drive, paint) {
    context.fillStyle = paint.platter;
    context.beginPath();
    context.arc(0, 0, 1, 0, TURN);
    context.arc(0, 0, HUB, 0, TURN, true);
    context.fill();
    context.strokeStyle = paint["platter-line"];
    context.lineWidth = 0.004;
    // A ring where the number of sectors changes.
    let last = null;
    for (const [cylinder, sectors] of drive.tracks) {
      if (last !== null && sectors !== last) {
        context.beginPath();
        context.arc(0, 0, this.place(drive, cylinder).r, 0, TURN);
        context.stroke();
      }
      last = sectors;
    }
    // Twelve angles, of which the first is the index mark.
    for (let i = 0; i < 12; i += 1) {
      context.lineWidth = i === 0 ? 0.014 : 0.003;
      context.beginPath();
      for (let step = 0; step <= 16; step += 1) {
        const { r, head } = this.place(drive, ((drive.cylinders - 1) * step) / 16);
        const angle = head + (i / 12) * TURN;
        context.lineTo(r * Math.cos(angle), r * Math.sin(angle));
      }
      context.stroke();
    }
    for (const r of [INNER - 0.012, HUB, 0.998]) {
      context.lineWidth = 0.005;
      context.beginPath();
      context.arc(0, 0, r, 0, TURN);
      context.stroke();
    }
  }

  // A range of blocks from one angle to another on a cylinder; a dot where it is too short to be seen.
  arc(context, { r, head }, from, to, turned, width) {
    const begin = head + (from - turned) * TURN;
    const length = Math.min(Math.max(to - from, 0.006), 1) * TURN;
    context.lineWidth = width;
    context.beginPath();
    context.arc(0, 0, r, begin, begin + length);
    context.stroke();
  }

  // What was read for free in the last turns.
  traces(context, recording, index, t, turned, place, paint) {
    const oldest = t - TRACE_TURNS * recording.drive.period_ns;
    context.strokeStyle = paint.free;
    context.lineCap = "butt";
    for (let i = index; i >= 0 && i > index - MOST_TRACES; i -= 1) {
      const one = recording.commands[i];
      if (one.end < oldest) {
        break;
      }
      const free = one.free / one.count;
      const done = one.transferStart + (one.end - one.transferStart) * free;
      if (one.free === 0 || t < one.transferStart) {
        continue;
      }
      const from = recording.begin(one);
      const to = from + (Math.min(t, done) - one.transferStart) / recording.drive.period_ns;
      context.globalAlpha = Math.max(0.15, 1 - (t - done) / (t - oldest));
      this.arc(context, place(one.cylinder), from, to, turned, 0.022);
    }
    context.globalAlpha = 1;
  }

  // The requests that wait, and the blocks that the head is on its way to.
  wanted(context, recording, { command }, t, turned, place, paint) {
    context.fillStyle = paint.waiting;
    for (const one of recording.waiting(t)) {
      const { r, head } = place(one.cylinder);
      const angle = head + (one.angle - turned) * TURN;
      context.beginPath();
      context.arc(r * Math.cos(angle), r * Math.sin(angle), 0.017, 0, TURN);
      context.fill();
    }
    if (command) {
      const from = recording.begin(command);
      const to = from + (command.end - command.transferStart) / recording.drive.period_ns;
      context.strokeStyle = command.free >= command.count ? paint.free : paint.transfer;
      this.arc(context, place(command.cylinder), from, to, turned, 0.04);
    }
  }

  arm(context, { r, head }, paint, colour) {
    const [x, y] = [r * Math.cos(head), r * Math.sin(head)];
    context.strokeStyle = paint.arm;
    context.fillStyle = paint.arm;
    context.lineCap = "round";
    context.lineWidth = 0.05;
    context.beginPath();
    context.moveTo(PIVOT.x, PIVOT.y);
    context.lineTo(x, y);
    context.stroke();
    context.beginPath();
    context.arc(PIVOT.x, PIVOT.y, 0.085, 0, TURN);
    context.fill();
    context.beginPath();
    context.arc(x, y, 0.036, 0, TURN);
    context.fillStyle = colour;
    context.fill();
    context.lineWidth = 0.01;
    context.strokeStyle = paint.paper;
    context.stroke();
  }
}
