"""Sweeps: one simulation for each point of a grid, on threads, processes, Dask, Ray or any other executor."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from numbers import Integral
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

from headtime import _headtime
from headtime._toml import dumps

_LOST_MOST = 5
"""How often the same points are given to another worker before the sweep ends with the worker's error."""


class Grid:
    """The points of a sweep (docs/sweeps.md).

    `Grid("grid.toml")` is a file; `Grid(grid={"order": ["sptf", "fcfs"]}, scenario={"requests": 2000})` is the same
    as a dictionary: `scenario`, `grid`, `list` and `random` are the tables of such a file.
    """

    def __init__(self, path: str | PathLike[str] | None = None, /, **tables: Mapping[str, Any]) -> None:
        if path is not None and not isinstance(path, str | PathLike):
            raise _headtime.HeadtimeError(
                f"Grid: expected a file's name, or tables as keywords, found {type(path).__name__}"
            )
        if path is not None:
            if tables:
                raise _headtime.HeadtimeError("Grid: expected a file or tables, found both")
            self._raw = _headtime.Grid.load(fspath(path))
        else:
            # Paths in it are relative to where the caller is.
            self._raw = _headtime.Grid(dumps(tables), "grid", os.getcwd())

    def __len__(self) -> int:
        return len(self._raw)

    @property
    def keys(self) -> list[str]:
        """The keys that change, in the order of the columns."""
        return self._raw.keys

    def point(self, index: int) -> dict[str, Any]:
        """Returns a point's values of these keys."""
        values: dict[str, Any] = json.loads(self._raw.point(index))
        return values

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self.point(i) for i in range(len(self)))

    def __reduce__(self) -> tuple[Callable[[str, str, str], Grid], tuple[str, str, str]]:
        return _grid, (self._raw.text, self._raw.file, self._raw.folder)


def _grid(text: str, file: str, folder: str) -> Grid:
    grid = Grid.__new__(Grid)
    grid._raw = _headtime.Grid(text, file, folder)
    return grid


@dataclass(frozen=True)
class Progress:
    """How far a sweep is."""

    done: int
    total: int
    failed: int
    """Points of this run that could not be run; the column `error` of their rows says why."""
    per_second: float

    @property
    def seconds_left(self) -> float | None:
        """An estimate; `None` at the beginning."""
        return (self.total - self.done) / self.per_second if self.per_second > 0 else None


@dataclass(frozen=True)
class SweepResult:
    """The rows of a sweep: Parquet files in a directory, which pandas, polars and DuckDB read."""

    path: Path
    progress: Progress
    damaged: list[str]
    """Files of an earlier run that could not be used; their points were run again."""

    @property
    def parts(self) -> list[Path]:
        """The files, in the order in which they were written. Rows of one are in the order of points."""
        return sorted(self.path.glob("part-*.parquet"))

    def to_pandas(self) -> Any:
        """Reads all rows, in the order of points. Needs pandas and pyarrow."""
        import pandas

        return pandas.concat(map(pandas.read_parquet, self.parts)).sort_values("point", ignore_index=True)


def _run(text: str, file: str, folder: str, first: int, end: int) -> tuple[bytes, int, float]:
    """Runs points in another process: what an executor calls."""
    return _headtime.Grid(text, file, folder).run(first, end)


def _say(p: Progress) -> None:
    """A progress line, if someone looks at it."""
    left = "" if p.seconds_left is None else f", {p.seconds_left:.0f} s left"
    failed = f", {p.failed} failed" if p.failed else ""
    end = "\n" if p.done == p.total else ""
    line = f"\rsweep: {p.done}/{p.total}, {p.per_second:.1f} points/s{left}{failed} \x1b[K{end}"
    sys.stderr.write(line)
    sys.stderr.flush()


def sweep(
    grid: Grid | str | PathLike[str] | Mapping[str, Any],
    output: str | PathLike[str],
    *,
    executor: Executor | Literal["threads", "processes"] | Any = "threads",
    workers: int | None = None,
    progress: Callable[[Progress], object] | bool | None = None,
) -> SweepResult:
    """Runs a simulation for each point of a grid, and stores one row per point as Parquet in `output`.

    The rows do not depend on the executor. A sweep that was stopped, or killed, continues when it is called again with
    the same grid and directory.

    `executor` is "threads" or "processes" of this machine, or any `concurrent.futures.Executor`, such as
    `dask.distributed.Client(...).get_executor()` and `headtime.ray.RayExecutor()`. Points are handed out in chunks of
    about a second. A chunk of a worker that was lost is given to another one.

    `workers` is the number of threads or processes; with another executor, twice as many chunks are under way at a
    time. The default is the number of processors, or what the executor says that it has.

    `progress` is called as the sweep goes on, and an exception in it ends the sweep; `True` prints a line on stderr,
    and so does the default if stderr is a terminal.

    Raises `HeadtimeError` if an argument is wrong, the directory cannot be used, or an executor returns the rows of
    other points. A point that cannot be run has the reason in its row.
    """
    if workers is not None and not (isinstance(workers, Integral) and not isinstance(workers, bool) and workers > 0):
        raise _headtime.HeadtimeError(f"workers: expected a whole number, 1 or more, found {workers!r}")
    if executor not in ("threads", "processes") and not _is_executor(executor):
        raise _wrong_executor(executor)
    if isinstance(grid, Mapping):
        if odd := [key for key in grid if not isinstance(key, str)]:
            raise _headtime.HeadtimeError(f"grid: expected names of tables, found {odd[0]!r}")
        grid = Grid(**grid)
    elif not isinstance(grid, Grid):
        grid = Grid(grid)
    see: Callable[[Progress], object]
    if callable(progress):
        see = progress
    elif progress or (progress is None and sys.stderr.isatty()):
        see = _say
    else:
        see = lambda _: None  # noqa: E731
    workers = None if workers is None else int(workers)
    run = _headtime.Sweep(grid._raw, fspath(output))
    try:
        if executor == "threads":
            run.on_threads(workers or os.cpu_count() or 1, lambda *p: see(Progress(*p)))
        elif executor == "processes":
            _on_processes(grid, run, workers or os.cpu_count() or 1, see)
        else:
            try:
                _on_executor(grid, run, executor, workers or _workers_of(executor), see)
            finally:
                run.flush()
        return SweepResult(Path(output), Progress(*run.progress()), run.damaged)
    finally:
        # The traceback of an exception keeps the object, and with it the directory's lock.
        run.close()


