"""Settings as TOML, the form in which the Rust part takes them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from os import PathLike, fspath
from typing import Any

from headtime._headtime import HeadtimeError


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    # Numbers of NumPy are of these types, too; their repr() is not a number.
    if isinstance(value, Integral):
        whole = int(value)
        if not -(2**63) <= whole < 2**63:
            raise HeadtimeError(f"{key}: expected a whole number from -2^63 to 2^63 - 1, found {whole}")
        return str(whole)
    if isinstance(value, Real):
        number = float(value)
        if not math.isfinite(number):
            raise HeadtimeError(f"{key}: expected a finite number, found {number}")
        return repr(number)
    if isinstance(value, str | PathLike):
        # JSON's escapes are TOML's, but for one character that JSON leaves as it is.
        return json.dumps(fspath(value)).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(str(k))} = {_value(f'{key}.{k}', v)}" for k, v in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(key, v) for v in value) + "]"
    # Arrays and truth values of NumPy, and the like: lists, numbers.
    to_list = getattr(value, "tolist", None)
    if callable(to_list) and not isinstance(value, type):
        plain = to_list()
        if isinstance(plain, bool | int | float | str | list):
            return _value(key, plain)
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
