"""Drives: profiles, virtual drives in virtual time, and models of where the head is."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from headtime import _headtime

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Noise = Literal["profile", "off", "measured"]
Kind = Literal["read", "write", "flush"]


def profiles() -> list[str]:
    """Returns the names of the built-in drives, oldest first."""
    return _headtime.builtin_names()


class Profile:
    """What is known of a drive: geometry, mechanics, electronics, errors.

    `Profile("atlas10k")` is a built-in drive; another name is a file's, native or DiskSim's.

    Raises `HeadtimeError` with file and line.
    """

    def __init__(self, name: str | PathLike[str]) -> None:
        self._raw = _headtime.Profile(fspath(name))

    @classmethod
    def from_toml(cls, text: str, file: str = "profile.toml") -> Profile:
        """Reads the text of a profile's file; `file` is its name in messages."""
        profile = cls.__new__(cls)
        profile._raw = _headtime.Profile.from_toml(text, file)
        return profile

    def to_toml(self) -> str:
        """Returns the text of the profile's file."""
        return self._raw.to_toml()

    def to_dict(self) -> dict[str, Any]:
        """Returns the profile's file as nested dictionaries."""
        return tomllib.loads(self.to_toml())

    @property
    def name(self) -> str:
        """The short name."""
        return self._raw.name

    @property
    def title(self) -> str:
        """Manufacturer and model."""
        return self._raw.title

    @property
    def sector_bytes(self) -> int:
        """Bytes per sector."""
        return self._raw.sector_bytes

    @property
    def queue_depth(self) -> int:
        """The most commands that the drive takes at a time."""
        return self._raw.queue_depth

    @property
    def write_back(self) -> bool:
        """Whether the drive's write cache is on."""
        return self._raw.write_back

    @property
    def warnings(self) -> list[str]:
        """Oddities of the file."""
        return self._raw.warnings

    def __repr__(self) -> str:
        return f"Profile({self.name!r}: {self.title})"

    def __reduce__(self) -> tuple[Callable[[str], Profile], tuple[str]]:
        # Processes of a pool receive the profile itself: a file need not exist on their machine.
        return Profile.from_toml, (self.to_toml(),)


def _raw(profile: Profile | str | PathLike[str]) -> _headtime.Profile:
    return (profile if isinstance(profile, Profile) else Profile(profile))._raw


@dataclass(frozen=True)
class Completion:
    """A completed command. Times of the head are known only if the drive moved it for the command."""

    id: int
    done_ns: int
    outcome: Literal["ok", "media-error", "dead"]
    start_ns: int | None
    seek_ms: float | None
    rotate_ms: float | None
    transfer_ms: float | None

    @property
    def from_media(self) -> bool:
        """Whether the head moved for it; otherwise it was a cache hit, or a write that was cached."""
        return self.start_ns is not None


class Drive:
    """A virtual drive in virtual time.

    >>> drive = Drive("atlas10k", noise="off")
    >>> drive.submit("read", 1_000_000, 8)
    0
    >>> [round(c.seek_ms + c.rotate_ms, 3) > 0 for c in drive.advance(10**9) if c.seek_ms is not None]
    [True]
    """

    def __init__(self, profile: Profile | str | PathLike[str], seed: int = 0, noise: Noise = "profile") -> None:
        self._raw = _headtime.Drive(_raw(profile), seed, noise)

    @property
    def sectors(self) -> int:
        """The number of usable sectors."""
        return self._raw.sectors

    @property
    def depth(self) -> int:
        """The most commands that it takes at a time."""
        return self._raw.depth

    @property
    def outstanding(self) -> int:
        """The number of commands that are not completed."""
        return self._raw.outstanding

    @property
    def now_ns(self) -> int:
        """The time, in nanoseconds."""
        return self._raw.now_ns

    @property
    def next_event_ns(self) -> int | None:
        """When something happens next; `None` if nothing does without a further command."""
        return self._raw.next_event_ns

    def submit(self, kind: Kind, lbn: int = 0, sectors: int = 0, *, fua: bool = False) -> int:
        """Submits a command now, and returns its number.

        Raises `HeadtimeError` if the queue is full or the range is not on the drive.
        """
        return self._raw.submit(kind, lbn, sectors, fua)

    def advance(self, until_ns: int) -> list[Completion]:
        """Advances the time to `until_ns`, and returns what completed until then, in order."""
        return [Completion(**c) for c in self._raw.advance(until_ns)]

    def plot(self, reads: int = 200, seed: int = 1, ax: Axes | None = None) -> Axes:
        """Reads random blocks, one after another, and draws how long the head took, against the distance.

        Needs matplotlib.
        """
        from headtime.plotting import drive_plot

        return drive_plot(self, reads, seed, ax)


class Position(NamedTuple):
    """Where a block is."""

    cylinder: int
    surface: int
    sector: int
    sectors_per_track: int
    angle: float
    """Of its beginning, in revolutions from the index mark."""


class Access(NamedTuple):
    """The phases of a command, in milliseconds."""

    seek_ms: float
    latency_ms: float
    transfer_ms: float

    @property
    def total_ms(self) -> float:
        """All three together."""
        return self.seek_ms + self.latency_ms + self.transfer_ms


class Model:
    """A profile compiled: where blocks are, and how long the head takes to them.

    >>> m = Model("atlas10k")
    >>> m.position(0).cylinder
    0
    >>> m.seek_ms(0)
    0.0
    """

    def __init__(self, profile: Profile | str | PathLike[str]) -> None:
        self._raw = _headtime.Model(_raw(profile))

    @property
    def sectors(self) -> int:
        """The number of usable sectors."""
        return self._raw.sectors

    @property
    def cylinders(self) -> int:
        """The number of cylinders."""
        return self._raw.cylinders

    @property
    def surfaces(self) -> int:
        """The number of surfaces."""
        return self._raw.surfaces

    @property
    def period_ms(self) -> float:
        """The time of a revolution."""
        return self._raw.period_ms

    def position(self, lbn: int) -> Position:
        """Returns where a block is. Raises `HeadtimeError` if it is not on the drive."""
        return Position(*self._raw.position(lbn))

    def seek_ms(self, distance: int) -> float:
        """Returns the time of a seek over a number of cylinders."""
        return self._raw.seek_ms(distance)

    def access(self, from_lbn: int, lbn: int, sectors: int = 1, *, write: bool = False) -> Access:
        """Returns the phases of a command that starts as the head leaves block `from_lbn`."""
        return Access(*self._raw.access(from_lbn, lbn, sectors, write))
