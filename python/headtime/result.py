"""The result of a simulation, with the keys of `headtime simulate --json` as attributes."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headtime._headtime import Table


@dataclass(frozen=True)
class ResponseMs:
    """A distribution of response times in milliseconds; all `None` without requests."""

    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None
    mean_plus_minus: float | None


@dataclass(frozen=True)
class Class:
    """A class of requests: reads, writes, flushes, or a task of a scenario."""

    requests: int
    response_ms: ResponseMs


@dataclass(frozen=True)
class Foreground:
    """Results of the foreground."""

    requests: int
    errors: int
    refused: int
    per_second: float
    mb_s: float
    response_ms: ResponseMs
    by_class: dict[str, Class]
    measures: dict[str, float]


@dataclass(frozen=True)
class Session:
    """Results of a session of background work."""

    priority: int
    bytes: int
    mb_s: float
    scanned_fraction: float
    scan_seconds: float | None


@dataclass(frozen=True)
class Freeblock:
    """Results of the background."""

    bytes: int
    mb_s: float
    share_of_media_bandwidth: float
    by_foreground_bytes: int
    requests: int
    scanned_fraction: float
    scan_seconds: float | None
    times_stopped: int
    stopped: bool
    not_filled: str | None
    by_session: dict[str, Session]


@dataclass(frozen=True)
class WriteCache:
    """Results of the host's write cache, in bytes and requests."""

    memory: int
    accepted: int
    free: int
    through: int
    hits: int
    misses: int
    dirty: int


@dataclass(frozen=True)
class Prediction:
    """How well head times were predicted, as shares of all samples."""

    samples: int
    within_50us: float | None
    within_150us: float | None
    extra_turn: float | None
    early_turn: float | None


@dataclass(frozen=True)
class HeadTime:
    """Shares of the head time; they sum to 1."""

    seek: float
    rotate: float
    transfer: float
    free: float
    idle: float


@dataclass(frozen=True)
class Cost:
    """Cost of scheduling. Times per decision are measured by the command only."""

    decisions: int
    fill_searches: int
    model_bytes: int
    task_bytes: int


def _take(cls: type[Any], data: dict[str, Any]) -> Any:
    """Makes an object of a dictionary's keys; others are left out."""
    return cls(**{f.name: data[f.name] for f in fields(cls)})


def _class(data: dict[str, Any]) -> Class:
    return Class(requests=data["requests"], response_ms=_take(ResponseMs, data["response_ms"]))


class Result:
    """The result of a simulation."""

    disk: str
    """Name of the disk's profile."""
    seed: int
    """Seed of the run."""
    virtual_seconds: float
    """Duration in virtual time."""
    foreground: Foreground
    freeblock: Freeblock
    write_cache: WriteCache | None
    """`None` without a host's write cache."""
    prediction: Prediction
    head_time: HeadTime
    cost: Cost
    streams: dict[str, Any]
    """Each stream's request and result, by name."""
    guarantees: dict[str, Any] | None
    """Guarantees to streams; `None` without any."""
    requests: Table | None
    """One row per request, if the simulation was asked for it: any reader of Arrow takes it."""

    def __init__(self, text: str, requests: Table | None = None) -> None:
        """Reads the JSON of `headtime simulate`."""
        data = json.loads(text)
        self._data: dict[str, Any] = data
        self.disk = data["disk"]
        self.seed = data["seed"]
        self.virtual_seconds = data["virtual_seconds"]
        foreground = dict(data["foreground"])
        foreground["response_ms"] = _take(ResponseMs, foreground["response_ms"])
        foreground["by_class"] = {name: _class(c) for name, c in foreground["by_class"].items()}
        self.foreground = _take(Foreground, foreground)
        freeblock = dict(data["freeblock"])
        freeblock["by_session"] = {name: _take(Session, s) for name, s in freeblock["by_session"].items()}
        self.freeblock = _take(Freeblock, freeblock)
        self.write_cache = None if data["write_cache"] is None else _take(WriteCache, data["write_cache"])
        self.prediction = _take(Prediction, data["prediction"])
        self.head_time = _take(HeadTime, data["head_time"])
        self.cost = _take(Cost, data["cost"])
        self.streams = data["streams"]
        self.guarantees = data["guarantees"]
        self.requests = requests

    def to_dict(self) -> dict[str, Any]:
        """Returns what `headtime simulate --json` prints, without the times that the machine took."""
        data: dict[str, Any] = json.loads(json.dumps(self._data))
        del data["wall_seconds"]
        for key in [key for key in data["cost"] if key.startswith("ns_per_")]:
            del data["cost"][key]
        return data

    def __eq__(self, other: object) -> bool:
        """Compares the figures; neither the times that the machine took nor the rows of requests count."""
        return self.to_dict() == other.to_dict() if isinstance(other, Result) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def plot(self) -> Figure:
        """Draws response times by class, and where the head's time went. Needs matplotlib."""
        from headtime.plotting import result_plot

        return result_plot(self)

    def __repr__(self) -> str:
        f, b = self.foreground, self.freeblock
        return f"Result({self.disk}, seed {self.seed}: {f.per_second:.1f} requests/s, {b.mb_s:.2f} MB/s free)"
