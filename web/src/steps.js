// The six steps of the story. Each says what it simulates, and which figures of it are shown; the figures themselves
// are the simulator's.
import { scenario } from "./scenario.js";
import { gapInWords } from "./stage.js";
import { figure } from "./view.js";
import { bytes, shown } from "./format.js";

export const driveChoice = {
  key: "disk",
  label: "Drive",
  kind: "select",
  default: "atlas10k",
  options: (catalogue) => driveNames(catalogue.drives),
};

function driveNames(drives) {
  return drives.map((d) => [d.name, `${d.title}, ${d.year ?? "?"}, ${bytes(d.capacity_bytes)}`]);
}

// Guarantees need the drive's service times; where the profile has none, measuring them first takes long.
const measuredDrives = {
  ...driveChoice,
  label: "Drive with known service times",
  default: "ultrastar36z15",
  options: (catalogue) => driveNames(catalogue.drives.filter((d) => d.has_service_times)),
};

// A run of a step: a name, what it is called in the table, and its scenario.
export function aRun(id, label, settings, { tasks = [], ...more } = {}) {
  return { id, label, disk: settings.disk, seconds: settings.seconds, text: scenario(settings, tasks), ...more };
}

// A table with a row for each run.
export function tableOf(caption, columns, results, done, chosen = null) {
  const rows = done.map((run) => ({
    label: run.label,
    chosen: run.id === chosen,
    cells: columns.map(([, path, format]) => figure(results, run, path, format)),
  }));
  const note = done
    .map((run) => fillNote(run.label, results[run.id].result.freeblock))
    .filter((text) => text)
    .join(" ");
  return { caption, columns: columns.map(([name]) => name), rows, note };
}

// Why gaps were not filled, where that was so.
function fillNote(label, { times_stopped: stopped, not_filled: why }) {
  if (why === "one-command-at-a-time") {
    return `Row “${label}”: no gaps are filled, because the drive takes one command at a time.`;
  }
  if (stopped > 0) {
    const often = stopped === 1 ? "once" : `${stopped} times`;
    return (
      `Row “${label}”: filling gaps was stopped ${often}, because the drive surprised too often. A drive that keeps ` +
      "writes in a cache of its own moves its arm unseen; with the scheduler’s write cache it does not."
    );
  }
  return null;
}

export const RESPONSE = [
  ["requests/s", "foreground.per_second", shown.number],
  ["mean, ms", "foreground.response_ms.mean", shown.plain],
  ["95%, ms", "foreground.response_ms.p95", shown.plain],
  ["99%, ms", "foreground.response_ms.p99", shown.plain],
];

const SHARES = [
  ["seek", "head_time.seek", shown.percent],
  ["rotation", "head_time.rotate", shown.percent],
  ["transfer", "head_time.transfer", shown.percent],
];

const one = {
  key: "1",
  name: "One request",
  title: "1. One request",
  speed: 1 / 500,
  text: () => [
    "A hard disk reads a block in three parts. The arm moves over the block's track: the seek. The head waits until " +
      "the platter has turned so far that the block comes round: the rotational latency. Then the block passes: the " +
      "transfer. Press Play to watch one read, much slower than it is.",
    "Rings on the platter separate zones: outer tracks are longer and hold more blocks. The bold line is where each " +
      "track begins to be counted.",
  ],
  controls: [driveChoice, { key: "seed", kind: "again", label: "Another request", default: "1" }],
  runs: ({ disk, seed }) => {
    const settings = { disk, workload: "closed:1", order: "fcfs", requests: 1, seed: Number(seed) };
    return [aRun("one", "one read of 4 KB", settings, { seconds: 0.1 })];
  },
  table: (results, done, view) => {
    const [command] = view.recording.commands;
    if (!command) {
      return null;
    }
    const part = (name, ns) => ({ label: name, cells: [{ text: shown.ms3(ns / 1e6), value: ns / 1e6 }] });
    const whole = figure(results, done[0], "foreground.response_ms.mean", shown.ms3);
    const media = command.end - command.start;
    return {
      caption: "Where the time of this request goes",
      columns: ["time"],
      rows: [
        part("seek", command.seekEnd - command.start),
        part("rotation", command.transferStart + command.turned - command.seekEnd),
        part("transfer", command.end - command.transferStart - command.turned),
        part("electronics and bus", whole.value * 1e6 - media),
        { label: "response time", cells: [whole], chosen: true },
      ],
    };
  },
  summary: (results, view) => {
    const [command] = view.recording.commands;
    const total = results.one.result.foreground.response_ms.mean;
    const transfer = (command.end - command.transferStart - command.turned) / 1e6;
    return `The request takes ${shown.ms(total)}; its blocks pass in ${shown.ms(transfer)} of that.`;
  },
};

