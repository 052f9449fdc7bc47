"""What other commands of headtime do: validation, characterisation, the papers' experiments."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Literal

from headtime import _headtime
from headtime.disk import Profile
from headtime.result import Prediction


@dataclass(frozen=True)
class Validation:
    """How a profile's drive compares with a measured one."""

    disk: str
    requests: int
    rms_ms: float
    """The demerit: the rms distance of the two distributions of response times."""
    mean_ms_measured: float
    mean_ms_model: float
    within_200us: float | None
    """Share of the random reads; `None` without any."""
    within_500us: float | None
    prediction: Prediction


@dataclass(frozen=True)
class Characterization:
    """What was found of a drive."""

    profile: Profile
    good: bool
    """Whether head times are predicted well enough to fill gaps."""
    findings: list[dict[str, str]]
    """Each with `what`, `value`, `how` it was measured, and how `sure` it is."""


def validate(
    profile: Profile | str | PathLike[str], trace: str | PathLike[str], *, gap: Literal["before", "after"] = "after"
) -> Validation:
    """Compares a profile's drive with a measured trace in DiskSim's format for validation.

    `gap` says whether the trace's pauses are those before or after their requests, as the command's `--gap`.

    Raises `HeadtimeError` if an argument or the trace is wrong.
    """
    if gap not in ("before", "after"):
        raise _headtime.HeadtimeError(f"gap: expected 'before' or 'after', found {gap!r}")
    chosen = profile if isinstance(profile, Profile) else Profile(profile)
    data = json.loads(_headtime.validate(chosen._raw, fspath(trace), gap == "after"))
    reads = data.pop("random_reads")
    data["prediction"] = Prediction(**data["prediction"])
    return Validation(**data, **reads)


def characterize(profile: Profile | str | PathLike[str], *, seed: int = 1) -> Characterization:
    """Measures the virtual drive of a profile as if it were an unknown one, and returns what was found.

    It takes from seconds to minutes. A real drive is characterised by `headtime characterize DEVICE`.
    """
    chosen = profile if isinstance(profile, Profile) else Profile(profile)
    text, findings, good = _headtime.characterize(chosen._raw, seed)
    return Characterization(Profile.from_toml(text), good, json.loads(findings))


def reproduce(*names: str, quick: bool = False, seed: int = 1) -> list[dict[str, Any]]:
    """Runs experiments with three seeds, and returns one dictionary per claim of their papers.

    `names` are experiments ("F1"), claims ("F1a") or groups ("F"); without any, everything is run, which takes hours.
    Ctrl-C ends it when the running experiments have done their next steps, which takes seconds, and in the longest
    experiments (X) minutes; no results are kept.
    """
    claims: list[dict[str, Any]] = json.loads(_headtime.reproduce(list(names), quick, [seed, seed + 1, seed + 2]))
    return claims
