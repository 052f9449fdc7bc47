#!/usr/bin/env python3
"""Errors of predicted head times on a real drive, from `headtime validate --predictions FILE`.

Only reads count that moved the arm by at least one cylinder, directly behind another such read: there
both the head's position and the angle of the platter are known from the completion before.

A request ends when its last sector has passed, so the difference of observed and predicted time is a
whole number of revolutions (moves that were slower or faster than the table) plus the rest: the delay
of this completion less that of the one before.
"""

import argparse
import csv


def moved(row):
    return row["kind"] == "read" and row["from_cylinder"] != row["to_cylinder"] and float(row["seek_us"]) > 0


def pairs(rows):
    """Returns the reads that moved the arm directly behind one that did, except behind a cache hit.

    >>> row = lambda line, kind, to, seek, surprise="None": {
    ...     "line": str(line), "kind": kind, "from_cylinder": "5", "to_cylinder": str(to), "seek_us": str(seek),
    ...     "surprise": surprise}
    >>> rows = [row(1, "read", 9, 1), row(2, "read", 7, 1), row(4, "read", 8, 1), row(5, "write", 9, 1),
    ...         row(6, "read", 1, 1), row(7, "read", 2, 1, "CacheHit"), row(8, "read", 3, 1)]
    >>> [r["line"] for r in pairs(rows)]
    ['2', '7']
    """
    return [
        row
        for before, row in zip(rows, rows[1:])
        if moved(row)
        and moved(before)
        and before["surprise"] != "CacheHit"
        and int(row["line"]) == int(before["line"]) + 1
    ]


def split(error, turn):
    """Returns the whole revolutions of an error, and the rest.

    >>> split(6010, 6000), split(-5990, 6000), split(-40, 6000)
    ((1, 10), (-1, 10), (0, -40))
    """
    turns = round(error / turn)
    return turns, error - turns * turn


def quantile(values, share):
    """
    >>> quantile([3, 1, 2, 4], 0.5)
    3
    """
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", help="what validate --predictions wrote")
    parser.add_argument("--rpm", type=float, required=True, help="speed of the drive")
    args = parser.parse_args()
    turn = 60e6 / args.rpm
    with open(args.csv, newline="") as file:
        found = pairs(list(csv.DictReader(file)))
    errors = [float(row["observed_us"]) - float(row["predicted_us"]) for row in found]
    parts = [split(error, turn) for error in errors]
    rests = [abs(rest) for _, rest in parts]
    count = len(found)
    share = lambda wanted: 100 * sum(wanted) / count
    print(f"{count} reads")
    near, far = (share(abs(error) <= most for error in errors) for most in (50, 150))
    print(f"within 50 us {near:.1f}%, 150 us {far:.1f}%")
    print(f"revolutions late {share(t > 0 for t, _ in parts):.1f}%, early {share(t < 0 for t, _ in parts):.1f}%")
    quantiles = ", ".join(f"{100 * p:g}%: {quantile(rests, p):.1f}" for p in (0.5, 0.9, 0.95, 0.99))
    print(f"size of the rest in us {quantiles}; more than 150 us {share(r > 150 for r in rests):.1f}%")
    # A late completion shows twice, the second time with the other sign; a wrong position of the head
    # shows once, in the read behind it.
    lines = {int(row["line"]): rest for row, (_, rest) in zip(found, parts)}
    behind = {line: rest for line, rest in lines.items() if line - 1 in lines and abs(lines[line - 1]) <= 150}
    late = [rest for rest in behind.values() if abs(rest) > 150]
    print(f"behind a read that was right: {len(behind)} reads, {len(late)} off: {[round(rest) for rest in late]} us")
    for low, high in ((1, 200), (200, 1_000), (1_000, 3_000), (3_000, 6_000), (6_000, 10**9)):
        distance = lambda row: abs(int(row["from_cylinder"]) - int(row["to_cylinder"]))
        some = [part for row, part in zip(found, parts) if low <= distance(row) < high]
        if some:
            late, early = sum(t > 0 for t, _ in some), sum(t < 0 for t, _ in some)
            print(f"{low} cylinders or more: {len(some)} reads, {late} late, {early} early")


if __name__ == "__main__":
    main()