def _wrong_executor(found: Any) -> _headtime.HeadtimeError:
    expected = "'threads', 'processes' or a concurrent.futures.Executor"
    hint = "; headtime.dask.executor(client) makes one of a Dask client" if _is_of_dask(found) else ""
    return _headtime.HeadtimeError(f"executor: expected {expected}, found {found!r}{hint}")


def _is_executor(found: Any) -> bool:
    """Other classes may have the interface, but a Dask client returns futures of its own."""
    if isinstance(found, type):
        return False
    return isinstance(found, Executor) or (callable(getattr(found, "submit", None)) and not _is_of_dask(found))


def _is_of_dask(found: Any) -> bool:
    cls = found if isinstance(found, type) else type(found)
    return any(base.__module__.partition(".")[0] == "distributed" for base in cls.__mro__)


def _workers_of(executor: Any) -> int:
    """How many chunks an executor runs at a time, if it says so."""
    for name in ("max_workers", "_max_workers"):
        found = getattr(executor, name, None)
        if isinstance(found, int) and found > 0:
            return found
    client = getattr(executor, "_client", None)
    threads = getattr(client, "nthreads", None)
    if callable(threads):
        return max(1, sum(int(n) for n in threads().values()))
    return os.cpu_count() or 1


def _on_processes(grid: Grid, run: _headtime.Sweep, workers: int, see: Callable[[Progress], object]) -> None:
    """Runs on processes of this machine. When one is killed, all are begun anew."""
    lost = 0
    while True:
        before = run.progress()[0]
        # A fork would copy threads' locks as they happen to be.
        pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
        try:
            _on_executor(grid, run, pool, workers, see)
            return
        except BrokenExecutor:
            lost = 0 if run.progress()[0] > before else lost + 1
            if lost >= _LOST_MOST:
                raise
        finally:
            run.flush()
            pool.shutdown(wait=False, cancel_futures=True)


def _on_executor(
    grid: Grid, run: _headtime.Sweep, executor: Any, workers: int, see: Callable[[Progress], object]
) -> None:
    """Hands chunks to an executor until all points are done."""
    raw = grid._raw
    under_way: dict[Future[tuple[bytes, int, float]], tuple[int, int]] = {}
    lost: dict[tuple[int, int], int] = {}
    last = 0.0

    def hand_out() -> None:
        # One chunk for each worker waits, so that none waits for the next.
        while len(under_way) < 2 * workers:
            points = run.take()
            if points is None:
                return
            try:
                future = executor.submit(_run, raw.text, raw.file, raw.folder, *points)
                if not isinstance(future, Future):
                    raise _wrong_executor(executor)
            except BaseException:
                run.give_back(*points)
                raise
            under_way[future] = points

    def lose(points: tuple[int, int]) -> None:
        """Gives points to another worker; raises the current exception after too many tries."""
        run.give_back(*points)
        lost[points] = lost.get(points, 0) + 1
        if isinstance(sys.exception(), BrokenExecutor) or lost[points] >= _LOST_MOST:
            raise

    try:
        hand_out()
        while under_way:
            done, _ = wait(under_way, timeout=0.25, return_when=FIRST_COMPLETED)
            for future in done:
                points = under_way.pop(future)
                try:
                    rows, failed, seconds = future.result()
                except _headtime.HeadtimeError:
                    # The same everywhere.
                    raise
                except Exception:
                    lose(points)
                    continue
                try:
                    run.accept(*points, rows, failed, seconds)
                except _headtime.WrongRowsError:
                    lose(points)
            hand_out()
            now = time.monotonic()
            if now - last >= 0.25 or not under_way:
                last = now
                see(Progress(*run.progress()))
    except BaseException:
        for future, points in under_way.items():
            future.cancel()
            run.give_back(*points)
        raise
