"""Sizes in Spark's settings."""

from __future__ import annotations

_UNITS = {"b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}


def parse_bytes(text: str, unit: int = 1) -> int:
    """The bytes of a size as Spark writes it (``128m``, ``4MB``); without a unit, in ``unit`` bytes."""
    text = text.strip().lower()
    digits = text.rstrip("bkmgtp")
    suffix = text[len(digits) :]
    return int(float(digits) * (_UNITS[suffix[0]] if suffix else unit))
