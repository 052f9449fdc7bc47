#!/usr/bin/env python3
"""Compares headtime with the best of the kernel's schedulers, from what run.sh has noted.

usage: report.py NOTES [--json FILE]

A line of NOTES has fields separated by tabs: "setting" and NAME=VALUE, or "figures" and the fields of one measurement.
Ratios are headtime's figure divided by the best one of the kernel's in the same repetition. Printed: the median of all
repetitions, the lowest and the highest. A repetition in which the virtual drive was late is left out: of a row whose
completions were late by more than LATE_MS (p99), one does not know whether the scheduler or the machine was slow. It
is left out for both sides, so that no side loses its best row alone.
"""

import json
import os
import platform
import re
import sys
import tempfile

# 12% of a turn at 7,200/min. 99% of the completions are late by less, so means of 10 ms and more move by far less than
# the ratios' spread.
LATE_MS = 1.0
# Which is better: the lower or the higher one.
FIGURES = {
    "idle_s": min, "loaded_s": min, "readers_mb_s": max,
    "reads_per_s": max, "mean_ms": min, "p99_ms": min, "scrub_mb_s": max,
}
IDLE, ALL = ["bfq", "mq-deadline"], ["bfq", "mq-deadline", "kyber", "none"]
# What is compared: a name, the test, our scheduler and what it scrubs with, and theirs.
COMPARED = [
    ("start-up", "start-up", ["headtime"], "", ALL, ""),
    ("eleven devices against one, no scheduler (none-11 / none)", "start-up", ["none-11"], "", ["none"], ""),
    ("server against drive, no scheduler (fifo-11 / none-11)", "start-up", ["fifo-11"], "", ["none-11"], ""),
    ("random reads alone", "reads", ["headtime"], "none", ALL, "none"),
    ("own scrub rates, the kernel's dd in the idle class", "reads", ["headtime"], "headtime", IDLE, "idle"),
    ("own scrub rates, the kernel's dd in the usual class", "reads", ["headtime"], "headtime", ALL, "dd"),
    ("headtime's scrub rate, the kernel's in the idle class", "reads", ["headtime"], "headtime", IDLE, "idle-rate"),
    ("headtime's scrub rate, the kernel's best-effort", "reads", ["headtime"], "headtime", ALL, "best-effort-rate"),
    ("the idle class's scrub rate, headtime's limited to it", "reads", ["headtime"], "headtime-rate", IDLE, "idle"),
]


# Fields that are names, whatever they look like.
NAMES = {"test", "drive", "trace", "scheduler", "scrub"}


def value_of(name, text):
    """A field's value: a number if the text is one, otherwise the text.

    >>> value_of("depth", "3"), value_of("p99_ms", "0.50"), value_of("headtime", "headtime 0.1"), value_of("trace", "007")
    (3, 0.5, 'headtime 0.1', '007')
    >>> value_of("p99_ms", "nan")
    Traceback (most recent call last):
    ValueError: p99_ms: expected a number, found nan
    """
    if name not in NAMES and re.fullmatch(r"[0-9]+([.][0-9]*)?", text):
        return float(text) if "." in text else int(text)
    if is_figure(name):
        raise ValueError(f"{name}: expected a number, found {text}")
    return text


def noted(lines):
    """Settings and measurements of run.sh's lines.

    >>> figures = "figures\\trepetition=1\\ttest=reads\\tdrive=d\\tscheduler=bfq\\tp99_ms=9.5\\n"
    >>> settings, rows = noted(["setting\\tseconds=30\\n", figures])
    >>> settings
    {'seconds': 30}
    >>> rows
    [{'repetition': 1, 'test': 'reads', 'drive': 'd', 'scheduler': 'bfq', 'figures': {'p99_ms': 9.5}}]
    >>> noted(["figures\\n"])
    Traceback (most recent call last):
    ValueError: expected a measurement with drive, repetition, scheduler, test, found 'figures'
    """
    settings, rows = {}, []
    for line in lines:
        kind, *fields = line.rstrip("\n").split("\t")
        pairs = {name: value_of(name, value) for name, _, value in (field.partition("=") for field in fields)}
        if kind == "setting":
            settings.update(pairs)
        else:
            missing = {"repetition", "test", "drive", "scheduler"} - pairs.keys()
            if missing:
                raise ValueError(f"expected a measurement with {', '.join(sorted(missing))}, found {line.strip()!r}")
            row = {name: value for name, value in pairs.items() if not is_figure(name)}
            rows.append({**row, "figures": {name: value for name, value in pairs.items() if is_figure(name)}})
    return settings, rows