const SIZES = ["4k", "64k", "1024k"];

const where = {
  key: "2",
  name: "Where its time goes",
  title: "2. Where its time goes",
  speed: 1 / 100,
  text: () => [
    "One program reads blocks at random places, one after the other. For small requests nearly all of the head's " +
      "time is seek and rotation: nothing is read. Only large requests spend it on transfers.",
    "Compare an old drive with the largest one in the list: it transfers much faster, but its arm and platter are " +
      "hardly quicker, so small random reads gain little.",
  ],
  controls: [
    driveChoice,
    {
      key: "size",
      label: "Size on the platter",
      kind: "select",
      default: "4k",
      options: () => SIZES.map((s) => [s, sizeName(s)]),
    },
  ],
  runs: ({ disk, size }) =>
    SIZES.map((each) => {
      const settings = { disk, order: "fcfs", seconds: 10, seed: 1 };
      const tasks = [{ name: "reads", tasks: 1, size: each }];
      return aRun(each, `reads of ${sizeName(each)}`, settings, { tasks, main: each === size, commands: 4000 });
    }),
  table: (results, done, view) =>
    tableOf(
      "One program, random reads",
      [...SHARES, ["requests/s", "foreground.per_second", shown.number], ["MB/s", "foreground.mb_s", shown.plain]],
      results,
      done,
      view.values.size,
    ),
  summary: (results) => {
    const [small, large] = [results["4k"].result, results["1024k"].result];
    return (
      `With reads of 4 KB the head transfers for ${shown.percent(small.head_time.transfer)} of the time, and the ` +
      `drive gives ${shown.megabytes(small.foreground.mb_s)}; with reads of 1 MB ` +
      `${shown.megabytes(large.foreground.mb_s)}.`
    );
  },
};

function sizeName(size) {
  return size === "1024k" ? "1 MB" : size.replace("k", " KB");
}

const ORDERS = [
  ["fcfs", "in order of arrival (fcfs)"],
  ["clook", "sweeping inwards (clook)"],
  ["sstf", "shortest seek first (sstf)"],
  ["sptf", "shortest positioning time first (sptf)"],
  ["sptf-ahead", "the same, looking ahead (sptf-ahead)"],
];

const queue = {
  key: "3",
  name: "The queue",
  title: "3. The queue",
  speed: 1 / 100,
  curves: true,
  text: () => [
    "When several requests wait, the scheduler may choose. Dots are waiting requests. Who knows only the numbers of " +
      "the blocks can shorten seeks. Who knows the drive's layout, its arm and the platter's angle can choose the " +
      "request whose first block the head reaches first: seek and rotation together.",
    "The more requests wait, the more there is to choose from.",
  ],
  controls: [
    driveChoice,
    {
      key: "depth",
      label: "Requests that wait",
      kind: "select",
      default: "16",
      options: () => ["2", "4", "8", "16", "32", "64"],
    },
    { key: "order", label: "Order on the platter", kind: "select", default: "sptf", options: () => ORDERS },
  ],
  runs: ({ disk, depth, order }) =>
    ORDERS.map(([name, label]) => {
      const settings = { disk, workload: `closed:${depth}`, order: name, seconds: 10, seed: 1 };
      return aRun(name, label, settings, { main: name === order, commands: 4000 });
    }),
  table: (results, done, view) =>
    tableOf(
      "Random reads of 4 KB, always as many waiting",
      [...RESPONSE, ...SHARES.slice(0, 2)],
      results,
      done,
      view.values.order,
    ),
  summary: ({ fcfs, sptf }) => {
    const gain = sptf.result.foreground.per_second / fcfs.result.foreground.per_second;
    return `By positioning time the drive serves ${shown.number(gain)} times as many requests as in order of arrival.`;
  },
};

const WORKLOADS = [
  ["oltp", "ten programs that think (oltp)"],
  ["closed:2", "two random readers (closed:2)"],
  ["closed:8", "eight random readers (closed:8)"],
  ["open:40", "40 requests a second (open:40)"],
];

const workloadChoice = {
  key: "workload",
  label: "Foreground",
  kind: "select",
  default: "oltp",
  options: () => WORKLOADS,
};

