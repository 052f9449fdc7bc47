"""Plants faults in copies of the server, and measures how many operations the simulation needs to find each.

    python3 tools/planted.py            builds and runs each fault, for a minute at most; fails if one is not found
    python3 tools/planted.py --check    only checks that each fault still fits the code
    python3 tools/planted.py WORD ...   runs the faults whose names contain a word

The simulation is `crates/serve/tests/whole_server.rs`. The copy is in target/planted.
"""

import os
import pathlib
import re
import subprocess
import sys
import time

SERVE, SCHED = "crates/serve/src/", "crates/sched/src/"

# Name, file, the code that is replaced, the faulty code. The code occurs once in its file.
FAULTS = [
    (
        "destage writes onto another disk than the data's",
        SERVE + "destage/driver.rs",
        "            || disk(&info) != disk(&as_before.1)\n",
        "",
    ),
    (
        "a fast control client fills the queue of requests",
        SERVE + "engine/inbox.rs",
        "        // Neither semaphore is ever closed.",
        "        if self.is_interface { return Outbox { is_interface: false, ..self.clone() }.send(message); }\n"
        "        // Neither semaphore is ever closed.",
    ),
    (
        "a flush is answered and not done",
        SERVE + "net/connection/requests.rs",
        "        let to = self.shared.caches.get(&owner)",
        "        if kind == Kind::Flush { self.protocol.reply(request.token, Reply::Done); return; }\n"
        "        let to = self.shared.caches.get(&owner)",
    ),
    (
        "a request overtakes another that it overlaps",
        SCHED + "pool.rs",
        "self.overlaps.blocker(kind, s.request.lbn, s.request.count, s.seq),",
        "self.overlaps.blocker(kind, s.request.lbn, s.request.count, s.seq).filter(|_| s.request.lbn % 3 == 0),",
    ),
    (
        "half of a FUA write is not FUA",
        SERVE + "net/connection/requests.rs",
        "            fua: request.fua,",
        "            fua: request.fua && request.length < 6000,",
    ),
    (
        "no write is FUA",
        SERVE + "net/connection/requests.rs",
        "            fua: request.fua,",
        "            fua: false,",
    ),
    (
        "a read returns other sectors",
        SERVE + "engine/completed.rs",
        "let from = (lbn - self.lbn) * u64::from(sector_bytes);",
        "let from = (lbn - self.lbn).saturating_sub(u64::from(lbn % 97 == 5)) * u64::from(sector_bytes);",
    ),
    (
        "a failed write is answered as done",
        SERVE + "engine/mod.rs",
        "                    Some(fault) => Err(fault),\n                    None if submission.kind == Kind::Read",
        "                    Some(_) if submission.kind == Kind::Write => Ok(Bytes::new()),\n"
        "                    Some(fault) => Err(fault),\n                    None if submission.kind == Kind::Read",
    ),
    (
        "a short read is taken for a whole one",
        SERVE + "engine/completed.rs",
        "let len = count * u64::from(sector_bytes);",
        "let len = (count - u64::from(count == 7)) * u64::from(sector_bytes);",
    ),
    (
        "a point-in-time task preserves nothing",
        SERVE + "engine/submitting.rs",
        "if let Some(old) = self.background.to_preserve(&range) {",
        "if let Some(old) = self.background.to_preserve(&range).filter(|_| false) {",
    ),
    (
        "a newer write does not supersede a free one",
        SCHED + "tasks/deliver.rs",
        "        if self.tasks.is_empty() {\n            return;\n        }\n"
        "        let hits = self.touched(WRITE, range);",
        "        if !self.tasks.is_empty() {\n            return;\n        }\n"
        "        let hits = self.touched(WRITE, range);",
    ),
    (
        "a flush of the write cache does not wait for the writes",
        SCHED + "write_cache/machine.rs",
        "self.waiters.flush(self.cache.seq(), Some(ask.ticket));",
        "self.answers.push_back((ask.ticket, Ok(T::Data::default())));",
    ),
    (
        "a FUA write is answered from the write cache's memory",
        SCHED + "write_cache/machine.rs",
        "                true => self.waiters.write(upto, range, ask.ticket),",
        "                true => { let _ = upto; self.answers.push_back((ask.ticket, Ok(T::Data::default()))) }",
    ),
    (
        "the write cache drops data when the device fails",
        SCHED + "write_cache/machine.rs",
        "self.writes.not_written(&mut self.cache, task, &range, State::Urgent);",
        "self.writes.written(&mut self.cache, task, &range);",
    ),
    (
        "a request that waits for room is lost",
        SERVE + "net/connection.rs",
        "Err(room) => self.waiting = Some((Waits::Request(request), room)),",
        "Err(room) => if request.length < 6000 { self.waiting = Some((Waits::Request(request), room)) },",
    ),
    (
        "a share of the budget is not returned",
        SERVE + "net/budget.rs",
        "            inner.give_back(self.owner, self.client, self.part, self.units);",
        "            if self.units % 3 == 1 { inner.give_back(self.owner, self.client, self.part, self.units); }",
    ),
    (
        "the engine is not woken up",
        SERVE + "engine/inbox.rs",
        "            self.wake.task.notify_one();",
        "",
    ),
    (
        "an answer has another request's cookie",
        "crates/nbd/src/pending.rs",
        "let InFlight { cookie, op, offset, length } = request;",
        "let InFlight { cookie, op, offset, length } = request;\n"
        "        let cookie = if op == Op::Write && self.requests.len() == 3 {\n"
        "            self.requests.values().next().map_or(cookie, |r| r.cookie)\n"
        "        } else { cookie };",
    ),
]

