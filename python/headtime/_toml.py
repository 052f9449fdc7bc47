"""Settings as TOML, the form in which the Rust part takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

from headtime._headtime import HeadtimeError


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        # Python's words for these are TOML's: inf, nan, 1e+20.
        return repr(value)
    if isinstance(value, str | PathLike):
        # JSON's escapes are TOML's, but for one character that JSON leaves as it is.
        return json.dumps(fspath(value)).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(str(k))} = {_value(f'{key}.{k}', v)}" for k, v in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(key, v) for v in value) + "]"
    # A number of NumPy's and the like.
    item = getattr(value, "item", None)
    if callable(item):
        return _value(key, item())
    raise HeadtimeError(f"{key}: expected text, a number, true or false, found {type(value).__name__}")


def dumps(settings: Mapping[str, Any]) -> str:
    """Writes settings as TOML; those that are `None` are left out.

    >>> print(dumps({"disk": "a\\n", "depth": 2, "none": None, "task": [{"think_ms": 1.5}]}), end="")
    "disk" = "a\\n"
    "depth" = 2
    "task" = [{ "think_ms" = 1.5 }]
    """
    lines = (f"{json.dumps(key)} = {_value(key, value)}\n" for key, value in settings.items() if value is not None)
    return "".join(lines)
