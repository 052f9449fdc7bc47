"""Fleets: what a policy does to thousands of disks over years."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike, fspath, getcwd
from pathlib import Path
from typing import Any

from headtime import _headtime
from headtime._toml import dumps


def studies() -> list[str]:
    """Returns the names of the built-in studies."""
    return [name for name, _ in _headtime.built_in_studies()]


def study(name: str) -> str:
    """Returns the text of a built-in study. Raises `KeyError` if there is none of this name."""
    return dict(_headtime.built_in_studies())[name]


class FleetResult:
    """The results of a fleet study. In a notebook it is shown as its page."""

    def __init__(self, text: str, page: str) -> None:
        """Reads the JSON of `headtime fleet`."""
        self._data: dict[str, Any] = json.loads(text)
        self.page = page
        """The page, in HTML."""

    def to_dict(self) -> dict[str, Any]:
        """Returns what `headtime fleet --json` prints; what never ends is `None`."""
        data: dict[str, Any] = json.loads(json.dumps(self._data))
        return data

    @property
    def policies(self) -> dict[str, dict[str, Any]]:
        """What the fleet does, by policy."""
        policies: dict[str, dict[str, Any]] = self._data["policies"]
        return policies

    @property
    def table(self) -> dict[str, list[dict[str, Any]]]:
        """What one disk does, by policy and load."""
        table: dict[str, list[dict[str, Any]]] = self._data["table"]
        return table

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the page to a file."""
        Path(path).write_text(self.page, encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.page


def fleet(study: str | PathLike[str] | Mapping[str, Any]) -> FleetResult:
    """Runs a fleet study: the name of a built-in one, a file, or its tables as a dictionary (docs/fleet.md).

    Raises `HeadtimeError` with the file, and the line or key.
    """
    if isinstance(study, Mapping):
        text, file, folder = dumps(study), "study", getcwd()
    else:
        name = fspath(study)
        built_in = dict(_headtime.built_in_studies())
        path = Path(name)
        if name in built_in and not path.exists():
            text, file, folder = built_in[name], name, ""
        else:
            try:
                text = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as e:
                raise _headtime.HeadtimeError(f"{name}: {e}") from e
            file, folder = name, str(path.parent)
    return FleetResult(*_headtime.fleet(text, file, folder))