const gap = {
  key: "4",
  name: "The gap",
  title: "4. The gap",
  speed: 1 / 500,
  instantLabel: "Gap",
  text: () => [
    "Even the best order leaves rotational latency: the head has arrived, and waits. In this gap it can read other " +
      "blocks, on this track, on the way, or on the track that it left, as long as it is back in time. The request " +
      "is served at the same instant as without.",
    "Here a background scan wants every block of the drive, in any order. Blocks that are read in a gap are drawn " +
      "in the colour of “free”.",
  ],
  controls: [driveChoice, workloadChoice, { key: "seed", kind: "again", label: "Other requests", default: "1" }],
  runs: ({ disk, workload, seed }) => {
    const settings = { disk, workload, order: "sptf", background: "scan", seconds: 5, seed: Number(seed) };
    return [aRun("gaps", "with a scan in the gaps", settings)];
  },
  instants: (recording, view) => {
    // The fullest gaps first, so that the first one shows what there is to see.
    const all = recording.gaps().sort((a, b) => b.legs.length - a.legs.length || b.sectors - a.sectors);
    view.gaps = all.slice(0, 40).sort((a, b) => a.from - b.from);
    view.gap = all[0] ?? null;
    return { all: view.gaps.map((g) => g.from), first: view.gap?.from ?? 0 };
  },
  timed: (t, view) => {
    const here = view.gaps?.findLast((g) => g.from <= t && t <= g.to);
    if (here && here !== view.gap && view.results.gaps) {
      view.gap = here;
      view.show(view.definition.runs(view.values));
    }
  },
  table: (results, done, view) => {
    const gap = view.gap;
    const of = gap && gap.legs.filter((leg) => leg.free > 0);
    const part = (label, text, value) => ({ label, cells: [{ text, value }] });
    const time = (label, ns) => part(label, shown.ms3(ns / 1e6), ns / 1e6);
    const rows = gap
      ? [
          time("from the end of the request before to the end of this one", gap.to - gap.from),
          part("blocks read for free", shown.count(gap.sectors), gap.sectors),
          part("their size", bytes(gap.sectors * view.drive.sector_bytes), gap.sectors * view.drive.sector_bytes),
          part("number of reads", shown.count(of.length), of.length),
          time("the request was due at", gap.wanted.due),
          time("and is done at", gap.wanted.done),
        ]
      : [part("no gap was filled", "–", "")];
    const whole = tableOf(
      "All gaps of the run",
      [
        ["requests/s", "foreground.per_second", shown.number],
        ["scan, MB/s", "freeblock.mb_s", shown.plain],
        ...SHARES.slice(1, 2),
        ["free", "head_time.free", shown.percent],
      ],
      results,
      done,
    );
    return [{ caption: "This gap", columns: [""], rows }, whole];
  },
  summary: (results, view) => {
    const count = view.gaps?.length ?? 0;
    if (count === 0) {
      return "No gap was filled in this run.";
    }
    return `The fullest gap, ${gapInWords(view.gap, view.drive)}. Play it, or go to the next one.`;
  },
};

// Sizes of the scheduler's write cache; with one, the drive's own is off.
export const cacheChoice = {
  key: "cache",
  label: "Write cache",
  kind: "select",
  default: "",
  options: () => [
    ["", "the drive’s own, if it has one"],
    ...["16 MiB", "64 MiB", "256 MiB"].map((s) => [s, `the scheduler’s, ${s}`]),
  ],
};

const scan = {
  key: "5",
  name: "A free scan",
  title: "5. A free scan",
  speed: 1,
  curves: true,
  map: true,
  text: () => [
    "Gap by gap, the whole drive is read while its users notice nothing: a scrub, a backup or a search for free. " +
      "The first row is the drive without the scan, the second with it.",
    "The map fills as the scan proceeds. At ten times real time you can watch it, or drag the slider.",
  ],
  controls: [
    driveChoice,
    workloadChoice,
    {
      key: "fill",
      label: "Planner of gaps",
      kind: "select",
      default: "headtime",
      options: (c) => c.fills.filter((f) => f !== "none"),
    },
    cacheChoice,
  ],
  runs: ({ disk, workload, fill, cache }) => {
    const settings = { disk, workload, order: "sptf", write_cache: cache, seconds: 30, seed: 1 };
    return [
      aRun("alone", "without a scan", settings),
      aRun("scan", "with the scan", { ...settings, fill, background: "scan" }, { main: true }),
    ];
  },
  table: (results, done) =>
    tableOf(
      "The foreground, and what the scan reads beside it",
      [
        ...RESPONSE,
        ["scan, MB/s", "freeblock.mb_s", shown.plain],
        ["read so far", "freeblock.scanned_fraction", shown.percent],
      ],
      results,
      done,
    ),
  summary: ({ alone, scan: beside }) => {
    const [a, b] = [alone.result.foreground, beside.result.foreground];
    const change = b.response_ms.mean / a.response_ms.mean - 1;
    return (
      `The scan reads ${shown.megabytes(beside.result.freeblock.mb_s)}, and the mean response time differs by ` +
      `${change >= 0 ? "+" : "−"}${shown.percent(Math.abs(change))}.`
    );
  },
};

