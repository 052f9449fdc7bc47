#!/usr/bin/env python3
"""Measures random reads of a block device with fio, alone or beside a read of the whole disk.

usage: reads.py random --device DEVICE --depth N --seconds N --dir DIR [--scrub KIND] [--rate MB/S]
                       [--headtime PROGRAM --control SOCKET]
       reads.py total FILE          the rate in MB/s of all jobs of fio's JSON output

KIND says what reads the disk:
  none        nothing
  idle, dd    dd, 1 MiB at a time, in the idle class or in the usual one
  idle-rate, best-effort-rate
              fio, 1 MiB at a time, at --rate, in the idle class or in the best-effort class
  headtime    headtime scrub, at --rate if it is given

Printed: reads_per_s, mean_ms and p99_ms of the random reads, and scrub_mb_s, as name=value separated by tabs.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time

# fio leaves this out of its figures. The scrub begins within it, so that it has the idle disk for
# no part of what is measured.
RAMP_S = 2.0
# A pause or resumption of a session, or a look at it, costs some milliseconds of processor time.
LOOK_S = 0.02


def parsed(text):
    """What fio printed as JSON. In front of it fio says why it ended, if a signal ended it.

    >>> parsed("fio: terminating on signal 15\\n" + '{"jobs": []}')
    {'jobs': []}
    >>> parsed("")
    Traceback (most recent call last):
    ValueError: fio printed no JSON
    """
    begin = text.find("{")
    if begin < 0:
        raise ValueError("fio printed no JSON")
    return json.loads(text[begin:])


def total(output):
    """The rate of all jobs, in MB/s (10^6). fio divides each one's bytes by its own time.

    >>> total({"jobs": [{"error": 0, "read": {"bw_bytes": 2500000}}, {"error": 0, "read": {"bw_bytes": 500000}}]})
    3.0
    """
    check(output)
    return sum(job["read"]["bw_bytes"] for job in output["jobs"]) / 1e6


def random_figures(output):
    """Reads per second, and their mean and 99th percentile in ms, submission included.

    >>> lat = {"mean": 9.5e6, "percentile": {"95.000000": 11000000, "99.000000": 12000000}}
    >>> random_figures({"jobs": [{"error": 0, "read": {"iops": 100.25, "total_ios": 7, "lat_ns": lat}}]})
    {'reads_per_s': 100.25, 'mean_ms': 9.5, 'p99_ms': 12.0}
    >>> random_figures({"jobs": [{"error": 5, "read": {}}]})
    Traceback (most recent call last):
    ValueError: a job of fio failed: error 5
    """
    check(output)
    read = output["jobs"][0]["read"]
    if not read["total_ios"]:
        raise ValueError("fio completed no read: measure for longer")
    latency = read["lat_ns"]
    return {
        "reads_per_s": read["iops"],
        "mean_ms": latency["mean"] / 1e6,
        "p99_ms": latency["percentile"]["99.000000"] / 1e6,
    }


def check(output):
    """Fails if a job failed, or if there is none."""
    if not output["jobs"]:
        raise ValueError("fio ran no job")
    for job in output["jobs"]:
        if job["error"]:
            raise ValueError(f"a job of fio failed: error {job['error']}")


def rest(done, seconds, rate, running):
    """Seconds to wait until a limited scrub is looked at again, and whether it may run until then.

    It runs until it is ahead of its rate, and then pauses for as long as it is.

    >>> rest(done=5e6, seconds=2.0, rate=1e6, running=True)
    (3.0, False)
    >>> rest(done=1e6, seconds=2.0, rate=1e6, running=False)
    (0.02, True)
    """
    ahead = done / rate - seconds
    # A paused session costs nothing; one that runs has to be looked at.
    return (ahead, False) if ahead > (0 if running else LOOK_S) else (LOOK_S, True)


class Reader:
    """A process that reads the whole disk."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def done(self):
        """Bytes read so far, as the kernel counts them."""
        with open(f"/proc/{self.process.pid}/io", encoding="ascii") as counters:
            return next(int(line.split()[1]) for line in counters if line.startswith("read_bytes"))

    def wait_until(self, when):
        """Waits until an instant of the monotonic clock."""
        while (left := when - time.monotonic()) > 0:
            if self.process.poll() is not None:
                raise ValueError(f"what reads the whole disk has ended with status {self.process.returncode}")
            time.sleep(min(left, 0.2))

    def end(self):
        stop(self.process)


