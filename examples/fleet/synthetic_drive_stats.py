#!/usr/bin/env python3
"""Writes made-up daily states of drives in Backblaze's format, for the figures of a fleet study.

Every drive, serial number and failure is drawn at random: nothing here describes a real model. Failures come at a
constant rate, which a study that reads the file must find again. A failed drive's place gets a new drive the day after.

    synthetic_drive_stats.py --drives 2000 --days 90 --per-year 0.014 > drive_stats.csv

`synthetic-drive-stats.csv` beside this script is what it writes without arguments. Failures are hundreds of times as
frequent there as in a data centre, so that a few hundred lines have some.
"""

import argparse
import datetime
import math
import random
import sys
from collections.abc import Iterator

FIRST_DAY = datetime.date(2026, 1, 1)
YEAR_DAYS = 365.25
MODEL, SPARE_MODEL = "SYNTHETIC-20T", "SYNTHETIC-4T"
BYTES = {MODEL: 20_000_588_955_648, SPARE_MODEL: 4_000_787_030_016}


def rows(drives: int, days: int, per_year: float, seed: int) -> Iterator[str]:
    """The heading, and a line per drive and day. One in five more drives is of another model, which never fails."""
    draws = random.Random(seed)
    fails = -math.expm1(-per_year / YEAR_DAYS)
    spares = drives // 5
    # The model of each place, and the number of the drive in it.
    places = [(MODEL, i) for i in range(drives)] + [(SPARE_MODEL, drives + i) for i in range(spares)]
    made = len(places)
    yield "date,serial_number,model,capacity_bytes,failure"
    for day in range(days):
        date = FIRST_DAY + datetime.timedelta(days=day)
        for place, (model, number) in enumerate(places):
            failure = model == MODEL and draws.random() < fails
            yield f"{date},SYNTHETIC{number:06},{model},{BYTES[model]},{failure:d}"
            if failure:
                places[place] = (model, made)
                made += 1


def main() -> None:
    """Writes the lines to the standard output."""
    parser = argparse.ArgumentParser(description="Writes made-up daily states of drives in Backblaze's format.")
    parser.add_argument("--drives", type=int, default=16, help="drives of the model that fails [16]")
    parser.add_argument("--days", type=int, default=25, help="days from 2026-01-01 on [25]")
    parser.add_argument("--per-year", type=float, default=8.0, help="failures per drive and year [8]")
    parser.add_argument("--seed", type=int, default=1, help="seed of the failures [1]")
    args = parser.parse_args()
    sys.stdout.writelines(line + "\n" for line in rows(args.drives, args.days, args.per_year, args.seed))


if __name__ == "__main__":
    main()
