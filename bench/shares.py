#!/usr/bin/env python3
"""Shares of ten exports with weights 1 to 10 behind `headtime serve`, in real time.

Any user; needs fio with its nbd engine. All exports read greedily, one request of each at a time:
`sequential`, or `mixed`, where every other one reads 4 KiB at random places. Printed for each export
is what it was served, and its service per weight over the mean of its kind: 1 is exactly its share.
A mixed disk is shared by time, so that sequential and random exports have different means.

Service is counted in a window in which all of them run. fio's own mean is of no use here: each of its
jobs counts its time from its own first completion, an export of weight 1 waits for seconds for that,
and is then alone on the disk when the others have ended.
"""

import argparse
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

EXPORTS = 10
CONFIG = """[disk]
drive = "{drive}"
backing = "disk.img"
[scheduler]
admit = "{admit}"
outstanding = {outstanding}
fill = "none"
[listen]
nbd = ["unix:nbd.sock"]
control = "control.sock"
"""


def is_random(kind, weight):
    return kind == "mixed" and weight % 2 == 0


def served(log, begin, end):
    """Returns the bytes and the requests in a window, in ms, of a bandwidth log of fio.

    >>> served(["999, 5, 0, 512", "1000, 5, 0, 4096, 0", "1500, 9, 0, 4096, 0", "2000, 5, 0, 512"], 1000, 2000)
    (8192, 2)
    """
    sizes = [int(size) for at, _, _, size in (line.split(",")[:4] for line in log) if begin <= int(at) < end]
    return sum(sizes), len(sizes)


def per_weight(served_bytes, kind):
    """Returns each export's service per weight over the mean of its kind.

    >>> per_weight({1: 10, 3: 60, 2: 4, 4: 8}, "mixed")
    {1: 0.6666666666666666, 3: 1.3333333333333333, 2: 1.0, 4: 1.0}
    """
    rates = {weight: size / weight for weight, size in served_bytes.items()}
    means = {}
    for random in (False, True):
        of_kind = [rate for weight, rate in rates.items() if is_random(kind, weight) == random]
        means[random] = sum(of_kind) / max(len(of_kind), 1)
    return {weight: rate / (means[is_random(kind, weight)] or 1) for weight, rate in rates.items()}


def run(args, kind, outstanding, directory):
    config = CONFIG.format(drive=args.drive, admit=args.admit, outstanding=outstanding)
    jobs = f"[global]\nioengine=nbd\niodepth=1\ntime_based\nsize=2g\nruntime={args.warm_up + args.seconds + 20}\n"
    for weight in range(1, EXPORTS + 1):
        config += f'[[export]]\nname = "e{weight}"\nstart = "{2 * weight - 2} GiB"\nsize = "2 GiB"\nweight = {weight}\n'
        rw, size = ("randread", "4k") if is_random(kind, weight) else ("read", "128k")
        socket = directory / "nbd.sock"
        jobs += f"[e{weight}]\nuri=nbd+unix:///e{weight}?socket={socket}\nrw={rw}\nbs={size}\nwrite_bw_log=e{weight}\n"
    (directory / "config.toml").write_text(config)
    (directory / "jobs.fio").write_text(jobs)
    with open(directory / "serve.log", "w") as log:
        server = subprocess.Popen([args.headtime, "serve", "config.toml"], cwd=directory, stderr=log)
    try:
        begun = time.monotonic()
        while not (directory / "nbd.sock").exists():
            if server.poll() is not None or time.monotonic() > begun + 30:
                sys.exit(f"shares.py: the server does not start: {(directory / 'serve.log').read_text()}")
            time.sleep(0.1)
        done = subprocess.run(["fio", "jobs.fio"], cwd=directory, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"shares.py: fio failed: {done.stderr or done.stdout}")
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
    window = (1000 * args.warm_up, 1000 * (args.warm_up + args.seconds))
    got = {}
    for weight in range(1, EXPORTS + 1):
        (log,) = directory.glob(f"e{weight}_bw*.log")
        with open(log) as lines:
            got[weight] = served(lines, *window)
    relative = per_weight({weight: size for weight, (size, _) in got.items()}, kind)
    exports = [
        {"weight": w, "mb_s": size / 1e6 / args.seconds, "requests_s": n / args.seconds, "per_weight": relative[w]}
        for w, (size, n) in got.items()
    ]
    # The server's last line says how late the virtual drive was.
    lateness = (directory / "serve.log").read_text().splitlines()[-1:]
    return {"kind": kind, "outstanding": outstanding, "exports": exports, "server": lateness}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headtime", nargs="?", help="the program; target/release/headtime, built, where not given")
    parser.add_argument("--kind", choices=["sequential", "mixed"], help="only this one")
    parser.add_argument("--outstanding", type=int, help="requests at the drive; 2 and 32 where not given")
    parser.add_argument("--seconds", type=int, default=100, help="length of the window (%(default)s)")
    parser.add_argument("--warm-up", type=int, default=60, help="seconds before it (%(default)s)")
    parser.add_argument("--drive", default="hitachi-7k1000c", help="one of `headtime profiles` (%(default)s)")
    parser.add_argument("--admit", default="bfq+", help="the policy (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    if args.seconds < 1 or args.warm_up < 0:
        parser.error("expected at least 1 s, and no negative warm-up")
    if not shutil.which("fio"):
        sys.exit("shares.py: needs fio with its nbd engine")
    if not args.headtime:
        root = pathlib.Path(__file__).resolve().parent.parent
        subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", "-p", "headtime"], cwd=root, check=True)
        args.headtime = root / "target/release/headtime"
    args.headtime = pathlib.Path(args.headtime).resolve()
    results = []
    for outstanding in [args.outstanding] if args.outstanding else [2, 32]:
        for kind in [args.kind] if args.kind else ["sequential", "mixed"]:
            with tempfile.TemporaryDirectory(prefix="headtime-shares-") as directory:
                result = run(args, kind, outstanding, pathlib.Path(directory))
            results.append(result)
            if not args.json:
                print(f"{kind}, {outstanding} outstanding; {' '.join(result['server'])}")
                for e in result["exports"]:
                    figures = f"{e['mb_s']:8.3f} MB/s {e['requests_s']:6.1f}/s"
                    print(f"  weight {e['weight']:2}: {figures}; per weight, over the mean {e['per_weight']:.3f}", flush=True)
    if args.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
