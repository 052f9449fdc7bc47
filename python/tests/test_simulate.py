"""Simulations: the same figures as the command's, for the same settings and seed."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import _thread
import pytest
from conftest import Command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headtime as ht

WORKLOADS = ["oltp", "random-4k", "random-4k:8", "local-4k:4", "open:40", "5r0w-seq"]


def scenarios() -> st.SearchStrategy[dict[str, Any]]:
    """Settings that go together."""
    filled = st.fixed_dictionaries(
        {
            "fill": st.sampled_from(["headtime", "bw-greedy", "angle-ep-frag", "none"]),
            "background": st.just("scan"),
        }
    )
    return st.builds(
        lambda base, fill: {**base, **fill},
        st.fixed_dictionaries(
            {
                "disk": st.sampled_from(["atlas10k", "cheetah36es", "nearline-20tb"]),
                "workload": st.sampled_from(WORKLOADS),
                "order": st.sampled_from(["fcfs", "sstf", "sptf", "sptf-sw:60"]),
                "noise": st.sampled_from(["profile", "off", "measured"]),
                "requests": st.integers(1, 300),
                "seed": st.integers(0, 2**63 - 1),
            }
        ),
        st.one_of(st.just({}), filled),
    )


def flags(scenario: dict[str, Any]) -> list[str]:
    """The same settings for the command."""
    return [f"--{key.replace('_', '-')}={value}" for key, value in scenario.items()]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scenario=scenarios())
def test_figures_are_those_of_the_command(command: Command, scenario: dict[str, Any]) -> None:
    """Whatever the settings are, key by key."""
    try:
        ours = ht.simulate(**scenario).to_dict()
    except ht.HeadtimeError as e:
        # Then the command refuses it with the same words.
        assert " ".join(str(e).split()) in command("simulate", *flags(scenario), status=2)
        return
    theirs = command.json("simulate", *flags(scenario))
    del theirs["wall_seconds"]
    theirs["cost"] = {key: value for key, value in theirs["cost"].items() if not key.startswith("ns_per_")}
    assert ours == theirs


def test_a_file_and_keywords_over_it(tmp_path: Path, command: Command) -> None:
    """As flags are over a scenario's file."""
    path = tmp_path / "s.toml"
    path.write_text(
        'disk = "cheetah36es"\nrequests = 200\n[[task]]\nname = "a"\ntasks = 3\nthink_ms = 4.0\n'
        '[[task]]\nname = "b"\ntasks = 1\nthink_ms = 9.0\n'
    )
    ours = ht.simulate(path, seed=9, order="sstf")
    theirs = command.json("simulate", path, "--seed", 9, "--order", "sstf")
    assert ours.to_dict()["foreground"] == theirs["foreground"]
    assert sum(ours.foreground.by_class[name].requests for name in "ab") == 200


def test_tables_as_keywords() -> None:
    """Tasks and streams are lists of dictionaries."""
    task = {"name": "log", "rate": 50.0, "reads": 0.0, "size": "4k", "place": "sequential"}
    clients = {"name": "clients", "tasks": 2, "think_ms": 20.0}
    r = ht.simulate(task=[task, clients], seconds=2)
    assert r.foreground.by_class["log"].requests > 50
    stream = {"name": "s", "requests": 2, "period": "500ms", "quality": 0.9, "size": "64k"}
    r = ht.simulate(stream=[stream], admit="das", seconds=3)
    assert r.guarantees is not None and r.streams["s"]


def test_the_attributes_are_those_of_the_json() -> None:
    """Nothing of the result is lost, and nothing is made up."""
    r = ht.simulate(workload="oltp", background="scan", requests=500)
    data = r.to_dict()
    for part in ("foreground", "freeblock", "prediction", "head_time", "cost"):
        ours = getattr(r, part)
        for key, value in data[part].items():
            if not isinstance(value, dict):
                assert getattr(ours, key) == value, (part, key)
    assert r.foreground.response_ms.p99 == data["foreground"]["response_ms"]["p99"]
    assert 0.999 < sum(vars(r.head_time).values()) < 1.001


def test_errors_have_file_and_line(tmp_path: Path) -> None:
    """A wrong file, a wrong name, a wrong type, a wrong profile."""
    path = tmp_path / "s.toml"
    path.write_text('disk = "atlas10k"\nworkload = "oltpp"\n')
    with pytest.raises(ht.HeadtimeError, match=r"s\.toml:2: .*oltpp"):
        ht.simulate(path)
    with pytest.raises(ht.HeadtimeError, match="'nodrive'"):
        ht.simulate(disk="nodrive")
    with pytest.raises(ht.HeadtimeError, match="unknown key"):
        ht.simulate(ordr="sptf")
    with pytest.raises(ht.HeadtimeError, match="depth: expected text"):
        ht.simulate(depth=object())
    with pytest.raises(ht.HeadtimeError, match="whole number"):
        ht.simulate(depth="two")
    text = ht.Profile("atlas10k").to_toml().replace("surfaces = 6", "surfaces = 0")
    with pytest.raises(ht.HeadtimeError, match=r"p\.toml:\d+"):
        ht.Profile.from_toml(text, "p.toml")


def test_numbers_of_numpy() -> None:
    """As those of Python."""
    numpy = pytest.importorskip("numpy")
    ours = ht.simulate(seconds=numpy.float64(0.5), seed=numpy.uint64(7), until_scanned=numpy.bool_(False))
    assert ours == ht.simulate(seconds=0.5, seed=7, until_scanned=False)
    with pytest.raises(ht.HeadtimeError, match="seconds: expected a finite number, found nan"):
        ht.simulate(seconds=float("nan"))


