"""The calendar of a Parquet file's dates and times, and the rebase from the hybrid calendar to the Gregorian one.

Spark before 3.0 (for INT96: before 3.1) wrote dates and times in the hybrid calendar: Julian before 1582, Gregorian since
then. Later releases do so only by a setting, and then write a key into the footer. Files of other writers do not name a
calendar. For these, Spark's settings and reader options select a mode: CORRECTED (Gregorian), LEGACY (hybrid), or EXCEPTION
(refuse old values). Spark's rules are in ``DataSourceUtils``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.errors import SourceError
from kquery_spark.sources.hybrid_calendar import (
    GREGORIAN_START_DAY,
    REBASE_END_MICROS,
    HybridZone,
    gregorian_days,
    gregorian_micros,
)
from kquery_spark.sources.parquet.leaves import Leaf, column_leaves
from kquery_spark.types import names as t
from kquery_spark.types.arrow_types import LISTS, is_any
from kquery_spark.types.vector import Int64s, own_bitmap, slots

CORRECTED, LEGACY, EXCEPTION = MODES = ("CORRECTED", "LEGACY", "EXCEPTION")

DATE, TIMESTAMP, INT96 = "date", "timestamp", "int96"

SPARK_VERSION_KEY = b"org.apache.spark.version"
_ZONE_KEY = b"org.apache.spark.timeZone"
_DATETIME_KEY, _INT96_KEY = b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"
# The first releases that write Gregorian days by default.
_DATETIME_VERSION, INT96_VERSION = b"3.0.0", b"3.1.0"
_LIMITS = {"ms": REBASE_END_MICROS // 1000, "us": REBASE_END_MICROS, "ns": REBASE_END_MICROS * 1000}


@dataclass(frozen=True)
class RebaseSettings:
    """How old dates and times are read.

    datetime, int96: the modes for files of other writers. default_zone: the time zone of hybrid-calendar files that do not
    name one; None if it is unknown. zones: the time zones whose rebase tables are available.
    """

    datetime: str = CORRECTED
    int96: str = CORRECTED
    default_zone: str | None = "UTC"
    zones: tuple[HybridZone, ...] = (HybridZone("UTC"),)

    def modes(self, footer: Mapping[bytes, bytes]) -> tuple[str, str]:
        """The modes of a file for dates and INT64 times, and for INT96 times. footer: its key-value pairs."""
        version = footer.get(SPARK_VERSION_KEY)
        if version is None:
            return self.datetime, self.int96
        old_datetime = version < _DATETIME_VERSION or _DATETIME_KEY in footer
        old_int96 = version < INT96_VERSION or _INT96_KEY in footer
        return LEGACY if old_datetime else CORRECTED, LEGACY if old_int96 else CORRECTED

    def zone_of(self, footer: Mapping[bytes, bytes]) -> str | None:
        """The time zone of a file in the hybrid calendar. footer: its key-value pairs."""
        named = footer.get(_ZONE_KEY)
        return self.default_zone if named is None else named.decode(errors="replace")


CORRECTED_ALL = RebaseSettings()
"""Files that do not name a calendar are read in the Gregorian one."""


@dataclass(frozen=True)
class TimeLeaf:
    """A leaf with dates or times.

    leaf_index: its number in the file. limit: values from this one on are the same in both calendars.
    """

    leaf_index: int
    kind: str
    limit: int


@dataclass(frozen=True)
class ColumnRebase:
    """How the values of a column are rebased.

    leaves: the leaves to rebase, by their numbers in the column. modes: the mode of each kind of leaf. zone: None if the
    time zone is unknown.
    """

    leaves: Mapping[int, TimeLeaf]
    modes: Mapping[str, str]
    zone: HybridZone | None

    @property
    def is_refused(self) -> bool:
        """True if Spark refuses to read old values of the column."""
        return any(self.modes[leaf.kind] == EXCEPTION for leaf in self.leaves.values())

    @property
    def needs_zone(self) -> bool:
        """True if a leaf has times to rebase, which depends on the rules of a time zone; dates do not."""
        return any(leaf.kind != DATE and self.modes[leaf.kind] == LEGACY for leaf in self.leaves.values())

    def apply(self, data: pa.ChunkedArray, dtype: pa.DataType) -> pa.ChunkedArray:
        """Rebase the values of the column. dtype: the column's type in the table."""
        chunks = [self._rebase(chunk, dtype, itertools.count()) for chunk in data.chunks]
        return pa.chunked_array(chunks) if chunks else data

    def _rebase(self, data: pa.Array, dtype: pa.DataType | None, leaf_numbers: Iterator[int]) -> pa.Array:
        """Rebase the column or a nested part of it, depth first.

        dtype: its type in the table; None if the table lacks the field. leaf_numbers: a counter that is advanced once per
        leaf, so that the numbers match ``leaves``.
        """
        kind = data.type
        if pa.types.is_struct(kind):
            return self._struct(data, dtype, leaf_numbers)
        if pa.types.is_map(kind):
            return self._map(data, dtype, leaf_numbers)
        if is_any(kind, LISTS):
            values = self._rebase(data.values, None if dtype is None else dtype.value_type, leaf_numbers)
            return _with_child(data, _list_of(kind, kind.value_field.with_type(values.type)), values)
        leaf = self.leaves.get(next(leaf_numbers))
        if leaf is None or dtype is None or dtype == t.TIMESTAMP_NTZ or self.modes[leaf.kind] == CORRECTED:
            return data
        return self._leaf(data, leaf)

    def _map(self, data: pa.Array, dtype: pa.DataType | None, leaf_numbers: Iterator[int]) -> pa.Array:
        key_type, item_type = (None, None) if dtype is None else (dtype.key_type, dtype.item_type)
        keys = self._rebase(data.keys, key_type, leaf_numbers)
        items = self._rebase(data.items, item_type, leaf_numbers)
        fields = data.type.key_field.with_type(keys.type), data.type.item_field.with_type(items.type)
        entries = pa.StructArray.from_arrays([keys, items], fields=list(fields))
        return _with_child(data, pa.map_(*fields), entries)

    def _struct(self, data: pa.Array, dtype: pa.DataType | None, leaf_numbers: Iterator[int]) -> pa.Array:
        target_types = {} if dtype is None else {field.name: field.type for field in dtype}
        parts = [
            self._rebase(data.field(i), target_types.get(f.name), leaf_numbers)
            for i, f in enumerate(data.type)
        ]
        if not parts:
            return data
        fields = [f.with_type(p.type) for f, p in zip(data.type, parts, strict=True)]
        mask = data.is_null() if data.null_count else None
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)

    def _leaf(self, data: pa.Array, leaf: TimeLeaf) -> pa.Array:
        if self.modes[leaf.kind] == EXCEPTION or (leaf.kind != DATE and self.zone is None):
            raise SourceError("a date before 1582 or a time before 1900 in a calendar that is not known")
        if leaf.kind == DATE:
            return _with_values(data, gregorian_days(slots(data).astype(np.int64)).astype(np.int32))
        data = data.cast(pa.timestamp("us", tz=data.type.tz))
        assert self.zone is not None
        return _with_values(data, gregorian_micros(slots(data), self.zone))