def is_figure(name):
    """Whether a field is measured. The lateness of the drive is measured, too, but it is not compared."""
    return name in FIGURES or name == "late_p99_ms"


def where(row):
    """What a measurement belongs to beside its repetition: test, drive, and trace or depth."""
    return row["test"], row["drive"], row.get("trace", row.get("depth"))


def ratio(ours, theirs):
    """Our figure divided by theirs; None where they have nothing to divide by.

    >>> ratio(6.0, 4.0), ratio(6.0, 0.0)
    (1.5, None)
    """
    return ours / theirs if theirs > 0 else None


def median(values):
    """The middle value, or the mean of the middle two.

    >>> median([3, 1, 2]), median([4, 1, 2, 3])
    (2, 2.5)
    """
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def is_late(row):
    """Whether a measurement's drive was too late.

    >>> is_late({"figures": {"p99_ms": 40.0, "late_p99_ms": 0.9}}), is_late({"figures": {"late_p99_ms": 1.2}})
    (False, True)
    """
    return row["figures"].get("late_p99_ms", 0) > LATE_MS


def best(rows, repetition, place, schedulers, scrub, figure):
    """The best figure of the named schedulers in a repetition, with its scheduler, and whether a drive of theirs was
    late; None if it was not measured."""
    rows = [
        row for row in rows
        if row["repetition"] == repetition and where(row) == place and row["scheduler"] in schedulers
        and row.get("scrub", "") == scrub and figure in row["figures"]
    ]
    if not rows:
        return None
    value, whose = FIGURES[figure]((row["figures"][figure], row["scheduler"]) for row in rows)
    return value, whose, any(map(is_late, rows))


def ratios(rows):
    """Every ratio, paired by repetition: where, what is compared, and the spread.

    Here the kernel's best is bfq in one repetition and none in the other:

    >>> def row(repetition, scheduler, p99):
    ...     return {"repetition": repetition, "test": "reads", "drive": "d", "depth": 4, "scheduler": scheduler,
    ...             "scrub": "none", "figures": {"p99_ms": p99}}
    >>> found = ratios([row(1, "bfq", 10.0), row(1, "none", 20.0), row(1, "headtime", 9.0),
    ...                 row(2, "bfq", 40.0), row(2, "none", 20.0), row(2, "headtime", 24.0)])
    >>> [(r["figure"], r["median"], r["lowest"], r["highest"], r["best"]) for r in found]
    [('p99_ms', 1.05, 0.9, 1.2, ['bfq', 'none'])]

    A figure that one side lacks is left out, and a rate is best if it is high:

    >>> rows = [row(1, "bfq", 10.0), row(1, "none", 20.0), row(1, "headtime", 9.0)]
    >>> rows[0]["figures"]["reads_per_s"] = 100; rows[1]["figures"]["reads_per_s"] = 50
    >>> [r["figure"] for r in ratios(rows)]
    ['p99_ms']
    >>> rows[2]["figures"]["reads_per_s"] = 110
    >>> [(r["figure"], r["median"]) for r in ratios(rows)]
    [('reads_per_s', 1.1), ('p99_ms', 0.9)]

    If one of the kernel's drives was late, be it not the best one's, the repetition does not count:

    >>> rows = [row(n, who, p99) for n in (1, 2) for who, p99 in (("bfq", 10.0), ("none", 20.0), ("headtime", 9.0 * n))]
    >>> rows[4]["figures"]["late_p99_ms"] = 1.5
    >>> [(r["median"], r["each"], r["late"]) for r in ratios(rows)]
    [(0.9, [0.9], [2])]
    """
    repetitions = sorted({row["repetition"] for row in rows})
    places = list(dict.fromkeys(where(row) for row in rows))
    found = []
    for place in places:
        for name, test, we, our_scrub, they, their_scrub in COMPARED:
            if test != place[0]:
                continue
            for figure in FIGURES:
                each, whose, late = [], [], []
                for repetition in repetitions:
                    ours = best(rows, repetition, place, we, our_scrub, figure)
                    theirs = best(rows, repetition, place, they, their_scrub, figure)
                    if ours and theirs and (ours[2] or theirs[2]):
                        late.append(repetition)
                    elif ours and theirs:
                        each.append(ratio(ours[0], theirs[0]))
                        whose.append(theirs[1])
                if each or late:
                    found.append({
                        "test": test, "drive": place[1], "trace" if test == "start-up" else "depth": place[2],
                        "compared": name, "figure": figure, **spread(each), "each": each, "best": whose, "late": late,
                    })
    return found