def test_seeds_that_toml_has_not(command: Command) -> None:
    """All 64 bits, as the command has them."""
    for seed in (2**63, 2**64 - 1):
        ours = ht.simulate(requests=50, seed=seed)
        theirs = command.json("simulate", "--requests", 50, "--seed", seed)
        assert ours.seed == theirs["seed"] == seed
        assert ours.to_dict()["foreground"] == theirs["foreground"]
    for seed in (-1, 2**64):
        with pytest.raises(ht.HeadtimeError, match="seed: expected a whole number from 0 to 18446744073709551615"):
            ht.simulate(requests=50, seed=seed)


def test_a_profile_by_name() -> None:
    """As of a drive."""
    by_name = ht.simulate(profile="cheetah36es", requests=50)
    assert by_name == ht.simulate(profile=ht.Profile("cheetah36es"), requests=50)
    assert by_name != ht.simulate(profile="atlas10k", requests=50)


def test_gaps_of_a_trace_are_before_or_after(tmp_path: Path) -> None:
    """Nothing else."""
    odd: Any = "x"
    with pytest.raises(ht.HeadtimeError, match="gap: expected 'before' or 'after', found 'x'"):
        ht.validate("atlas10k", tmp_path / "none", gap=odd)


def test_one_row_per_request() -> None:
    """The rows have the times that the figures are made of."""
    r = ht.simulate(workload="random-4k:4", requests=70_000, requests_table=True)
    table = r.requests
    assert table is not None and len(table) == 70_000
    import pyarrow

    rows = pyarrow.table(table)
    assert rows.column_names == table.column_names
    response = rows["response_ms"].to_numpy()
    assert r.foreground.response_ms.mean == pytest.approx(response.mean(), abs=1e-4)
    assert (rows["done_ns"].to_numpy() >= rows["dispatched_ns"].to_numpy()).all()
    # A table can be read more than once.
    assert pyarrow.table(table).equals(rows)


def test_pandas_polars_and_duckdb_read_it() -> None:
    """Each by its own interface to Arrow."""
    table = ht.simulate(workload="oltp", requests=1_000, requests_table=True).requests
    import duckdb
    import pandas
    import polars
    import pyarrow

    frame = polars.DataFrame(table)
    assert frame.height == 1_000
    by_kind = dict(frame.group_by("kind").len().iter_rows())
    assert by_kind["read"] + by_kind["write"] == 1_000
    arrow = pyarrow.table(table)
    assert len(arrow.to_pandas()) == 1_000
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert len(pandas.DataFrame.from_arrow(table)) == 1_000
    query = duckdb.sql("select kind, count(*) from arrow group by kind")
    assert query is not None
    found = query.fetchall()
    assert {str(kind): n for kind, n in found} == {str(kind): n for kind, n in by_kind.items()}


def test_an_order_in_python() -> None:
    """First come first served is that of the core; the nearest by prediction beats it clearly."""
    base: dict[str, Any] = {"workload": "random-4k:12", "requests": 3_000, "noise": "off"}
    fcfs = ht.simulate(order=lambda waiting, now: 0, **base)
    core = ht.simulate(order="fcfs", **base)
    assert fcfs.foreground.per_second == pytest.approx(core.foreground.per_second, rel=0.002)

    def nearest(waiting: Any, now: int) -> int:
        return min(range(len(waiting)), key=lambda i: waiting[i].positioning_ms)

    sptf = ht.simulate(order=nearest, **base)
    ours = ht.simulate(order="sptf", **base).foreground.per_second
    assert sptf.foreground.per_second == pytest.approx(ours, rel=0.01)
    assert sptf.foreground.per_second > 1.4 * fcfs.foreground.per_second


def test_an_order_that_fails() -> None:
    """Its exception is the caller's; an index that is none is refused; so is a scenario with more than an order."""

    def wrong(waiting: Any, now: int) -> int:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ht.simulate(order=wrong, requests=100)
    with pytest.raises(ht.HeadtimeError, match="order: expected an index below"):
        ht.simulate(order=lambda waiting, now: len(waiting), requests=100)
    for odd in (None, 0.5, -1, 10**30):

        def returns(waiting: Any, now: int, odd: Any = odd) -> Any:
            return odd

        with pytest.raises(ht.HeadtimeError, match=f"order: expected an index below \\d+, found {odd}"):
            ht.simulate(order=returns, requests=100)
    with pytest.raises(ht.HeadtimeError, match="order: a function"):
        ht.simulate(order=lambda waiting, now: 0, background="scan", requests=100)


def test_ctrl_c_ends_a_run_and_other_threads_go_on() -> None:
    """The interpreter's lock is free in a run, and a signal ends it soon."""
    counted = 0
    go = True

    def count() -> None:
        nonlocal counted
        while go:
            counted += 1
            time.sleep(0.001)

    def interrupt() -> None:
        time.sleep(0.4)
        _thread.interrupt_main()

    threads = [threading.Thread(target=count), threading.Thread(target=interrupt)]
    for t in threads:
        t.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ht.simulate(workload="random-4k", seconds=10_000_000)
    go = False
    for t in threads:
        t.join()
    assert time.monotonic() - began < 5
    assert counted > 50


def test_ctrl_c_ends_experiments() -> None:
    """Within the first ones, not after them."""

    def interrupt() -> None:
        time.sleep(1)
        _thread.interrupt_main()

    thread = threading.Thread(target=interrupt)
    thread.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ht.reproduce("F")
    thread.join()
    assert time.monotonic() - began < 15
