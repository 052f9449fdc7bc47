"""Fleets: the same figures as the command's, and wrong studies refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Command

import headtime as ht

STUDY = {
    "title": "Small",
    "disk": "atlas10k",
    "drives": 200,
    "load": {"per_second": 20.0, "spread": 0.4},
    "policies": {"free": "headtime", "slow": "rate:2"},
    "failures": {"per_year": 0.02, "latent_per_year": 0.1},
    "groups": {"pair": {"drives": 2, "survives": 1, "rebuild": "rate:5"}},
}


def test_a_small_fleet(tmp_path: Path, command: Command) -> None:
    """From a dictionary, and the same from a file by the command."""
    ours = ht.fleet(STUDY)
    free, slow = ours.policies["free"], ours.policies["slow"]
    assert free["scan_days"][1] < slow["scan_days"][1]
    # At a light load a request may find the head at work in idle time.
    assert free["mean_ms"] < 1.2 * free["alone"][0]
    pair = free["groups"]["pair"]["durability"]["mttdl_years"]
    assert pair["low"] < pair["value"] < pair["high"]
    assert "<svg" in ours.page and "Small" in ours._repr_html_()
    path = tmp_path / "study.toml"
    path.write_text(
        'title = "Small"\ndisk = "atlas10k"\ndrives = 200\n[load]\nper_second = 20.0\nspread = 0.4\n'
        '[policies]\nfree = "headtime"\nslow = "rate:2"\n[failures]\nper_year = 0.02\nlatent_per_year = 0.1\n'
        '[groups.pair]\ndrives = 2\nsurvives = 1\nrebuild = "rate:5"\n'
    )
    out = tmp_path / "out"
    theirs = json.loads(command("fleet", path, "--json", "-o", out))
    assert theirs == ours.to_dict()
    assert (out / "index.html").read_text() == ours.page
    assert list(free["missed"]) == ["7", "14", "30"]


def test_failures_from_daily_states(tmp_path: Path) -> None:
    """The rate of made-up drives is found again, and the example's file is what the script writes."""
    fleet = ROOT / "examples/fleet"
    script, example = fleet / "synthetic_drive_stats.py", fleet / "synthetic-drive-stats.csv"

    def written(*args: object) -> str:
        run = subprocess.run([sys.executable, script, *map(str, args)], capture_output=True, text=True, check=True)
        return run.stdout

    assert written() == example.read_text()
    path = tmp_path / "days.csv"
    path.write_text(written("--drives", 500, "--days", 200, "--per-year", 0.2))
    study = tmp_path / "study.toml"
    study.write_text(
        'title = "From a file"\ndisk = "atlas10k"\ndrives = 200\n[load]\nper_second = 20.0\nspread = 0.4\n'
        '[policies]\nfree = "headtime"\n[failures]\nfile = "days.csv"\nmodel = "SYNTHETIC-20T"\n'
    )
    found = ht.fleet(study).to_dict()["failures_per_year"]
    assert found["low"] < 0.2 < found["high"] < 2 * found["low"]


def test_wrong_studies() -> None:
    """With file, and line or key."""
    with pytest.raises(ht.HeadtimeError, match="policies.free: expected none, headtime"):
        ht.fleet({**STUDY, "policies": {"free": "fre"}})
    with pytest.raises(ht.HeadtimeError, match="nowhere.toml"):
        ht.fleet("nowhere.toml")
    assert set(ht.studies()) == {"scrub", "rebuild", "write-cache"}
    assert "10,000 drives" in ht.study("scrub")
