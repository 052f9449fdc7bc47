#!/usr/bin/env python3
"""A search and a copy of an export beside the random reads of fio, in real time.

Any user; needs fio with its nbd engine, and nbdcopy. Every server is on a fresh virtual drive. Printed
for each: the rate of the background work, what fio had alone and beside it (requests a second, p99),
and whether the result is right. Patterns are planted at known places, some across the blocks of the
search; the copied export is compared with its source byte for byte.
"""

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

NEEDLE = b"here-the-pattern-is"
CONFIG = """[disk]
drive = "{drive}"
backing = "disk.img"
[listen]
nbd = ["unix:nbd.sock"]
control = "control.sock"
[[export]]
name = "data"
size = "{mib} MiB"
"""


@contextlib.contextmanager
def served(headtime, at, drive, mib):
    """A server in its own directory; yields its control socket and the URI of its export."""
    at.mkdir()
    (at / "serve.toml").write_text(CONFIG.format(drive=drive, mib=mib))
    child = subprocess.Popen([headtime, "serve", "serve.toml"], cwd=at, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 30
        while not ((at / "nbd.sock").exists() and (at / "control.sock").exists()):
            if child.poll() is not None or time.monotonic() > until:
                sys.exit("beside.py: the server does not start")
            time.sleep(0.05)
        yield at / "control.sock", f"nbd+unix:///data?socket={at / 'nbd.sock'}"
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait()


def fio(uri, seconds):
    return subprocess.Popen(
        ["fio", "--name=reads", "--ioengine=nbd", f"--uri={uri}", "--rw=randread", "--bs=8k", "--iodepth=4"]
        + ["--time_based", f"--runtime={seconds}", "--randseed=7", "--output-format=json"],
        stdout=subprocess.PIPE,
        text=True,
    )


def reads(child, ended=False):
    """Requests a second and p99 in ms of a fio that ends now, or by itself."""
    if ended:
        child.send_signal(signal.SIGINT)
    out = child.communicate()[0]
    job = json.loads(out[out.index("{") :])["jobs"][0]["read"]
    return job["iops"], job["clat_ns"]["percentile"]["99.000000"] / 1e6


def fill(uri, mib, seed, needles, at):
    """Writes an export full of what no pattern is in, but for the planted ones; returns their offsets."""
    rng = random.Random(seed)
    data = bytearray(rng.randbytes(1 << 20) * mib)
    size, found = len(data), set()
    while len(found) < needles:
        # Every other one lies across the end of a block of 8 KiB.
        place = rng.randrange(1, size // 8192 - 1) * 8192 - (7 if len(found) % 2 else 4000)
        if all(abs(place - other) > len(NEEDLE) for other in found):
            found.add(place)
            data[place : place + len(NEEDLE)] = NEEDLE
    whole = at / "whole.img"
    whole.write_bytes(data)
    subprocess.run(["nbdcopy", whole, uri], check=True)
    return sorted(found), hashlib.sha256(data).hexdigest()


def beside(command, uri):
    """Runs a command beside fio, and returns its JSON, its seconds, and what fio had."""
    load = fio(uri, 3600)
    time.sleep(2)
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    took = time.monotonic() - began
    had = reads(load, ended=True)
    if done.returncode != 0:
        sys.exit(f"beside.py: {' '.join(map(str, command))}: status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout), took, had


def row(name, mib, took, alone, had, right):
    rate, loss, tail = mib * 1.048576 / took, 1 - had[0] / alone[0], had[1] / alone[1] - 1
    print(f"{name:<8}{rate:>8.1f} MB/s  fio alone {alone[0]:.1f}/s, p99 {alone[1]:.1f} ms;", end=" ")
    print(f"beside {had[0]:.1f}/s", end="")
    print(f" ({-loss:+.1%}), p99 {had[1]:.1f} ms ({tail:+.1%}); {'right' if right else 'WRONG'}")
    return {"what": name, "mb_s": rate, "seconds": took, "alone": alone, "beside": had, "loss": loss, "right": right}


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("headtime", help="the program")
    a.add_argument("--drive", default="hitachi-7k1000c")
    a.add_argument("--mib", type=int, default=512, help="size of the export")
    a.add_argument("--seconds", type=int, default=20, help="how long fio runs alone")
    a.add_argument("--json", action="store_true", help="print one JSON list, too")
    args = a.parse_args()
    for tool in ("fio", "nbdcopy"):
        if not shutil.which(tool):
            sys.exit(f"beside.py: needs {tool}")
    headtime, found = os.path.abspath(args.headtime), []
    with tempfile.TemporaryDirectory() as at:
        at = pathlib.Path(at)
        os.environ["XDG_STATE_HOME"] = str(at / "state")
        with served(headtime, at / "source", args.drive, args.mib) as (control, uri):
            places, digest = fill(uri, args.mib, 1, 40, at)
            alone = reads(fio(uri, args.seconds))
            search = [headtime, "search", NEEDLE.decode(), "--control", control, "--export", "data", "--json"]
            made, took, had = beside(search, uri)
            found.append(row("search", args.mib, took, alone, had, sorted(made["offsets"]) == places))
            # Once more: a busy machine is not as fast all the time.
            alone = reads(fio(uri, args.seconds))
            with served(headtime, at / "destination", args.drive, args.mib) as (to, to_uri):
                copy = [headtime, "copy", to, "--control", control, "--export", "data", "--to-export", "data"]
                _, took, had = beside([*copy, "--live", "--overwrite", "--json"], uri)
                subprocess.run(["nbdcopy", to_uri, at / "copied.img"], check=True)
                same = hashlib.sha256((at / "copied.img").read_bytes()).hexdigest() == digest
                found.append(row("copy", args.mib, took, alone, had, same))
    if args.json:
        print(json.dumps(found))
    return 0 if all(r["right"] for r in found) else 1


if __name__ == "__main__":
    sys.exit(main())
