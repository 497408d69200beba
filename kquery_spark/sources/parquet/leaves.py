"""The leaves of a Parquet file's columns, and a check that their values fit their declared types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

_BOUNDS = {
    pa.int8(): (-(1 << 7), (1 << 7) - 1),
    pa.int16(): (-(1 << 15), (1 << 15) - 1),
    pa.uint8(): (0, (1 << 8) - 1),
    pa.uint16(): (0, (1 << 16) - 1),
}


class Leaf(NamedTuple):
    """A leaf of a column. leaf_index: its number in the file. dtype: its Arrow type."""

    leaf_index: int
    dtype: pa.DataType


def column_leaves(schema: pa.Schema) -> dict[str, list[Leaf]]:
    """The leaves of each column of a file, in the file's order."""
    by_column: dict[str, list[Leaf]] = {}
    start = 0
    for field in schema:
        leaves = [Leaf(start + i, dtype) for i, dtype in enumerate(leaf_types(field.type))]
        by_column[field.name] = leaves
        start += len(leaves)
    return by_column


def leaf_types(dtype: pa.DataType) -> Iterator[pa.DataType]:
    """The types of a column's leaves, in file order: ``struct<a: int, b: list<string>>`` yields int and string."""
    if pa.types.is_nested(dtype) and dtype.num_fields:
        for i in range(dtype.num_fields):
            yield from leaf_types(dtype.field(i).type)
    else:
        yield dtype


def may_exceed_type(leaf: Leaf, groups: Sequence[Any], trusted: bool) -> bool:
    """True if a leaf may store numbers outside the range of its declared type, which Spark and Arrow read differently.

    Parquet stores 8-bit and 16-bit integers in 32 bits, and decimals in wider integers or bytes. groups: pyarrow's row
    groups. trusted: True if the writer never writes such numbers, so that a chunk without statistics is safe.
    """
    if pa.types.is_decimal(leaf.dtype):
        # writers check decimals; old writers have no statistics for them, so missing statistics are accepted
        limit = 10**leaf.dtype.precision - 1
        bounds, trusted = (-limit, limit), True
    elif leaf.dtype in _BOUNDS:
        bounds = _BOUNDS[leaf.dtype]
    else:
        return False
    return any(_may_exceed(bounds, group.column(leaf.leaf_index), trusted) for group in groups)


def _may_exceed(bounds: tuple[int, int], chunk: Any, trusted: bool) -> bool:
    statistics = chunk.statistics
    if statistics is None:
        return bool(chunk.num_values) and not trusted
    if not statistics.has_min_max:
        is_null = statistics.has_null_count and statistics.null_count == chunk.num_values
        return not (is_null or trusted)
    low, high = bounds
    return not low <= _number(statistics.min_raw) <= _number(statistics.max_raw) <= high


def _number(raw: int | bytes) -> int:
    return raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