const SHARED = [
  ["none", "no policy"],
  ["cfq", "slices of time (cfq)"],
  ["bfq", "shares of the sectors (bfq)"],
  ["bfq+", "the same, quick starts (bfq+)"],
];
const PROMISED = [
  ["none", "no guarantees"],
  ["das", "guarantees (das)"],
];

const shares = {
  key: "6",
  name: "Shares and guarantees",
  title: "6. Shares and guarantees",
  speed: 1 / 20,
  text: () => [
    "An order serves the drive, not its users. Here eight copies read at one place of the drive, so one of them " +
      "is always nearest, and a program that reads elsewhere waits. Which requests are eligible is a decision of " +
      "its own: a policy divides the drive among programs, and the order chooses within what it allows.",
    "A stream, such as a film, needs a number of requests in each period, and most of them in time. Guarantees are " +
      "given only if the drive can keep them, and whatever is left goes to everyone else: here to a hundred other " +
      "requests that always wait.",
  ],
  controls: [
    measuredDrives,
    { key: "admit", label: "Policy on the platter", kind: "select", default: "bfq", options: () => SHARED },
  ],
  runs: ({ disk, admit }) => {
    const tasks = [
      { name: "copies", tasks: 8, size: "64k", place: "part", from: 0.4, to: 0.42 },
      { name: "program", tasks: 1, size: "4k" },
    ];
    const settings = { disk, order: "sptf", seconds: 10, seed: 1 };
    const streams = { disk, workload: "das-table2:100", order: "sptf", seconds: 15, seed: 1 };
    return [
      ...SHARED.map(([name, label]) =>
        aRun(
          `share-${name}`,
          label,
          { ...settings, admit: name },
          { tasks, main: name === admit, commands: 8000, share: true },
        ),
      ),
      ...PROMISED.map(([name, label]) => aRun(`stream-${name}`, label, { ...streams, admit: name }, { share: false })),
    ];
  },
  table: (results, done, view) => {
    const [shared, promised] = [done.filter((run) => run.share), done.filter((run) => !run.share)];
    const columns = [
      ["copies: requests", "foreground.by_class.copies.requests", shown.count],
      ["mean, ms", "foreground.by_class.copies.response_ms.mean", shown.plain],
      ["program: requests", "foreground.by_class.program.requests", shown.count],
      ["mean, ms", "foreground.by_class.program.response_ms.mean", shown.plain],
    ];
    const all = [
      tableOf("Eight copies and a program share the drive", columns, results, shared, `share-${view.values.admit}`),
    ];
    if (promised.length > 0) {
      all.push(streamTable(results, promised));
    }
    return all;
  },
  summary: (results) => {
    const kept = (id) => {
      const streams = Object.values(results[id].result.streams);
      return `${streams.filter((s) => s.quality >= s.quality_asked).length} of ${streams.length}`;
    };
    return (
      `Without guarantees ${kept("stream-none")} streams get the quality that they asked for, with guarantees ` +
      `${kept("stream-das")}.`
    );
  },
};

// Each stream's quality, asked and given, in each run.
function streamTable(results, done) {
  const names = Object.keys(results[done[0].id].result.streams);
  const asked = (name) => results[done[0].id].result.streams[name].quality_asked;
  return {
    caption: "Requests of streams in time, beside best effort",
    columns: ["asked", ...done.map((run) => run.label)],
    rows: [
      ...names.map((name) => ({
        label: name,
        cells: [
          { text: shown.percent(asked(name)), value: asked(name) },
          ...done.map((run) => figure(results, run, `streams.${name}.quality`, shown.percent)),
        ],
      })),
      {
        label: "all requests/s",
        cells: [
          { text: "", value: "" },
          ...done.map((run) => figure(results, run, "foreground.per_second", shown.number)),
        ],
      },
    ],
  };
}

export const STEPS = [one, where, queue, gap, scan, shares];
