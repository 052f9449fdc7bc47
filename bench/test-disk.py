#!/usr/bin/env python3
"""The same fio jobs on slow disks for tests: nbdkit's delay filter, its spinning plugin, `headtime disk`.

Any user; needs fio with its nbd engine, and nbdkit. Prints a Markdown table (docs/test-disk.md). The delay
is the drive's mean seek and half a revolution. Without its plugin `spinning` (nbdkit 1.40 and later), that
column is left out. On a busy machine a virtual drive is late: the last line says by how much.
"""

import argparse
import contextlib
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

DRIVE = "cheetah36es"
# Data sheet: 10,000 rpm, mean seek 5.2 ms. Mean access: that and half a revolution of 6 ms.
DELAY_MS = 8
GB = 18  # of the drive

# Name, options for fio, whether MB/s is what counts, and what the drive's published figures say of it.
JOBS = [
    ("random reads of 4 KiB, one at a time", "--rw=randread --bs=4k", False, "122/s: 5.2 + 3.0 ms (data sheet)"),
    ("the same, 8 at a time", "--rw=randread --bs=4k --iodepth=8", False, "more than one at a time: the drive sorts"),
    ("the same within 1% of the drive", f"--rw=randread --bs=4k --size={GB * 10}m", False,
     "200 to 330/s: a short seek and 3.0 ms"),
    ("sequential reads of 64 KiB, at the start", "--rw=read --bs=64k", True, "63 MB/s less switches: 738 sectors a track"),
    ("the same, at the end", f"--rw=read --bs=64k --offset={GB - 1}g", True, "49 MB/s less switches: 574 sectors a track"),
    ("random writes of 4 KiB, one at a time", "--rw=randwrite --bs=4k", False, "as reads, and settling"),
    ("the same, each flushed", "--rw=randwrite --bs=4k --fsync=1", False, "as reads, and settling"),
]


@contextlib.contextmanager
def running(command, socket):
    """A server that listens on this socket; its report is the last thing that it prints on stdout."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        until = time.monotonic() + 30
        while not socket.exists():
            if child.poll() is not None or time.monotonic() > until:
                sys.exit(f"test-disk.py: it does not start: {' '.join(map(str, command))}")
            time.sleep(0.05)
        time.sleep(0.2)
        yield child
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
        child.report = child.communicate(timeout=30)[0]


def figures(report):
    """Requests a second, MB/s and mean milliseconds of a report of fio.

    >>> side = {"iops": 120.4, "bw_bytes": 493000, "total_ios": 1204, "lat_ns": {"mean": 8.3e6}}
    >>> figures({"jobs": [{"read": side, "write": {"total_ios": 0}}]})
    (120.4, 0.493, 8.3)
    """
    job = report["jobs"][0]
    side = job["read"] if job["read"]["total_ios"] else job["write"]
    return side["iops"], side["bw_bytes"] / 1e6, side["lat_ns"]["mean"] / 1e6


def measured(uri, options, seconds, at):
    command = ["fio", "--name=j", "--ioengine=nbd", f"--uri={uri}", "--time_based", f"--runtime={seconds}",
               "--output-format=json", "--randseed=7", *options.split()]
    if "--size" not in options and "--offset" not in options:
        command.append(f"--size={GB}g")
    if "--offset" in options:
        command.append("--size=256m")
    said = subprocess.run(command, cwd=at, capture_output=True, text=True)
    if said.returncode:
        sys.exit(f"test-disk.py: {' '.join(command)}: {said.stderr}{said.stdout}")
    return figures(json.loads(said.stdout[said.stdout.index("{"):]))


def has_plugin(name):
    said = subprocess.run(["nbdkit", name, "--version"], capture_output=True, text=True)
    return said.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--headtime", default="headtime", help="the program [default: headtime]")
    parser.add_argument("--seconds", type=int, default=10, help="seconds of each job [default: 10]")
    args = parser.parse_args()
    for program in ["fio", "nbdkit", args.headtime]:
        if not shutil.which(program):
            sys.exit(f"test-disk.py: needs {program}")
    version = subprocess.run(["nbdkit", "--version"], capture_output=True, text=True).stdout.split()[1]
    spinning = has_plugin("spinning")
    with tempfile.TemporaryDirectory() as at:
        at = pathlib.Path(at)
        socket = at / "disk.sock"
        servers = {f"nbdkit {version}, delay {DELAY_MS} ms":
                   ["nbdkit", "-f", "-U", socket, "--filter=delay", "memory", f"{GB}G", f"rdelay={DELAY_MS}ms",
                    f"wdelay={DELAY_MS}ms"]}
        if spinning:
            servers[f"nbdkit {version}, spinning"] = ["nbdkit", "-f", "-U", socket, "spinning", f"{GB}G"]
        servers[f"headtime disk {DRIVE}"] = [args.headtime, "disk", DRIVE, "--backing", at / "disk.img",
                                             "--nbd", f"unix:{socket}", "--json"]
        rows = {name: [] for name, *_ in JOBS}
        lateness = None
        for server, command in servers.items():
            socket.unlink(missing_ok=True)
            with running(command, socket) as child:
                for name, options, _, _ in JOBS:
                    rows[name].append(measured(f"nbd+unix:///?socket={socket}", options, args.seconds, at))
            if "--json" in command:
                lateness = json.loads(child.report)["lateness_us"]
    print("| job | " + " | ".join(servers) + " | the drive's published figures |")
    print("|---" * (len(servers) + 2) + "|")
    for name, _, by_rate, published in JOBS:
        cells = [f"{mb:.0f} MB/s" if by_rate else f"{iops:.0f}/s, {ms:.1f} ms" for iops, mb, ms in rows[name]]
        print(f"| {name} | " + " | ".join(cells) + f" | {published} |")
    if not spinning:
        print(f"\nnbdkit {version} has no plugin `spinning`.")
    print(f"Lateness of headtime's completions: p50 {lateness['p50']} us, p99 {lateness['p99']} us.")


if __name__ == "__main__":
    main()
