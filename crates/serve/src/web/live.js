// The live view: reads the server's counters once a second, and shows what happened between two readings, as
// `headtime top` does. Nothing of what the server says is used as HTML.
"use strict";

const EVERY_MS = 1000;
const TIMEOUT_MS = 5000;
const SHOWN_COMMANDS = 12;
// The time constant of the rate behind "left": gaps arrive as unevenly as the requests of clients.
const SMOOTHED_S = 30;

const element = (id) => document.getElementById(id);
const fixed = (value, digits) => (value === null ? "–" : value.toFixed(digits));
const percent = (part) => (part === null ? "–" : `${(100 * part).toFixed(1)}%`);
const ratio = (part, whole) => (whole > 0 ? part / whole : null);

function bytes(count) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (count >= 1024 && unit < units.length - 1) {
        count /= 1024;
        unit += 1;
    }
    return `${count.toFixed(unit === 0 ? 0 : 2)} ${units[unit]}`;
}

function duration(seconds) {
    if (seconds === null) return "–";
    const s = Math.round(seconds);
    const [minutes, hours] = [Math.floor(s / 60), Math.floor(s / 3600)];
    const parts = [[Math.floor(hours / 24), "d"], [hours % 24, "h"], [minutes % 60, "min"], [s % 60, "s"]];
    const first = parts.findIndex(([count]) => count > 0);
    return first < 0 ? "0 s" : parts.slice(first, first + 2).map(([count, unit]) => `${count} ${unit}`).join(" ");
}

// What happened between two readings of the counters; null after the first one, or after the server began anew.
class Readings {
    last = null;
    paces = new Map();

    forget() {
        this.last = null;
        this.paces.clear();
    }

    view(now) {
        if (this.last && now.at_ns < this.last.at_ns) this.forget();
        const before = this.last;
        if (before && now.at_ns === before.at_ns) return null;
        this.last = now;
        if (!before) return null;
        const seconds = (now.at_ns - before.at_ns) / 1e9;
        const perSecond = (name, a = now, b = before) => Math.max(0, a[name] - (b ? b[name] : 0)) / seconds;
        const share = (name) => Math.max(0, now[name] - before[name]) / 1e9 / seconds;
        const head = { seek: share("seek_ns"), rotate: share("rotate_ns"), transfer: share("transfer_ns") };
        // Predicted times are counted when commands are sent: their sum may exceed the interval.
        const whole = Math.max(1, head.seek + head.rotate + head.transfer);
        for (const name of Object.keys(head)) head[name] /= whole;
        const rest = Math.max(0, 1 - head.seek - head.rotate - head.transfer);
        head.idle = Math.min(rest, Math.max(0, 1 - share("busy_ns")));
        head.free = rest - head.idle;
        const exports = now.exports.map((e) => {
            const b = before.exports.find((other) => other.name === e.name);
            const sum = (spread) => (spread ? spread.mean_us * spread.count : 0);
            const count = (spread) => (spread ? spread.count : 0);
            const asked = count(e.response) - count(b && b.response);
            return {
                ...e,
                reads_per_second: perSecond("reads", e, b),
                writes_per_second: perSecond("writes", e, b),
                mb_s: perSecond("bytes", e, b) / 1e6,
                response_mean_ms: ratio(Math.max(0, sum(e.response) - sum(b && b.response)) / 1e3, asked),
            };
        });
        for (const id of this.paces.keys()) {
            if (!now.sessions.some((s) => s.session === id)) this.paces.delete(id);
        }
        const sessions = now.sessions.map((s) => {
            const b = before.sessions.find((other) => other.session === s.session);
            const moved = b ? perSecond("done_bytes", s, b) : 0;
            if (b) {
                const pace = this.paces.get(s.session) ?? moved;
                this.paces.set(s.session, pace + (1 - Math.exp(-seconds / SMOOTHED_S)) * (moved - pace));
            }
            const pace = this.paces.get(s.session) ?? 0;
            const moves = pace > 1 && !s.suspended && s.wanted_bytes > 0;
            return { ...s, mb_s: moved / 1e6, finish_seconds: moves ? s.wanted_bytes / pace : null };
        });
        return {
            seconds,
            head,
            exports,
            sessions,
            commands_per_second: perSecond("commands"),
            free_mb_s: perSecond("free_bytes") / 1e6,
            predicted: ratio(
                now.predictions_within_150us - before.predictions_within_150us,
                now.predictions - before.predictions,
            ),
        };
    }
}

// Replaces the rows of a table; each cell is text or an element.
function fill(id, rows) {
    const table = element(id);
    table.tBodies[0].replaceChildren(
        ...rows.map(({ key, cells }) => {
            const row = document.createElement("tr");
            row.dataset.key = key;
            Object.entries(cells).forEach(([name, content], column) => {
                const cell = document.createElement("td");
                cell.dataset.figure = name;
                const heading = table.tHead.rows[0].cells[column];
                if (["kind", "name", "state"].includes(name)) cell.className = heading.className = "text";
                cell.append(content);
                row.append(cell);
            });
            return row;
        }),
    );
    const none = table.parentElement.nextElementSibling;
    if (none && none.className === "none") none.hidden = rows.length > 0;
}