class Scrub(Reader):
    """headtime scrub of a whole disk from its beginning, at a limited rate in bytes per second if there is one."""

    def __init__(self, headtime, control, directory, rate):
        self.command, self.control, self.rate, self.session = headtime, control, rate, None
        self.journal = os.path.join(directory, f"scrub-{os.getpid()}")
        super().__init__([headtime, "scrub", "--control", control, "--journal", self.journal, "--json"])
        self.began, self.before, self.running = None, 0, True

    def ask(self, *words):
        command = [self.command, "task", *words, "--control", self.control]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            raise ValueError(done.stderr.decode(errors="replace").strip())
        return done.stdout

    def done(self):
        for session in json.loads(self.ask("list", "--json"))["sessions"]:
            self.session = str(session["session"])
            return session["done_bytes"]
        return 0

    def wait_until(self, when):
        if not self.rate:
            super().wait_until(when)
            return
        while time.monotonic() < when:
            done = self.done()
            if self.began is None:
                # What was read while the random reads had not begun is no debt.
                self.began, self.before = time.monotonic(), done
            seconds, runs = rest(done - self.before, time.monotonic() - self.began, self.rate, self.running)
            if runs != self.running and self.session is not None:
                self.ask("resume" if runs else "pause", self.session)
                self.running = runs
            super().wait_until(min(when, time.monotonic() + max(seconds, LOOK_S)))

    def end(self):
        super().end()
        if os.path.exists(self.journal):
            os.unlink(self.journal)


def stop(process):
    """Ends a process that was started here."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def scrub(arguments):
    """Starts what reads the whole disk; None if nothing does."""
    rate = int(arguments.rate * 1e6) if arguments.rate else None
    dd = ["dd", f"if={arguments.device}", "of=/dev/null", "bs=1M", "iflag=direct"]
    # One process with threads: the kernel's counter is then that of all.
    paced = ["fio", "--name=scrub", f"--filename={arguments.device}", "--rw=read", "--bs=1m", "--direct=1",
             "--ioengine=psync", "--thread", "--time_based", "--runtime=86400", f"--rate={rate}"]
    match arguments.scrub:
        case "none":
            return None
        case "dd":
            return Reader(dd)
        case "idle":
            return Reader(["ionice", "-c3", *dd])
        case "idle-rate":
            return Reader([*paced, "--prioclass=3"])
        case "best-effort-rate":
            return Reader([*paced, "--prioclass=2", "--prio=4"])
        case _:
            return Scrub(arguments.headtime, arguments.control, arguments.dir, rate)


def start_random(arguments, said, log):
    """Starts the random reads; figures go to one file, what goes wrong to the other."""
    return subprocess.Popen(
        ["fio", "--name=random", f"--filename={arguments.device}", "--rw=randread", "--bs=4k", "--direct=1",
         "--ioengine=libaio", f"--iodepth={arguments.depth}", "--time_based", f"--ramp_time={RAMP_S:.0f}",
         f"--runtime={arguments.seconds}", "--size=280g", "--randseed=7", "--norandommap", "--lat_percentiles=1",
         "--output-format=json", f"--output={said}"],
        stdout=subprocess.DEVNULL, stderr=log)


def measure(arguments):
    """Random reads for some seconds, beside what the arguments say: their figures."""
    said, errors = (os.path.join(arguments.dir, name) for name in ("random", "random.log"))
    with open(errors, "w", encoding="utf-8") as log:
        load = start_random(arguments, said, log)
    began, background, rate = time.monotonic(), None, 0.0
    try:
        time.sleep(0.5)
        background = scrub(arguments)
        if background:
            # fio needs some tenths of a second before its first read; counted is what is read
            # beside its reads alone.
            background.wait_until(began + RAMP_S + 0.5)
            done, since = background.done(), time.monotonic()
            background.wait_until(began + RAMP_S + arguments.seconds - 0.2)
            rate = (background.done() - done) / (time.monotonic() - since) / 1e6
        load.wait()
    finally:
        stop(load)
        if background:
            background.end()
    if load.returncode:
        with open(errors, encoding="utf-8", errors="replace") as log:
            raise ValueError(f"fio failed with status {load.returncode}: {log.readline().strip()}")
    with open(said, encoding="utf-8") as output:
        figures = random_figures(parsed(output.read()))
    return {**figures, "scrub_mb_s": rate} if background else figures


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "total":
        with open(sys.argv[2], encoding="utf-8") as output:
            print(f"{total(parsed(output.read())):.2f}")
        return
    kinds = ["none", "idle", "dd", "idle-rate", "best-effort-rate", "headtime"]
    flags = argparse.ArgumentParser(usage=__doc__)
    flags.add_argument("what", choices=["random"])
    flags.add_argument("--device", required=True)
    flags.add_argument("--depth", type=int, required=True)
    flags.add_argument("--seconds", type=int, required=True)
    flags.add_argument("--dir", required=True)
    flags.add_argument("--scrub", choices=kinds, default="none")
    flags.add_argument("--rate", type=float)
    flags.add_argument("--headtime")
    flags.add_argument("--control")
    # What was started ends with this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arguments = flags.parse_args()
    if arguments.scrub == "headtime" and not (arguments.headtime and arguments.control):
        flags.error("--scrub headtime: expected --headtime and --control, too")
    if arguments.scrub.endswith("-rate") and not arguments.rate:
        flags.error(f"--scrub {arguments.scrub}: expected --rate, too")
    figures = measure(arguments)
    print("\t".join(f"{name}={value:.3f}" for name, value in figures.items()))


if __name__ == "__main__":
    try:
        main()
    except (KeyError, TypeError, AttributeError) as e:
        sys.exit(f"reads.py: fio's output is not as expected: {type(e).__name__}: {e}")
    except (OSError, ValueError, StopIteration) as e:
        sys.exit(f"reads.py: {e}")
