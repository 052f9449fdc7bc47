#!/usr/bin/env python3
"""Replays the reads of a recorded start of a program on a block device, and prints the seconds that it took.

usage: start.py TRACE DEVICE
       start.py TRACE --check       says whether there are reads in it

One process reads, one read at a time, with O_DIRECT: what is asked for is what the device is asked for. Columns of a
trace are those of the S benchmark suite: process, seconds since the last request, sectors, first sector, and five more.
"""

import mmap
import os
import sys
import time

SECTOR = 512
# The largest request and the longest pause that a recorded start can have.
MOST_SECTORS, LONGEST_S = 65_536, 3600.0
# Of the time between two reads, what exceeds this is computation; the rest may have been the disk.
DISK_S = 0.020
# Places are folded into this many sectors, the part of the disk where programs lie; distances
# within it stay.
FOLDED_SECTORS = 46_000_000
# Adjacent reads are one, as the kernel's read-ahead would have them.
MOST_BYTES = 128 * 1024


def reads(lines):
    """The reads of a trace's lines, as [first byte, bytes, seconds of thought before it]. Other lines are left out.

    >>> [[at, length, round(think, 3)] for at, length, think in reads([
    ...     "xterm-1 0       8 113314048 Rand -427336 0 RM 4.678005 START",
    ...     "xterm-1 .211790 8 113248520 Rand  -65536 0 RA 4.889795 C",
    ...     "xterm-1 .000049 8 113248528 Seq       0  8 RA 4.889844 C",
    ...     "a line of another kind"])]
    [[10912792576, 4096, 0.0], [10879242240, 8192, 0.192]]
    >>> length = [read[1] for read in reads(f"p 0 8 {8 * i} Seq 0 0 R {i} C" for i in range(40))]
    >>> length
    [131072, 32768]
    >>> reads(["p inf 8 8 Seq 0 0 R 1 C"])
    Traceback (most recent call last):
    ValueError: line 1: expected a pause of at most 3600 s and at most 65536 sectors, found inf and 8
    """
    found = []
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if len(fields) < 9 or not (fields[2].isdecimal() and fields[3].isdecimal()):
            continue
        try:
            think = max(0.0, float(fields[1]) - DISK_S)
        except ValueError:
            think = 0.0
        if not (think <= LONGEST_S and len(fields[2]) < 9 and int(fields[2]) <= MOST_SECTORS):
            raise ValueError(f"line {number}: expected a pause of at most {LONGEST_S:.0f} s and at most {MOST_SECTORS} sectors, "
                             f"found {fields[1]} and {fields[2]}")
        at, length = int(fields[3]) % FOLDED_SECTORS * SECTOR, int(fields[2]) * SECTOR
        if length == 0:
            continue
        last = found[-1] if found else None
        if last and last[0] + last[1] == at and last[1] + length <= MOST_BYTES:
            last[1] += length
        else:
            found.append([at, length, think])
    return found


def replay(device, wanted):
    """Reads what is wanted from a device, and returns the seconds that it took."""
    # Memory of a mapping begins at a page: O_DIRECT needs that.
    buffer = memoryview(mmap.mmap(-1, max(length for _, length, _ in wanted)))
    disk = os.open(device, os.O_RDONLY | os.O_DIRECT)
    try:
        began = time.monotonic()
        for at, length, think in wanted:
            if think > 0:
                time.sleep(think)
            found = os.preadv(disk, [buffer[:length]], at)
            if found != length:
                raise OSError(f"at {at}: expected {length} bytes, found {found}")
        return time.monotonic() - began
    finally:
        os.close(disk)


def main():
    if len(sys.argv) != 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    trace, device = sys.argv[1:]
    try:
        with open(trace, encoding="utf-8", errors="replace") as lines:
            wanted = reads(lines)
        if not wanted:
            print(f"start.py: {trace}: expected reads of a recorded start, found none", file=sys.stderr)
            return 2
        if device == "--check":
            return 0
        print(f"{replay(device, wanted):.2f}")
    except OSError as e:
        print(f"start.py: {trace} on {device}: {e}", file=sys.stderr)
        return 1
    except ValueError as e:
        print(f"start.py: {trace}: {e}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
