"""Parses values of Spark's settings like Spark."""

from __future__ import annotations

import re

from kquery_spark.errors import Unsupported

_SIZE = re.compile(r"([0-9]{1,19})([a-z]*)")
_PLAIN_UNITS = {"b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_UNITS = {**_PLAIN_UNITS, **{f"{unit}b": size for unit, size in _PLAIN_UNITS.items() if unit != "b"}}


def parse_bytes(text: str, unit: int = 1) -> int:
    """Parse a size (``128m``, ``4MB``) to bytes; a value without a unit counts units of ``unit`` bytes.

    Raises Unsupported for a value that Spark does not accept either (``1.5g``), so that Spark raises its own error.
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or (match[2] and match[2] not in _UNITS):
        raise Unsupported(f"a setting has the invalid size {text[:40]!a}")
    return int(match[1]) * (_UNITS[match[2]] if match[2] else unit)


def is_true(text: object) -> bool:
    """Return whether a switch is on; Spark ignores case and spaces, and returns the value as the user wrote it."""
    return str(text).strip().lower() == "true"
