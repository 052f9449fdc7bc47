"""Simulations of a drive and its scheduler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from os import PathLike, fspath
from typing import Any, NamedTuple

from headtime import _headtime
from headtime._toml import dumps
from headtime.disk import Kind, Profile, _raw
from headtime.result import Result


class Waiting(NamedTuple):
    """A waiting request, as an order written in Python sees it."""

    kind: Kind
    lbn: int
    sectors: int
    owner: int
    """The number of its application."""
    waited_ms: float
    positioning_ms: float | None
    """The predicted seek and rotational latency, if it is dispatched next; `None` for a flush."""


Order = Callable[[Sequence[Waiting], int], int]
"""An order: returns the index of the request to dispatch next, of those that wait at a time in nanoseconds."""


def simulate(
    scenario: str | PathLike[str] | None = None,
    /,
    *,
    requests_table: bool = False,
    order: str | Order | None = None,
    profile: Profile | str | PathLike[str] | None = None,
    assume: str | None = None,
    **settings: Any,
) -> Result:
    """Runs a workload or a trace on a virtual drive, as the command `headtime simulate` does.

    `settings` are the keys of a scenario (docs/scenarios.md): `disk`, `workload`, `trace`, `admit`, `fill`,
    `background`, `seconds`, `requests`, `seed` and others; `task` and `stream` are lists of dictionaries. They
    override those of `scenario`, a scenario's file.

    `profile`, an object, a name or a file, is used in place of the disk's own. `assume` are bounds for guarantees, as
    the command's `--assume`. With `requests_table`, the result has one row per request.

    `order` is the name of an order, or a function: it gets the waiting requests and the time, and returns the index
    of the one to dispatch next. The interpreter is called for each decision: some ten thousand a second.

    >>> r = simulate(disk="atlas10k", workload="random-4k", requests=200)
    >>> r.foreground.requests
    200
    >>> nearest = lambda waiting, now: min(range(len(waiting)), key=lambda i: waiting[i].positioning_ms)
    >>> r = simulate(workload="random-4k:8", requests=200, order=nearest)
    >>> r.foreground.requests
    200

    Raises `HeadtimeError`, with file and line where there is one.
    """
    function = None
    if callable(order):
        chosen = order

        def function(waiting: list[tuple[Any, ...]], now_ns: int) -> int:
            return chosen([Waiting(*each) for each in waiting], now_ns)

    elif order is not None:
        settings["order"] = order
    large = None
    if isinstance(seed := settings.get("seed"), Integral) and not 0 <= int(seed) < 2**63:
        # TOML's integers end at 2^63, seeds at 2^64.
        large = int(settings.pop("seed"))
        if not 0 <= large < 2**64:
            raise _headtime.HeadtimeError(f"seed: expected a whole number from 0 to {2**64 - 1}, found {large}")
    text, table = _headtime.simulate(
        dumps(settings),
        None if scenario is None else fspath(scenario),
        None if profile is None else _raw(profile),
        large,
        assume,
        requests_table,
        function,
    )
    return Result(text, table)
