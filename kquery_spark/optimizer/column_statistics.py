"""What the files of a source say of a column: the smallest and the largest value, and how many values there may be."""

from __future__ import annotations

from typing import Any

from kquery_spark.logical.pruning import comparable
from kquery_spark.sources.base import ColumnRange, Source
from kquery_spark.types import names as t

_SMALL_TABLE_ROWS = 100_000.0  # they bound the values of its columns; of a larger table that says too little
_ONE_BYTE_TEXT_VALUES = 257.0  # and NULL
_SHORT_TEXT_BYTES = 1.5  # strings that take less in files repeat
_REPEATED_TEXT_VALUES = 1000.0


def distinct_count(source: Source, name: str) -> float | None:
    """Upper bound on the number of a column's values, at most one a row and NULL; None if nothing is known."""
    return source.once(("distinct", name), lambda: _find_distinct_count(source, name))


def integer_span(source: Source, name: str) -> tuple[int, int] | None:
    """The smallest and the largest value of a column of whole numbers or dates, if all footers know them."""
    low, high = _limits(source, name)
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def total_rows(source: Source) -> float:
    """Rows of all splits."""
    return float(sum(split.rows for split in source.splits()))


def _find_distinct_count(source: Source, name: str) -> float | None:
    rows = total_rows(source)
    count = _distinct_by_limits(source, name)
    if count is None:
        return max(1.0, rows + 1.0) if rows <= _SMALL_TABLE_ROWS else None
    return max(1.0, min(count, rows + 1.0))


def _distinct_by_limits(source: Source, name: str) -> float | None:
    if not source.splits():
        return 1.0
    low, high = _limits(source, name)
    if isinstance(low, int) and isinstance(high, int):
        return float(high - low + 2)
    if isinstance(low, bytes) and isinstance(high, bytes):
        if len(low) <= 1 and len(high) <= 1:
            return _ONE_BYTE_TEXT_VALUES
    return None if low is None else _repeated_strings(source, name)


def _repeated_strings(source: Source, name: str) -> float | None:
    """Values of a text column that takes so few bytes in its files that they must repeat."""
    if source.schema.field(name).type != t.STRING:
        return None
    bytes_per_row = source.column_bytes([name]) / max(total_rows(source), 1.0)
    return _REPEATED_TEXT_VALUES if bytes_per_row < _SHORT_TEXT_BYTES else None


def _limits(source: Source, name: str) -> tuple[Any, Any]:
    """The smallest and the largest value in the form that literals have; None, None if a footer does not know one."""
    return source.once(("limits", name), lambda: _find_limits(source, name))


def _find_limits(source: Source, name: str) -> tuple[Any, Any]:
    dtype = source.schema.field(name).type
    lows, highs = [], []
    for split in source.splits():
        low, high = _ends(source.ranges(split, name), dtype)
        if low is None or high is None:
            return None, None
        lows.append(low)
        highs.append(high)
    return (min(lows), max(highs)) if lows else (None, None)


def _ends(statistics: ColumnRange | None, dtype: Any) -> tuple[Any, Any]:
    if statistics is None or statistics.low is None or statistics.high is None:
        return None, None
    return comparable(statistics.low, dtype), comparable(statistics.high, dtype)
