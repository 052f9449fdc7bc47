"""Sweeps: the same rows from every executor, from any chunks, and after any interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas
import pytest
from conftest import Command

import headtime as ht

GRID: dict[str, Any] = {
    "scenario": {"workload": "random-4k:4", "requests": 300},
    "grid": {"order": ["fcfs", "sptf"], "depth": [1, 2], "seed": {"from": 1, "to": 5}},
    "list": {"fill": ["none", "headtime"], "background": ["none", "scan"]},
}


def rows(result: ht.SweepResult) -> pandas.DataFrame:
    frame: pandas.DataFrame = result.to_pandas()
    return frame


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> pandas.DataFrame:
    """The rows of one thread."""
    return rows(ht.sweep(GRID, tmp_path_factory.mktemp("one"), workers=1))


def test_each_row_is_that_of_a_simulation(expected: pandas.DataFrame) -> None:
    """All points are there once, and each has the figures of its own run."""
    grid = ht.Grid(**GRID)
    assert len(grid) == len(expected) == 40
    assert list(expected["point"]) == list(range(40))
    for i in (0, 7, 23, 39):
        point, row = grid.point(i), expected.iloc[i]
        assert {key: row[key if key != "seed" else "grid.seed"] for key in point} == point
        if pandas.notna(row["error"]):
            with pytest.raises(ht.HeadtimeError):
                ht.simulate(**GRID["scenario"], **point)
            continue
        r = ht.simulate(**GRID["scenario"], **point)
        assert row["foreground.per_second"] == r.foreground.per_second
        assert row["foreground.response_ms.p99"] == r.foreground.response_ms.p99
        assert row["freeblock.mb_s"] == r.freeblock.mb_s
        assert row["seed"] == point["seed"]


class Losing(Executor):
    """Runs calls here, and loses every third one, as a worker that is gone would."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        future: Future[Any] = Future()
        if self.calls % 3 == 0:
            future.set_exception(OSError("the worker is gone"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_points_of_lost_workers_are_run_by_others(expected: pandas.DataFrame, tmp_path: Path) -> None:
    """Each once."""
    executor = Losing()
    found = rows(ht.sweep(GRID, tmp_path, executor=executor, workers=2))
    assert executor.calls >= 3
    pandas.testing.assert_frame_equal(found, expected, check_exact=True)


def executors() -> Iterator[Any]:
    yield "threads"
    yield "processes"
    yield ThreadPoolExecutor(3)


@pytest.mark.parametrize("executor", list(executors()), ids=["threads", "processes", "executor"])
def test_every_executor_gives_the_same_rows(executor: Any, expected: pandas.DataFrame, tmp_path: Path) -> None:
    """To the last bit."""
    found = rows(ht.sweep(GRID, tmp_path, executor=executor, workers=2))
    pandas.testing.assert_frame_equal(found, expected, check_exact=True)


def test_dask(expected: pandas.DataFrame, tmp_path: Path) -> None:
    """On a local cluster of two processes, one of which is killed."""
    pytest.importorskip("distributed")
    from distributed import Client, LocalCluster

    import headtime.dask

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        killed = False

        def kill(p: ht.Progress) -> None:
            nonlocal killed
            if not killed and p.done > 0:
                killed = True
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

        slow = {**GRID, "scenario": {**GRID["scenario"], "requests": 300}}
        found = rows(ht.sweep(slow, tmp_path, executor=headtime.dask.executor(client), progress=kill))
    assert killed
    pandas.testing.assert_frame_equal(found, expected, check_exact=True)


def test_ray(expected: pandas.DataFrame, tmp_path: Path) -> None:
    """On a local cluster."""
    pytest.importorskip("ray")
    import headtime.ray

    executor = headtime.ray.RayExecutor(num_cpus=2)
    try:
        found = rows(ht.sweep(GRID, tmp_path, executor=executor))
    finally:
        executor.shutdown()
    pandas.testing.assert_frame_equal(found, expected, check_exact=True)


def test_the_command_gives_the_same_rows(command: Command, expected: pandas.DataFrame, tmp_path: Path) -> None:
    """From the same grid as a file."""
    (tmp_path / "grid.toml").write_text(
        '[scenario]\nworkload = "random-4k:4"\nrequests = 300\n'
        '[grid]\norder = ["fcfs", "sptf"]\ndepth = [1, 2]\nseed = { from = 1, to = 5 }\n'
        '[list]\nfill = ["none", "headtime"]\nbackground = ["none", "scan"]\n'
    )
    failed = int(expected["error"].notna().sum())
    command("sweep", tmp_path / "grid.toml", "-o", tmp_path / "rows", status=1 if failed else 0)
    found = ht.SweepResult(tmp_path / "rows", ht.Progress(40, 40, failed, 0), []).to_pandas()
    # The reason names the grid's file.
    columns = [c for c in expected.columns if c != "error"]
    pandas.testing.assert_frame_equal(found[columns], expected[columns], check_exact=True)


SLOW = {
    "scenario": {"workload": "random-4k:4", "requests": 20_000},
    "grid": {"seed": {"from": 1, "to": 120}},
}


def test_a_killed_sweep_goes_on(tmp_path: Path) -> None:
    """What was written stays; the rest is run; each point once."""
    script = f"import headtime as ht; ht.sweep({SLOW!r}, {str(tmp_path)!r}, workers=1, progress=False)"
    child = subprocess.Popen([sys.executable, "-c", script])
    until = time.monotonic() + 60
    while not list(tmp_path.glob("part-*")) and child.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    child.kill()
    child.wait()
    result = ht.sweep(SLOW, tmp_path)
    assert result.damaged == []
    found = rows(result)
    assert list(found["point"]) == list(range(120))
    assert found["foreground.per_second"].nunique() > 100


def test_damaged_parts_are_named_and_run_again(tmp_path: Path, expected: pandas.DataFrame) -> None:
    """A byte that changed, a file that was cut off, a file that is something else."""
    first = ht.sweep(GRID, tmp_path)
    [part] = first.parts
    whole = part.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:200] + bytes([whole[200] ^ 0xFF]) + whole[201:], b"PAR1" * 9):
        part = max(tmp_path.glob("part-*.parquet"))
        part.write_bytes(damaged)
        result = ht.sweep(GRID, tmp_path)
        assert len(result.damaged) == 1 and part.name in result.damaged[0], result.damaged
        pandas.testing.assert_frame_equal(rows(result), expected, check_exact=True)


