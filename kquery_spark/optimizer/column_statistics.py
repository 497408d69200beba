"""Column statistics from file footers: minimum, maximum, and an upper bound on the number of distinct values (NDV).

Parquet footers rarely have distinct counts, so the bounds are derived from other facts. Integers and dates between 10 and
19 have at most 10 values, plus NULL. A table of 500 rows has at most 500 values. Strings that take less than 1.5 bytes per
row in their file must be dictionary-encoded with few entries.
"""

from __future__ import annotations

from typing import Any

from kquery_spark.logical.pruning import comparable
from kquery_spark.sources.base import ColumnRange, Source
from kquery_spark.types import names as t

_SMALL_TABLE_ROWS = 100_000.0  # the row count of a larger table is too loose a bound on the number of values
_ONE_BYTE_STRING_VALUES = 257.0  # 256 bytes and NULL
_REPEATED_STRING_BYTES = 1.5  # strings that take fewer bytes per row in their file must repeat
_REPEATED_STRING_VALUES = 1000.0  # the assumed number of values of such a column


def distinct_count(source: Source, name: str) -> float | None:
    """Return an upper bound on the number of distinct values, NULL included; None if nothing is known.

    It is at least 1 and at most the number of rows plus one.
    """
    return source.once(("distinct", name), lambda: _find_distinct_count(source, name))


def integer_span(source: Source, name: str) -> tuple[int, int] | None:
    """Return minimum and maximum of a column of integers or dates (days since 1970); None if a footer lacks them."""
    low, high = _min_max(source, name)
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def total_rows(source: Source) -> float:
    """Return the number of rows of all splits."""
    return float(sum(split.rows for split in source.splits()))


def _find_distinct_count(source: Source, name: str) -> float | None:
    rows = total_rows(source)
    count = _distinct_by_min_max(source, name)
    # Without other facts, the row count of a small table is still a useful bound.
    if count is None:
        return max(1.0, rows + 1.0) if rows <= _SMALL_TABLE_ROWS else None
    return max(1.0, min(count, rows + 1.0))


def _distinct_by_min_max(source: Source, name: str) -> float | None:
    if not source.splits():
        return 1.0
    low, high = _min_max(source, name)
    if isinstance(low, int) and isinstance(high, int):
        return float(high - low + 2)  # all integers from low to high, and NULL
    if isinstance(low, bytes) and isinstance(high, bytes):
        # Flags such as 'A', 'N', 'R': the maximum of a column with longer strings is almost never a single byte.
        if len(low) <= 1 and len(high) <= 1:
            return _ONE_BYTE_STRING_VALUES
    return None if low is None else _distinct_by_string_bytes(source, name)


def _distinct_by_string_bytes(source: Source, name: str) -> float | None:
    """Return a bound for a string column that takes so few bytes in its files that its values must repeat."""
    if source.schema.field(name).type != t.STRING:
        return None
    bytes_per_row = source.column_bytes([name]) / max(total_rows(source), 1.0)
    return _REPEATED_STRING_VALUES if bytes_per_row < _REPEATED_STRING_BYTES else None


def _min_max(source: Source, name: str) -> tuple[Any, Any]:
    """Return minimum and maximum over all splits as values of literals; (None, None) if a footer lacks one of them."""
    return source.once(("limits", name), lambda: _find_min_max(source, name))


def _find_min_max(source: Source, name: str) -> tuple[Any, Any]:
    dtype = source.schema.field(name).type
    lows, highs = [], []
    for split in source.splits():
        low, high = _as_literal_values(source.ranges(split, name), dtype)
        if low is None or high is None:
            return None, None
        lows.append(low)
        highs.append(high)
    return (min(lows), max(highs)) if lows else (None, None)


def _as_literal_values(statistics: ColumnRange | None, dtype: Any) -> tuple[Any, Any]:
    if statistics is None or statistics.low is None or statistics.high is None:
        return None, None
    return comparable(statistics.low, dtype), comparable(statistics.high, dtype)
