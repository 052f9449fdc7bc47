// What happened in a run, as the simulator told it: commands on the platter, requests, and figures after intervals.

// Returns the index of the last element whose `key` is at most `value`; -1 if there is none.
export function lastUpTo(list, key, value) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle][key] <= value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low - 1;
}

function command(row) {
  const [kind, lbn, count, free, start, seekEnd, transferStart, end, turned, ...place] = row;
  const [cylinder, surface, angle, arc, endCylinder, endAngle] = place;
  const both = { kind, lbn, count, free, start, seekEnd, transferStart, end, turned };
  return { ...both, cylinder, surface, angle, arc, endCylinder, endAngle };
}

function request(row) {
  const [owner, kindOfTask, kind, lbn, count, due, dispatched, done, cylinder, angle] = row;
  return { owner, class: kindOfTask, kind, lbn, count, due, dispatched, done, cylinder, angle };
}

export class Recording {
  constructor(drive) {
    this.drive = drive;
    this.commands = [];
    this.requests = [];
    this.slices = [];
    this.end = 0;
    this.byDue = null;
  }

  // Takes a line of the simulator.
  take(line) {
    if (line.commands) {
      this.commands.push(...line.commands.map(command));
    } else if (line.requests) {
      this.requests.push(...line.requests.map(request));
      this.byDue = null;
    } else if (line.slice) {
      this.slices.push(line.slice);
    } else if (line.result) {
      this.end = line.result.virtual_seconds * 1e9;
      this.commands.sort((a, b) => a.start - b.start);
    }
  }

  // The instant after which nothing is known of the head.
  get known() {
    return this.commands.length > 0 ? this.commands[this.commands.length - 1].end : 0;
  }

  // Requests that were due and not yet done at an instant. None takes longer than the longest.
  waiting(t) {
    if (!this.byDue) {
      this.byDue = [...this.requests].sort((a, b) => a.due - b.due);
      this.longest = Math.max(0, ...this.byDue.map((r) => r.done - r.due));
    }
    const all = [];
    for (let i = lastUpTo(this.byDue, "due", t); i >= 0 && this.byDue[i].due >= t - this.longest; i -= 1) {
      if (this.byDue[i].done > t) {
        all.push(this.byDue[i]);
      }
    }
    return all;
  }

  // The figures up to an instant.
  slice(t) {
    return this.slices[lastUpTo(this.slices, "t", t)] ?? null;
  }

  // The head at an instant: its cylinder, what it does, and for which command.
  head(t) {
    const i = lastUpTo(this.commands, "start", t);
    const now = this.commands[i];
    if (!now) {
      return { doing: "idle", cylinder: 0, command: null, index: -1 };
    }
    if (t >= now.end) {
      return { doing: "idle", cylinder: now.endCylinder, command: null, index: i };
    }
    if (t < now.seekEnd) {
      const from = i > 0 ? this.commands[i - 1].endCylinder : 0;
      return { doing: "seek", cylinder: moved(from, now, t), command: now, index: i };
    }
    if (t < now.transferStart) {
      return { doing: "rotate", cylinder: now.cylinder, command: now, index: i };
    }
    const part = (t - now.transferStart) / (now.end - now.transferStart);
    const cylinder = now.cylinder + (now.endCylinder - now.cylinder) * part;
    return { doing: part * now.count < now.free ? "free" : "transfer", cylinder, command: now, index: i };
  }

  // The platter's angle under the head, in turns: where the last command ended, and what it has turned since. The
  // drive's speed is not quite its nominal one, so the nearest command counts.
  angle(t) {
    let i = Math.max(0, lastUpTo(this.commands, "start", t));
    while (i > 0 && this.commands[i]?.turned > 0) {
      i -= 1;
    }
    const near = this.commands[i];
    const known = near && near.turned === 0;
    const [at, angle] = known ? [near.end, near.endAngle] : [0, 0];
    return angle + (t - at) / this.drive.period_ns;
  }

  // The angle at which a command's transfer begins. It is asked for in each frame in which the command is drawn.
  begin(one) {
    one.begin ??= this.angle(one.transferStart);
    return one.begin;
  }

  // One part of a command's time: from when to when the head does something for it.
  phase(one, doing) {
    const free = one.transferStart + ((one.end - one.transferStart) * one.free) / one.count;
    switch (doing) {
      case "seek":
        return { from: one.start, to: one.seekEnd };
      case "rotate":
        return { from: one.seekEnd, to: one.transferStart };
      case "free":
        return { from: one.transferStart, to: free };
      case "transfer":
        return { from: free, to: one.end };
      default:
        return { from: one.end, to: one.end };
    }
  }

  // The parts of a command's time, in order.
  phases(one) {
    const all = ["seek", "rotate", "free", "transfer"].map((doing) => this.phase(one, doing));
    return all.filter((phase) => phase.to > phase.from);
  }

  // Gaps: runs of background commands before a request that had arrived before the first of them began.
  gaps() {
    const all = [];
    let first = 0;
    for (const [i, one] of this.commands.entries()) {
      if (one.free >= one.count) {
        continue;
      }
      const legs = this.commands.slice(first, i + 1).filter((leg) => leg.free > 0);
      first = i + 1;
      if (legs.length === 0) {
        continue;
      }
      const wanted = this.requests.find((r) => r.lbn === one.lbn + one.free && r.due < one.end && r.done >= one.end);
      if (wanted && wanted.due < legs[0].start) {
        const before = this.commands[this.commands.indexOf(legs[0]) - 1];
        const from = before ? before.end : legs[0].start;
        const sectors = legs.reduce((sum, leg) => sum + leg.free, 0);
        all.push({ from, to: one.end, legs, request: one, wanted, sectors });
      }
    }
    return all;
  }
}

// Where the arm is within a move: it speeds up and slows down.
function moved(from, { cylinder, start, seekEnd }, t) {
  const part = (t - start) / (seekEnd - start);
  return from + (cylinder - from) * part * part * (3 - 2 * part);
}
