#!/usr/bin/env python3
"""One sweep on each engine: points per second, overhead, and whether all rows are the same.

Needs the Python package built with `--release`, pandas and pyarrow; Ray and Dask where they are
measured. The overhead is what an engine loses against `plain`: as many processes as there are
workers, each of which runs its share of a sample of the points in one call, with nothing to hand
out, to collect or to write. Each engine first runs the sample untimed, so that its workers have begun.

`--kill` kills one worker of each engine of processes once a tenth of the points is done.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import headtime
import pandas

WORKERS = os.cpu_count() or 1


def grid(points, requests):
    orders = ["fcfs", "clook", "sstf", "sptf", "sptf-sw:20"]
    depths = [1, 2, 4, 8]
    seeds = max(1, points // (len(orders) * len(depths)))
    return headtime.Grid(
        scenario={"workload": "random-4k:8", "requests": requests},
        grid={"order": orders, "depth": depths, "seed": {"from": 1, "to": seeds}},
    )


def share(args):
    text, first, end = args
    headtime._headtime.Grid(text, "grid", os.getcwd()).run(first, end)


def plain(points, sample):
    """Points per second of bare simulations on all processors. The sample is spread over the grid."""
    text, piece = points._raw.text, 20
    firsts = range(0, len(points) - piece + 1, max(piece, len(points) * piece // sample))
    shares = [(text, first, first + piece) for first in firsts]
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        pool.map(share, [(text, 0, 1)] * WORKERS, chunksize=1)
        began = time.monotonic()
        pool.map(share, shares, chunksize=1)
        return len(shares) * piece / (time.monotonic() - began)


def children(pid):
    found = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in found.splitlines()]
    below, all_below = [pid], []
    while below:
        parent = below.pop()
        kids = [(int(p), args) for p, pp, args in rows if int(pp) == parent]
        all_below += kids
        below += [p for p, _ in kids]
    return all_below


class Killer:
    """Kills a worker once, when a tenth of the points is done."""

    def __init__(self, victim):
        self.victim, self.killed = victim, None

    def __call__(self, progress):
        if self.victim and self.killed is None and progress.done * 10 >= progress.total:
            self.killed = self.victim()
            if self.killed:
                os.kill(self.killed, signal.SIGKILL)


def one_of(is_worker):
    """A process below this one whose command line is a worker's."""
    return lambda: next((pid for pid, args in children(os.getpid()) if is_worker(args)), None)


def engines(names):
    """Yields each engine's name, executor, and how to find one of its workers."""
    if "threads" in names:
        yield "threads", "threads", None
    if "processes" in names:
        yield "processes", "processes", one_of(lambda args: "spawn_main" in args)
    if "ray" in names:
        import headtime.ray

        executor = headtime.ray.RayExecutor(num_cpus=WORKERS)
        yield "ray", executor, one_of(lambda args: args.startswith("ray::_call"))
        executor.shutdown()
    if "dask" in names:
        import headtime.dask
        from distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            yield "dask", headtime.dask.executor(client), lambda: next(iter(client.run(os.getpid).values()))


def rows(result):
    return pandas.concat(map(pandas.read_parquet, result.parts)).sort_values("point", ignore_index=True)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--points", type=int, default=10_000)
    a.add_argument("--requests", type=int, default=20_000, help="requests of each point")
    a.add_argument("--engines", default="threads,processes,ray,dask")
    a.add_argument("--sample", type=int, default=400, help="points of the plain run")
    a.add_argument("--kill", action="store_true", help="kill one worker of each engine of processes")
    a.add_argument("--json", action="store_true")
    args = a.parse_args()
    points, first, found = grid(args.points, args.requests), None, []
    warm = grid(args.sample // 4, max(1, args.requests // 100))
    before = plain(points, args.sample)
    for name, executor, victim in engines(args.engines.split(",")):
        with tempfile.TemporaryDirectory() as at:
            headtime.sweep(warm, pathlib.Path(at) / "warm", executor=executor, workers=WORKERS, progress=False)
            killer = Killer(victim if args.kill else None)
            began = time.monotonic()
            out = pathlib.Path(at) / "rows"
            result = headtime.sweep(points, out, executor=executor, workers=WORKERS, progress=killer)
            took = time.monotonic() - began
            table = rows(result)
        first = table if first is None else first
        same = table.equals(first) and list(table["point"]) == list(range(len(points)))
        row = {"engine": name, "points": len(table), "seconds": took, "points_s": len(table) / took, "same_rows": same}
        found.append(row | {"killed": killer.killed is not None})
        print(f"{name}: {len(table)} points, {took:.1f} s", file=sys.stderr)
    after = plain(points, args.sample)
    rate = (before + after) / 2
    for row in found:
        row["overhead"] = 1 - row["points_s"] / rate
    if args.json:
        json.dump({"workers": WORKERS, "plain_points_s": [before, after], "engines": found}, sys.stdout)
        print()
    else:
        print(f"{WORKERS} workers, {args.requests} requests a point;", end=" ")
        print(f"plain: {before:.1f} points/s before, {after:.1f} after")
        heading = f"{'engine':<12}{'points/s':>10}{'overhead':>10}{'same rows':>11}"
        print(heading + ("  a worker killed" if args.kill else ""))
        for r in found:
            killed = ("yes" if r["killed"] else "no") if args.kill else ""
            same = "yes" if r["same_rows"] else "NO"
            print(f"{r['engine']:<12}{r['points_s']:>10.1f}{r['overhead']:>10.1%}{same:>11}  {killed}")
    return 0 if all(r["same_rows"] for r in found) else 1


if __name__ == "__main__":
    sys.exit(main())