def test_another_grid_is_not_mixed_in(tmp_path: Path) -> None:
    """Nor do two sweeps run in one directory."""
    small = {"scenario": {"requests": 10}, "grid": {"seed": [1, 2]}}
    ht.sweep(small, tmp_path)
    with pytest.raises(ht.HeadtimeError, match="another one"):
        ht.sweep({"scenario": {"requests": 11}, "grid": {"seed": [1, 2]}}, tmp_path)

    def again(p: ht.Progress) -> None:
        with pytest.raises(ht.HeadtimeError, match="another sweep runs"):
            ht.sweep(small, tmp_path / "b")

    ht.sweep(small, tmp_path / "b", executor=ThreadPoolExecutor(1), progress=again)


SMALL: dict[str, Any] = {"scenario": {"requests": 10}, "grid": {"seed": [1, 2, 3, 4]}}


class Broken(Executor):
    """A pool whose processes are gone."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(BrokenExecutor("gone"))
        return future


@pytest.mark.parametrize("executor", ["threads", "processes", ThreadPoolExecutor(1)])
def test_an_exception_of_progress_ends_the_sweep(executor: Any, tmp_path: Path) -> None:
    """And the directory is free then, though the exception, and with it the call's frame, is kept."""

    def fail(p: ht.Progress) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as kept:
        ht.sweep(SMALL, tmp_path, executor=executor, progress=fail, workers=1)
    assert kept.tb is not None
    assert len(rows(ht.sweep(SMALL, tmp_path))) == 4


def test_a_broken_executor_leaves_the_directory_free(tmp_path: Path) -> None:
    """Though its exception is kept."""
    with pytest.raises(BrokenExecutor) as kept:
        ht.sweep(SMALL, tmp_path, executor=Broken())
    assert kept.tb is not None
    assert len(rows(ht.sweep(SMALL, tmp_path))) == 4


class Shifted(Executor):
    """Runs other points than those that it was given."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        *grid, first, end = args
        future: Future[Any] = Future()
        other = 0 if first else 1
        future.set_result(fn(*grid, other, other + end - first))
        return future


def test_rows_of_other_points_are_not_stored(tmp_path: Path) -> None:
    """They are asked for again, five times at most."""
    message = r"rows of points (\d) to \1: expected the row of point \1, found that of point \d"
    with pytest.raises(ht.HeadtimeError, match=message):
        ht.sweep(SMALL, tmp_path, executor=Shifted(), workers=1)
    assert list(rows(ht.sweep(SMALL, tmp_path))["point"]) == [0, 1, 2, 3]


class Other:
    """Has the interface of an executor, but its futures are others."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        return object()


@pytest.mark.parametrize("executor", ["thread", 3, None, ThreadPoolExecutor, Other()])
def test_wrong_executors_are_refused(executor: Any, tmp_path: Path) -> None:
    """With what was expected."""
    with pytest.raises(ht.HeadtimeError, match="executor: expected 'threads', 'processes' or a concurrent"):
        ht.sweep(SMALL, tmp_path, executor=executor)