def spread(each):
    """Median, lowest and highest of the ratios that there are.

    >>> spread([1.5, None, 0.5])
    {'median': 1.0, 'lowest': 0.5, 'highest': 1.5}
    >>> spread([None])
    {'median': None, 'lowest': None, 'highest': None}
    """
    known = [value for value in each if value is not None]
    if not known:
        return {"median": None, "lowest": None, "highest": None}
    return {"median": median(known), "lowest": min(known), "highest": max(known)}


def written(value):
    """A ratio in a table.

    >>> written(1.2345), written(31.27), written(None)
    ('1.234', '31.3', '-')
    """
    return "-" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def table(found):
    """The lines that are printed.

    >>> lines = list(table([{"test": "reads", "drive": "d", "depth": 4, "compared": "random reads alone",
    ...     "figure": "p99_ms", "median": 0.9, "lowest": 0.8, "highest": 12.0, "best": ["bfq", "none", "bfq"],
    ...     "late": [4]}]))
    >>> lines[1]
    'd, 4 random reads under way: random reads alone'
    >>> lines[2].split()
    ['p99_ms', '0.900', '0.800', '12.0', 'lower', '1', 'bfq,', 'none']
    """
    heads = ("headtime / best", "median", "lowest", "highest", "better", "left out", "the best of the kernel's")
    yield "%-16s %8s %8s %8s  %-7s %-9s %s" % heads
    last = None
    for each in found:
        at = f"start of {each['trace']}" if each["test"] == "start-up" else f"{each['depth']} random reads under way"
        title = f"{each['drive']}, {at}: {each['compared']}"
        if title != last:
            last = title
            yield title
        spread_of = [written(each[name]) for name in ("median", "lowest", "highest")]
        better = "lower" if FIGURES[each["figure"]] is min else "higher"
        theirs = ", ".join(sorted(set(each["best"])))
        yield "  %-14s %8s %8s %8s  %-7s %-9s %s" % (each["figure"], *spread_of, better, len(each["late"]), theirs)
    if any(each["late"] for each in found):
        yield f"left out: repetitions in which completions of a virtual drive were late by more than {LATE_MS:.0f} ms (p99)"


def host():
    """What it was measured on."""
    model = None
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)
    except OSError:
        pass
    return {"kernel": platform.release(), "machine": platform.machine(), "processors": os.cpu_count(), "model": model}


def save(path, report):
    """Writes the report beside its name first, so that no half of it is ever found there.

    A link stays, and the file that it names is replaced. What cannot be written whole leaves the old report, and nothing else:

    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = os.path.join(directory, "peers.json")
    ...     save(path, {"seconds": 30})
    ...     try:
    ...         save(path, {"seconds": 3, "then": object()})
    ...     except TypeError:
    ...         print(os.listdir(directory), open(path, encoding="utf-8").read().split())
    ['peers.json'] ['{', '"seconds":', '30', '}']
    """
    path = os.path.realpath(path)
    directory = os.path.dirname(path)
    temporary = tempfile.NamedTemporaryFile("w", dir=directory, prefix=".report-", delete=False, encoding="utf-8")
    try:
        with temporary:
            # A temporary file is for its owner only; the report has the rights of any new file.
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(temporary.fileno(), 0o666 & ~mask)
            json.dump(report, temporary, indent=2)
            temporary.write("\n")
            temporary.flush()
            os.fsync(temporary.fileno())
        os.rename(temporary.name, path)
    except BaseException:
        os.unlink(temporary.name)
        raise


def main():
    arguments = sys.argv[1:]
    if not (len(arguments) == 1 or len(arguments) == 3 and arguments[1] == "--json"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        with open(arguments[0], encoding="utf-8") as lines:
            settings, rows = noted(lines)
        found = ratios(rows)
        for line in table(found):
            print(line)
        if len(arguments) == 3:
            save(arguments[2], {"host": host(), "settings": settings, "measurements": rows, "ratios": found})
    except OSError as e:
        print(f"report.py: {' and '.join(arguments[::2])}: {e}", file=sys.stderr)
        return 1
    except ValueError as e:
        print(f"report.py: {arguments[0]}: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