function set(name, text) {
    document.querySelector(`dd[data-figure="${name}"]`).textContent = text;
}

function filling(figures) {
    const c = figures.counts;
    if (!figures.fills) return "off";
    if (c.fill_stopped) return "stopped: the drive deviates from predictions";
    return c.times_stopped ? `on (stopped ${c.times_stopped} times)` : "on";
}

function showFigures(figures, view) {
    const c = figures.counts;
    element("disk").textContent = figures.disk;
    document.title = `${figures.disk} – headtime`;
    for (const name of ["seek", "rotate", "transfer", "free", "idle"]) {
        set(`head_time.${name}`, percent(view.head[name]));
        document.querySelector(`[data-share="${name}"]`).style.flexBasis = `${100 * view.head[name]}%`;
    }
    set("free_mb_s", `${fixed(view.free_mb_s, 2)} MB/s`);
    set("free_bytes", bytes(c.free_bytes));
    set("filling", filling(figures));
    set("predicted_within_150us", percent(view.predicted));
    set("commands_per_second", fixed(view.commands_per_second, 1));
    set("commands", String(c.commands));
    set("failed_commands", String(c.failed));
    set("under_way", `${c.under_way}, ${c.at_device}`);
    const s = c.service;
    const times = s && s.count ? [s.p50_us, s.p99_us, s.max_us].map((us) => fixed(us / 1e3, 2)) : [];
    set("service", times.length ? `${times.join(", ")} ms` : "–");
    set("up_seconds", duration(c.at_ns / 1e9));
}

function showTables(figures, view) {
    const c = figures.counts;
    fill("exports", view.exports.map((e) => ({
        key: e.name,
        cells: {
            export: e.name === "" ? "(default)" : e.name,
            weight: e.weight ?? "–",
            reads_per_second: fixed(e.reads_per_second, 1),
            writes_per_second: fixed(e.writes_per_second, 1),
            mb_s: fixed(e.mb_s, 3),
            response_mean_ms: fixed(e.response_mean_ms, 2),
            response_p99_ms: e.response && e.response.count ? fixed(e.response.p99_us / 1e3, 2) : "–",
            requests: String(e.reads + e.writes + e.flushes),
            failed: String(e.failed),
            limited: String(e.limited),
            dirty_bytes: e.dirty_bytes === null ? "–" : bytes(e.dirty_bytes),
        },
    })));
    // A row that the user is about to change stays as it is.
    if (!element("sessions").contains(document.activeElement)) {
        fill("sessions", view.sessions.map((s) => ({
            key: s.session,
            cells: {
                session: String(s.session),
                name: s.name,
                state: s.suspended ? "paused" : "running",
                priority: String(s.priority),
                done: `${bytes(s.done_bytes)} of ${bytes(s.done_bytes + s.wanted_bytes)}`,
                mb_s: fixed(s.mb_s, 3),
                finish_seconds: duration(s.finish_seconds),
                change: figures.changes ? controls(s) : "–",
            },
        })));
    }
    element("access").hidden = !figures.changes;
    element("read-only").hidden = figures.changes;
    element("streams-part").hidden = c.streams.length === 0;
    fill("streams", c.streams.map((s) => ({
        key: s.export,
        cells: {
            export: s.export,
            asked: s.stream ? `${s.stream.requests} in ${fixed(s.stream.period_ns / 1e6, 0)} ms` : "–",
            quality: s.stream ? percent(s.stream.quality_ppm / 1e6) : "–",
            achieved: percent(ratio(s.in_time, s.in_time + s.late)),
            requests: String(s.asked),
            in_time: String(s.in_time),
            late: String(s.late),
            deferred: String(s.deferred),
        },
    })));
    fill("commands", figures.commands.slice(-SHOWN_COMMANDS).reverse().map((command) => ({
        key: command.sent_ms,
        cells: {
            sent: fixed(command.sent_ms / 1e3, 3),
            kind: command.failed ? `${command.kind} (failed)` : command.kind,
            lbn: String(command.lbn),
            sectors: String(command.sectors),
            free: String(command.free),
            cylinder: command.place ? String(command.place.cylinder) : "–",
            took_ms: fixed(command.took_ms, 2),
        },
    })));
}

// The buttons of a session.
function controls(session) {
    const part = document.createElement("span");
    const pause = document.createElement("button");
    pause.type = "button";
    pause.textContent = session.suspended ? "Resume" : "Pause";
    pause.setAttribute("aria-label", `${pause.textContent} session ${session.session}`);
    pause.addEventListener("click", () => change({ session: session.session, suspended: !session.suspended }));
    const priority = document.createElement("input");
    priority.type = "number";
    priority.min = 1;
    priority.max = 1000000;
    priority.value = session.priority;
    priority.setAttribute("aria-label", `Priority of session ${session.session}`);
    const apply = document.createElement("button");
    apply.type = "button";
    apply.textContent = "Set priority";
    apply.addEventListener("click", () => change({ session: session.session, priority: Number(priority.value) }));
    part.append(pause, " ", priority, " ", apply);
    return part;
}