def time_leaves(schema: pa.Schema, leaves: Sequence[Any]) -> dict[str, dict[int, TimeLeaf]]:
    """The leaves with dates or times of each column, by their numbers in the column.

    schema: the Arrow schema of the file. leaves: pyarrow's ``ColumnSchema`` of each leaf.
    """
    by_column: dict[str, dict[int, TimeLeaf]] = {}
    for column, parts in column_leaves(schema).items():
        times = {i: _time_leaf(part, leaves[part.leaf_index]) for i, part in enumerate(parts)}
        known = {i: leaf for i, leaf in times.items() if leaf is not None}
        if known:
            by_column[column] = known
    return by_column


def may_be_old(leaf: TimeLeaf, groups: Sequence[Any]) -> bool:
    """True if a leaf may have a value that differs between the two calendars. groups: pyarrow's row groups."""
    return any(_may_be_old(leaf, group.column(leaf.leaf_index)) for group in groups)


def _may_be_old(leaf: TimeLeaf, chunk: Any) -> bool:
    statistics = chunk.statistics if leaf.kind != INT96 else None
    if statistics is None:
        return bool(chunk.num_values)
    if not statistics.has_min_max:
        return not (statistics.has_null_count and statistics.null_count == chunk.num_values)
    return bool(statistics.min_raw < leaf.limit)


def _time_leaf(part: Leaf, leaf: Any) -> TimeLeaf | None:
    dtype = part.dtype
    if leaf.physical_type == "INT96":
        return TimeLeaf(part.leaf_index, INT96, 0)
    if pa.types.is_date32(dtype):
        return TimeLeaf(part.leaf_index, DATE, GREGORIAN_START_DAY)
    if pa.types.is_timestamp(dtype) and dtype.tz is not None and dtype.unit in _LIMITS:
        return TimeLeaf(part.leaf_index, TIMESTAMP, _LIMITS[dtype.unit])
    return None


def _list_of(kind: pa.DataType, field: pa.Field) -> pa.DataType:
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(field, kind.list_size)
    return pa.large_list(field) if pa.types.is_large_list(kind) else pa.list_(field)


def _with_child(data: pa.Array, dtype: pa.DataType, child: pa.Array) -> pa.Array:
    """A copy of a list or map array with another child array; offsets and NULLs stay the same."""
    own = data.buffers()[: 1 if pa.types.is_fixed_size_list(dtype) else 2]
    return pa.Array.from_buffers(dtype, len(data), own, data.null_count, data.offset, [child])


def _with_values(data: pa.Array, values: Int64s | np.ndarray[Any, Any]) -> pa.Array:
    """A copy of a fixed-width array with other values and the same NULLs."""
    bitmap, skipped = own_bitmap(data)
    padded = np.concatenate([np.zeros(skipped, values.dtype), values]) if skipped else values
    buffers = [bitmap, pa.py_buffer(np.ascontiguousarray(padded))]
    return pa.Array.from_buffers(data.type, len(data), buffers, data.null_count, skipped)
