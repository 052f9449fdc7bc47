"""Pictures, with matplotlib."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from headtime._headtime import HeadtimeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headtime.disk import Drive
    from headtime.result import Result

PARTS = ("seek", "rotate", "transfer", "free", "idle")


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot
    except ImportError as e:
        raise HeadtimeError("matplotlib is not installed; `pip install 'headtime[plot]'` does") from e
    return matplotlib.pyplot


def result_plot(result: Result) -> Figure:
    """Draws response times by class, and where the head's time went."""
    plt = _pyplot()
    figure, (times, head) = plt.subplots(1, 2, figsize=(9, 3.2), width_ratios=(3, 2), layout="constrained")
    classes = {"all": result.foreground.response_ms}
    classes |= {name: c.response_ms for name, c in result.foreground.by_class.items()}
    for name, r in classes.items():
        points = [(50, r.p50), (95, r.p95), (99, r.p99), (100, r.max)]
        known = [(at, ms) for at, ms in points if ms is not None]
        times.plot([at for at, _ in known], [ms for _, ms in known], marker="o", label=name)
    times.set(xlabel="percentile", ylabel="response time, ms", xticks=[50, 95, 99], title=f"{result.disk}")
    times.legend(frameon=False)
    left = 0.0
    for part in PARTS:
        share = 100 * getattr(result.head_time, part)
        head.barh([0], [share], left=[left], label=f"{part} {share:.1f}%")
        left += share
    head.set(xlabel="share of the time, %", yticks=[], ylim=(-1, 2.2), xlim=(0, 100), title="head time")
    head.legend(frameon=False, ncols=2, loc="upper center")
    made: Figure = figure
    return made


def drive_plot(drive: Drive, reads: int, seed: int, ax: Axes | None) -> Axes:
    """Draws the time of random reads, one after another, against their distance."""
    rng = Random(seed)
    points = []
    at = None
    for _ in range(reads):
        lbn = rng.randrange(drive.sectors - 8)
        drive.submit("read", lbn, 8)
        while drive.outstanding:
            event = drive.next_event_ns
            assert event is not None, "a command is under way"
            for c in drive.advance(event):
                if c.seek_ms is not None and c.rotate_ms is not None and at is not None:
                    points.append((abs(lbn - at), c.seek_ms, c.seek_ms + c.rotate_ms))
        at = lbn
    if ax is None:
        _, ax = _pyplot().subplots(layout="constrained")
    assert ax is not None
    distance = [p[0] / drive.sectors for p in points]
    ax.plot(distance, [p[2] for p in points], ".", label="seek and rotational latency", alpha=0.5)
    ax.plot(distance, [p[1] for p in points], ".", label="seek")
    ax.set(xlabel="distance, share of the disk", ylabel="ms", ylim=(0, None))
    ax.legend(frameon=False)
    return ax
