"""Compares the number of values in the leaves of nested columns with the statistics of the file.

Each leaf of a struct stores, in its levels, which structs are NULL, and each leaf of a list stores the lengths. If damage
makes the leaves of a struct disagree, pyarrow uses the levels of the first leaf and Spark those of the last one. Damaged
levels nearly always change the number of values that are not NULL. pyarrow does not compare this number with anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

_WRITER = re.compile(r"(parquet-mr|parquet-cpp-arrow) version (\d+)\.(\d+)")
_FIRST_EXACT_RELEASES = {"parquet-mr": (1, 10), "parquet-cpp-arrow": (10, 0)}
"""The major and minor version of the first release of each writer whose counts are compared. Spark uses parquet-mr."""


def has_exact_counts(created_by: str) -> bool:
    """Return True if the writer of a file counts the NULLs of nested columns as the format defines them.

    A value is also NULL if a struct or list that it belongs to is NULL or empty; some writers do not count these.
    """
    match = _WRITER.match(created_by)
    if match is None:
        return False
    writer, major, minor = match.groups()
    return (int(major), int(minor)) >= _FIRST_EXACT_RELEASES[writer]


def check_value_counts(table: pa.Table, paths: Sequence[str], columns: Sequence[str], group: Any) -> None:
    """Raise ValueError if a leaf of a nested column has another number of values that are not NULL than its statistics say.

    table: the columns of a row group. paths: the paths of all leaves of the file. columns: the columns or leaves that were
    read. group: pyarrow's ``RowGroupMetaData``.
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        if not pa.types.is_nested(field.type):
            continue
        leaves = [
            i
            for i, path in enumerate(paths)
            if path.startswith(f"{field.name}.")
            and any(path == c or path.startswith(f"{c}.") for c in columns)
        ]
        counts = [sum(per_chunk) for per_chunk in zip(*map(_non_null_counts, column.chunks), strict=True)]
        # Without rows, in lists of a fixed size, or if the name of a column has a dot, counts do not correspond to leaves.
        if len(counts) != len(leaves):
            continue
        for leaf, count in zip(leaves, counts, strict=True):
            expected = _expected(group.column(leaf))
            if expected not in (None, count):
                raise ValueError(f"{paths[leaf]} has {count} values instead of {expected}")


def _expected(chunk: Any) -> int | None:
    """Return the number of values in a column chunk that are not NULL; None if its statistics do not say so."""
    statistics = chunk.statistics
    if statistics is None or not statistics.has_null_count:
        return None
    return int(chunk.num_values - statistics.null_count)


def _non_null_counts(array: pa.Array) -> Iterator[int]:
    """Yield, for each leaf, the number of values that are not NULL; nothing for lists of a fixed size."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    dtype = array.type
    if pa.types.is_struct(dtype) and dtype.num_fields:
        # flatten makes the fields of a NULL struct NULL; arrays of required fields do not mark them themselves
        fields = array.flatten() if array.null_count else map(array.field, range(dtype.num_fields))
        for field in fields:
            yield from _non_null_counts(field)
    elif pa.types.is_map(dtype):
        start, end = _span(array)
        yield from _non_null_counts(array.keys.slice(start, end - start))
        yield from _non_null_counts(array.items.slice(start, end - start))
    elif pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        start, end = _span(array)
        yield from _non_null_counts(array.values.slice(start, end - start))
    elif not pa.types.is_nested(dtype):
        yield len(array) - array.null_count


def _span(lists: Any) -> tuple[int, int]:
    """Return the positions of the first element of the first list, and of the end of the last list."""
    offsets = lists.offsets
    return offsets[0].as_py(), offsets[len(lists)].as_py()