# The simulation runs in the profile of the tests, for this time.
MINUTES, SLACK_S = "1", 60
TEST = ["cargo", "test", "--locked", "--quiet", "-p", "headtime-serve", "--test", "whole_server"]


def misfits(root):
    """The faults whose code does not occur once in its file."""
    for name, file, code, _ in FAULTS:
        count = (root / file).read_text(encoding="utf-8").count(code)
        if count != 1:
            yield f"{file}: {name}: expected the code to replace once, found it {count} times"


def copy(root, to):
    """Makes `to` a copy of the files under version control; what is the same already is not written."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        data = (root / name).read_bytes()
        file = to / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_bytes() != data:
            file.write_bytes(data)


def run(copied, fault):
    """Builds and runs the simulation with a fault: what it printed, its status and the seconds it took."""
    name, file, code, faulty = fault
    path = copied / file
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(code, faulty), encoding="utf-8")
    env = dict(os.environ, CARGO_TARGET_DIR=str(copied / "target"), HEADTIME_SOAK_MINUTES=MINUTES, HEADTIME_SEED="0")
    try:
        subprocess.run([*TEST, "--no-run"], cwd=copied, env=env, check=True, capture_output=True, text=True)
        began = time.monotonic()
        done = subprocess.run(
            [*TEST, "--", "--nocapture", "whatever_goes_wrong"],
            cwd=copied, env=env, capture_output=True, text=True, timeout=float(MINUTES) * 60 + SLACK_S,
        )
        return done.stdout + done.stderr, done.returncode, time.monotonic() - began
    finally:
        path.write_text(text, encoding="utf-8")


def main(words):
    root = pathlib.Path(__file__).resolve().parent.parent
    wrong = list(misfits(root))
    if wrong:
        sys.exit("\n".join(wrong))
    if words == ["--check"]:
        return
    copied = root / "target" / "planted"
    copy(root, copied)
    missed = 0
    print(f"{'fault':56} {'operations':>10} {'seconds':>8}", flush=True)
    for fault in FAULTS:
        if words and not any(word in fault[0] for word in words):
            continue
        try:
            printed, status, seconds = run(copied, fault)
        except subprocess.CalledProcessError as e:
            sys.exit(f"{fault[0]}: it does not build:\n{e.stderr}")
        except subprocess.TimeoutExpired:
            printed, status, seconds = "", 0, float(MINUTES) * 60 + SLACK_S
        found = re.findall(r"after (\d+) operations", printed)
        if status and found:
            print(f"{fault[0]:56} {found[0]:>10} {seconds:8.1f}", flush=True)
        else:
            print(f"{fault[0]:56} {'not found':>10} {seconds:8.1f}", flush=True)
            missed += 1
    if missed:
        sys.exit(f"{missed} of the faults were not found")


main(sys.argv[1:])