def test_a_dask_client_is_no_executor(tmp_path: Path) -> None:
    """The message says how to make one, also of a closed client."""
    pytest.importorskip("distributed")
    from distributed import Client

    with Client(processes=False, n_workers=1, dashboard_address=None) as client:
        with pytest.raises(ht.HeadtimeError, match=r"headtime\.dask\.executor\(client\)"):
            ht.sweep(SMALL, tmp_path, executor=client)
    with pytest.raises(ht.HeadtimeError, match=r"headtime\.dask\.executor\(client\)"):
        ht.sweep(SMALL, tmp_path, executor=client)


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_wrong_numbers_of_workers_are_refused(workers: Any, tmp_path: Path) -> None:
    """With what was found."""
    with pytest.raises(ht.HeadtimeError, match="workers: expected a whole number, 1 or more"):
        ht.sweep(SMALL, tmp_path, workers=workers)


def test_a_grid_of_something_else_is_refused() -> None:
    """Neither a file's name nor tables."""
    wrong: Any = {1: 2}
    with pytest.raises(ht.HeadtimeError, match="Grid: expected a file's name"):
        ht.Grid(wrong)
    with pytest.raises(ht.HeadtimeError, match="expected names of tables, found 1"):
        ht.sweep(wrong, "nowhere")


def test_numbers_of_numpy() -> None:
    """And arrays, whose repr() is no TOML."""
    numpy = pytest.importorskip("numpy")
    grid = ht.Grid(
        scenario={"requests": numpy.int64(10), "seconds": numpy.float64(0.5)},
        grid={"seed": numpy.arange(1, 4), "conservatism_us": [numpy.int32(5)]},
    )
    assert [p["seed"] for p in grid] == [1, 2, 3]
    assert len(ht.Grid(grid={"seconds": numpy.linspace(0.1, 1, 5)})) == 5
    for odd in (float("nan"), numpy.float64("inf")):
        with pytest.raises(ht.HeadtimeError, match="grid.seconds: expected a finite number"):
            ht.Grid(grid={"seconds": [odd]})


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"grid": {"ordr": ["sptf"]}}, "unknown key \"ordr\"; the closest are order"),
        ({"grid": {"order": ["sptff"]}}, "sptff"),
        ({"grid": {"profile.mechanics.rpmm": [7200]}}, "closest are mechanics.rpm"),
        ({"grid": {"depth": []}}, "expected one value or more"),
        ({"grid": {"depth": {"from": 3, "to": 1}}}, "from below to"),
        ({"grid": {"order": ["sptf"]}, "list": {"order": ["sstf"]}}, "each key once"),
        ({"list": {"order": ["sptf"], "depth": [1, 2]}}, "expected 1 values|expected 2 values"),
        ({"random": {"points": 3}}, "random.keys"),
        ({"grdi": {}}, "closest are grid"),
        ({"scenario": {"requests": -1}}, "requests|whole number"),
        ({"grid": {"seed": {"from": 0, "to": 2**40}, "depth": {"from": 1, "to": 2**30}}}, "at most"),
    ],
)
def test_wrong_grids_are_refused(tables: dict[str, Any], message: str) -> None:
    """With what was expected."""
    with pytest.raises(ht.HeadtimeError, match=message):
        ht.Grid(**tables)


def test_a_grid_larger_than_memory() -> None:
    """Points are made when they are asked for."""
    grid = ht.Grid(grid={"seed": {"from": 1, "to": 10**9}, "requests": {"from": 1, "to": 10**6}})
    assert len(grid) == 10**15
    assert grid.point(10**15 - 1) == {"requests": 10**6, "seed": 10**9}


def test_random_designs_are_the_same_again() -> None:
    """And within their ranges."""
    design = {
        "points": 500,
        "seed": 3,
        "keys": {
            "conservatism_us": {"from": 0, "to": 9},
            "seconds": {"from": 0.1, "to": 10.0, "scale": "log"},
            "order": ["sstf", "sptf"],
        },
    }
    a, b = (list(ht.Grid(scenario={"fill": "headtime", "background": "scan"}, random=design)) for _ in range(2))
    assert a == b
    assert {p["conservatism_us"] for p in a} == set(range(10))
    assert all(0.1 <= p["seconds"] <= 10 for p in a)
    below = sum(p["seconds"] < 1 for p in a)
    assert 180 < below < 320, "half of the draws, on a logarithmic scale"


def test_figures_of_a_profile(tmp_path: Path) -> None:
    """A quicker platter serves more."""
    grid = {"scenario": {"requests": 500}, "grid": {"profile.mechanics.rpm": [5400, 10000, 15000]}}
    found = rows(ht.sweep(grid, tmp_path))
    assert found["error"].isna().all(), list(found["error"])
    assert found["foreground.per_second"].is_monotonic_increasing
