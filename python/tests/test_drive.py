"""Drives, models and profiles."""

from __future__ import annotations

import copy
import pickle
import time
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import Command
from hypothesis import given, settings
from hypothesis import strategies as st

import headtime as ht


def test_profiles(tmp_path: Path, command: Command) -> None:
    """Each built-in drive makes a model, and its text makes the same profile."""
    names = ht.profiles()
    assert "atlas10k" in names and "nearline-20tb" in names
    for name in names:
        profile = ht.Profile(name)
        again = ht.Profile.from_toml(profile.to_toml())
        assert again.to_toml() == profile.to_toml()
        assert ht.Model(profile).sectors == profile.to_dict()["sectors"]
    path = tmp_path / "mine.toml"
    path.write_text(ht.Profile("atlas10k").to_toml())
    assert ht.Profile(path).title == ht.Profile("atlas10k").title
    assert ht.Profile("atlas10k").title in command("profiles", "show", path)


def test_what_is_sent_to_other_processes_is_the_same_there() -> None:
    """Profiles, grids, results with their records and errors can be pickled and copied."""
    profile = pickle.loads(pickle.dumps(ht.Profile("hitachi-7k1000c")))
    assert profile.to_toml() == ht.Profile("hitachi-7k1000c").to_toml()
    grid = copy.deepcopy(ht.Grid(scenario={"requests": 10}, grid={"order": ["sptf", "fcfs"], "seed": [1, 2]}))
    assert list(pickle.loads(pickle.dumps(grid))) == list(grid) and len(grid) == 4
    result = ht.simulate(profile=profile, requests=10, requests_table=True)
    again = pickle.loads(pickle.dumps(result))
    assert again.to_dict() == result.to_dict()
    assert pa.table(again.requests).equals(pa.table(result.requests))
    error = pickle.loads(pickle.dumps(ht.HeadtimeError("grid.toml:3: no")))
    assert isinstance(error, ht.HeadtimeError) and str(error) == "grid.toml:3: no"


@settings(max_examples=50, deadline=None)
@given(lbns=st.lists(st.integers(0, 17_000_000), min_size=2, max_size=20))
def test_a_drive_without_noise_does_what_its_model_says(lbns: list[int]) -> None:
    """Seeks are those of the model; a read takes a revolution and its seek at most, and its transfer."""
    profile = ht.Profile("atlas10k")
    drive, model = ht.Drive(profile, noise="off"), ht.Model(profile)
    at = None
    for lbn in lbns:
        number = drive.submit("read", lbn, 1)
        [done] = drive.advance(drive.now_ns + 10**9)
        assert done.id == number and done.outcome == "ok"
        if done.seek_ms is None or done.rotate_ms is None:
            continue
        assert 0 <= done.rotate_ms <= model.period_ms
        if at is not None:
            here, there = model.position(at), model.position(lbn)
            if here.surface == there.surface:
                assert done.seek_ms == pytest.approx(model.seek_ms(abs(here.cylinder - there.cylinder)), abs=1e-6)
        at = lbn


def test_the_model_agrees_with_itself() -> None:
    """A block's neighbour is next to it, and its access takes its transfer alone."""
    model = ht.Model("atlas10k")
    a, b = model.position(1000), model.position(1001)
    assert (a.cylinder, a.surface, a.sector + 1) == (b.cylinder, b.surface, b.sector)
    access = model.access(1000, 1001)
    assert access.seek_ms == 0 and access.latency_ms < 1e-3
    assert access.transfer_ms == pytest.approx(model.period_ms / a.sectors_per_track, rel=1e-3)
    assert access.total_ms == sum(access)


def test_wrong_input_is_refused() -> None:
    """With what was expected and found."""
    model, drive = ht.Model("atlas10k"), ht.Drive("atlas10k")
    for call in (
        lambda: model.position(model.sectors),
        lambda: model.seek_ms(model.cylinders),
        lambda: model.access(0, model.sectors - 1, 2),
        lambda: drive.submit("reed", 0, 1),  # type: ignore[arg-type]
        lambda: drive.submit("read", drive.sectors, 1),
        lambda: ht.Drive("atlas10k", noise="loud"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ht.HeadtimeError, match="expected|not on a drive"):
            call()
    drive.advance(1000)
    with pytest.raises(ht.HeadtimeError, match="until: expected 1000 ns or later, found 999 ns"):
        drive.advance(999)
    with pytest.raises(OverflowError):
        drive.submit("read", -1, 1)


def test_characterize_and_reproduce() -> None:
    """A virtual drive is found to be what it is; a claim is judged."""
    found = ht.characterize("atlas10k")
    assert found.good
    seeks = next(f["value"] for f in found.findings if f["what"] == "seeks")
    assert seeks.startswith("1.2") and "10041 cylinders" in seeks, seeks
    period = ht.Model(found.profile).period_ms
    assert period == pytest.approx(ht.Model("atlas10k").period_ms, rel=1e-4)
    assert ht.Model(found.profile).sectors == ht.Model("atlas10k").sectors
    [claim] = ht.reproduce("F1a", quick=True)
    assert claim["id"] == "F1a" and isinstance(claim["holds"], bool)


def test_pictures() -> None:
    """Of a result and of a drive."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    figure = ht.simulate(workload="oltp", background="scan", requests=300).plot()
    assert len(figure.axes) == 2
    axes = ht.Drive("atlas10k").plot(reads=50)
    assert len(axes.lines[0].get_path()) > 40


def test_a_long_idle_time_is_short_in_real_time() -> None:
    """Of 292 virtual years as of days."""
    drive = ht.Drive("atlas10k")
    drive.advance(2**63)
    began = time.monotonic()
    drive.submit("read", 1000, 8)
    [done] = drive.advance(2**63 + 10**9)
    assert done.outcome == "ok"
    assert time.monotonic() - began < 5