async function change(wanted) {
    const said = element("changed");
    try {
        const answer = await fetch("sessions", {
            method: "POST",
            headers: { "Authorization": `Bearer ${element("token").value}`, "Content-Type": "application/json" },
            body: JSON.stringify(wanted),
            signal: AbortSignal.timeout(TIMEOUT_MS),
        });
        const text = (await answer.text()).trim();
        said.textContent = answer.ok ? `Session ${wanted.session}: ${text}.` : `Not changed: ${text}.`;
    } catch {
        said.textContent = "Not changed: the server does not answer.";
    }
    if (document.activeElement) document.activeElement.blur();
}

// The platter from above, and the arm at the cylinder of the last command.
function draw(figures) {
    const canvas = element("platter");
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const [width, height] = [canvas.width, canvas.height];
    const [x, y] = [height / 2 + 10, height / 2];
    const [outer, inner] = [height / 2 - 14, height / 6];
    const radius = (cylinder) => outer - ((outer - inner) * cylinder) / Math.max(1, figures.cylinders - 1);
    pen.clearRect(0, 0, width, height);
    const disc = (r, name) => {
        pen.beginPath();
        pen.arc(x, y, r, 0, 2 * Math.PI);
        pen.fillStyle = colour(name);
        pen.fill();
        pen.strokeStyle = colour("line");
        pen.stroke();
    };
    disc(outer + 6, "plate");
    disc(inner - 8, "paper");
    disc(10, "plate");
    const placed = figures.commands.filter((command) => command.place);
    placed.forEach((command, at) => {
        const turn = -2 * Math.PI * command.place.turn;
        const r = radius(command.place.cylinder);
        pen.globalAlpha = 0.15 + (0.85 * (at + 1)) / placed.length;
        pen.beginPath();
        pen.arc(x + r * Math.cos(turn), y + r * Math.sin(turn), 4, 0, 2 * Math.PI);
        const name = command.free > 0 ? "background" : "foreground";
        pen.fillStyle = pen.strokeStyle = colour(name);
        pen.lineWidth = 2;
        if (command.kind === "write") pen.stroke();
        else pen.fill();
    });
    pen.globalAlpha = 1;
    pen.lineWidth = 1;
    const last = placed[placed.length - 1];
    const where = last ? last.place.cylinder : 0;
    // The pivot is beside the platter; the arm's end is at the cylinder's radius.
    const [px, py] = [x + outer + 90, y + outer - 30];
    const distance = Math.hypot(px - x, py - y);
    const length = distance - (outer + inner) / 2 + 20;
    const r = radius(where);
    const cosine = (distance ** 2 + length ** 2 - r ** 2) / (2 * distance * length);
    const angle = Math.atan2(y - py, x - px) + Math.acos(Math.min(1, Math.max(-1, cosine)));
    pen.beginPath();
    pen.moveTo(px, py);
    pen.lineTo(px + length * Math.cos(angle), py + length * Math.sin(angle));
    pen.strokeStyle = colour("ink");
    pen.lineWidth = 6;
    pen.stroke();
    pen.beginPath();
    pen.arc(px, py, 12, 0, 2 * Math.PI);
    pen.fillStyle = colour("ink");
    pen.fill();
    const free = placed.filter((command) => command.free > 0).length;
    const arm = `The arm is at cylinder ${where} of ${figures.cylinders}.`;
    const commands = `Of the last ${placed.length} commands ${free} moved background data.`;
    canvas.setAttribute("aria-label", last ? `${arm} ${commands}` : "No command was carried out yet.");
}

function state(text, gone) {
    const line = element("state");
    if (line.textContent !== text) line.textContent = text;
    line.className = gone ? "gone" : "";
    document.body.className = gone ? "gone" : "";
}

const readings = new Readings();

async function read() {
    let figures;
    try {
        const answer = await fetch("figures.json", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
        if (!answer.ok) throw new Error(await answer.text());
        figures = await answer.json();
    } catch {
        state("The server is gone; trying again.", true);
        // Another run of the server counts from zero.
        readings.forget();
        return;
    }
    state(`Connected to headtime ${figures.version}. The figures are those of the last second.`, false);
    const view = readings.view(figures.counts);
    if (!view) return;
    showFigures(figures, view);
    showTables(figures, view);
    draw(figures);
    document.body.dataset.readings = Number(document.body.dataset.readings ?? 0) + 1;
}

// The next reading begins after the last one has ended, so that a slow server is not asked twice at a time.
async function run() {
    for (;;) {
        const begun = performance.now();
        if (!document.hidden) await read();
        await new Promise((done) => setTimeout(done, Math.max(50, EVERY_MS - (performance.now() - begun))));
    }
}

element("access").addEventListener("submit", (event) => event.preventDefault());
run();
