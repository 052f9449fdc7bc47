#!/usr/bin/env python3
"""Each figure of `headtime profiles export` beside that of fio on the virtual drive, in real time.

Any user; needs fio with its nbd engine. A server of the virtual drive (`headtime disk`) is started, and
fio runs what the other scheduler's own tool would: random requests over the whole disk for a time, and
sequential ones at places all over it, whose mean is the figure. The exit status is 1 if a figure is more
than 10% from fio's. Other work on the machine delays completions: the last line says how late they were.
"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ALLOWED = 0.1
KIB, MIB = 1 << 10, 1 << 20
# Each figure: reads or writes, random or sequential, bytes, requests at a time, unit.
FIGURES = {
    "ceph": {
        "osd_mclock_max_capacity_iops_hdd": ("write", "random", 4 * KIB, 5, "iops"),
        "osd_mclock_max_sequential_bandwidth_hdd": ("read", "sequential", MIB, 4, "bytes"),
    },
    "iocost": {
        "rbps": ("read", "sequential", MIB, 4, "bytes"),
        "rseqiops": ("read", "sequential", 4 * KIB, 64, "iops"),
        "rrandiops": ("read", "random", 4 * KIB, 64, "iops"),
        "wbps": ("write", "sequential", MIB, 4, "bytes"),
        "wseqiops": ("write", "sequential", 4 * KIB, 64, "iops"),
        "wrandiops": ("write", "random", 4 * KIB, 64, "iops"),
    },
    "seastar": {
        "read_iops": ("read", "random", 4 * KIB, 64, "iops"),
        "read_bandwidth": ("read", "sequential", MIB, 4, "bytes"),
        "write_iops": ("write", "random", 4 * KIB, 64, "iops"),
        "write_bandwidth": ("write", "sequential", MIB, 4, "bytes"),
    },
}


def places(capacity, count):
    """First bytes of `count` places at equal distances, each a multiple of a MiB.

    >>> places(10 * 2**20, 2)
    [0, 5242880]
    """
    return [capacity * i // count // MIB * MIB for i in range(count)]


class Fio:
    """fio on a server's socket."""

    def __init__(self, uri, capacity):
        self.uri, self.capacity, self.got = uri, capacity, {}

    def job(self, rw, size, depth, seconds, offset=0):
        """Requests and bytes per second of one job, after a second without measurement."""
        command = ["fio", "--name=job", "--ioengine=nbd", f"--uri={self.uri}", f"--rw={rw}", f"--bs={size}"]
        command += [f"--iodepth={depth}", "--time_based", f"--runtime={seconds}", "--ramp_time=1"]
        command += [f"--offset={offset}", f"--size={self.capacity - offset}", "--output-format=json", "--randrepeat=1"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"fio failed: {done.stderr.strip() or done.stdout.strip()}")
        text = done.stdout
        way = "write" if "write" in rw else "read"
        found = json.loads(text[text.index("{") :])["jobs"][0][way]
        return found["iops"], found["bw_bytes"]

    def figure(self, way, kind, size, depth, unit, args):
        """One figure; each job is run once, however many figures it has."""
        key = (way, kind, size, depth)
        if key not in self.got:
            if kind == "random":
                self.got[key] = self.job(f"rand{way}", size, depth, args.seconds)
            else:
                each = [self.job(way, size, depth, 2, at) for at in places(self.capacity, args.places)]
                self.got[key] = tuple(sum(figure) / len(each) for figure in zip(*each))
        return self.got[key][0 if unit == "iops" else 1]


def compare(args, drive, at):
    """Prints the rows of one drive; returns whether all are within the rule."""
    socket = pathlib.Path(at) / f"{drive}.sock"
    backing = f"{at}/{drive}.d/"
    command = [args.headtime, "disk", drive, "--backing", backing, "--nbd", f"unix:{socket}"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for _ in range(100):
            if socket.exists() or server.poll() is not None:
                break
            time.sleep(0.1)
        if server.poll() is not None:
            sys.exit(f"headtime disk ended: {server.stdout.read()}")
        size = subprocess.run(["nbdinfo", "--size", f"nbd+unix:///?socket={socket}"], capture_output=True, text=True)
        if size.returncode != 0:
            sys.exit(f"nbdinfo failed: {size.stderr.strip()}")
        fio, holds = Fio(f"nbd+unix:///?socket={socket}", int(size.stdout)), True
        for whose, figures in FIGURES.items():
            export = [args.headtime, "profiles", "export", drive, "--for", whose, "--json"]
            ours = json.loads(subprocess.run(export, capture_output=True, text=True, check=True).stdout)
            for name, job in figures.items():
                theirs = fio.figure(*job, args)
                apart = ours[name] / theirs - 1
                holds &= abs(apart) <= ALLOWED
                scale = 1e6 if job[4] == "bytes" else 1
                print(f"{drive:<18}{whose:<9}{name:<41}{ours[name] / scale:>9.1f}{theirs / scale:>9.1f}{apart:>+8.1%}")
                sys.stdout.flush()
        return holds
    finally:
        server.send_signal(signal.SIGINT)
        said = server.communicate()[0]
        print("\n".join(line for line in said.splitlines() if "late" in line))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("drives", nargs="*", default=["atlas10k", "nearline-20tb"])
    a.add_argument("--headtime", default="target/release/headtime")
    a.add_argument("--seconds", type=int, default=30, help="of each random job")
    a.add_argument("--places", type=int, default=16, help="of each sequential job, 2 s each")
    args = a.parse_args()
    print(f"{'drive':<18}{'for':<9}{'figure (bytes: MB)':<41}{'export':>9}{'fio':>9}{'':>8}")
    with tempfile.TemporaryDirectory() as at:
        return 0 if all([compare(args, drive, at) for drive in args.drives]) else 1


if __name__ == "__main__":
    sys.exit(main())
