"""Scans ORC files: one split per stripe, columns found by name, and dates and times converted as in Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from kquery_spark.cached_property import cached_property
from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.kernels import zones
from kquery_spark.sources.base import ColumnRange, DataFile, Source, Split
from kquery_spark.sources.bucketing import Bucketing
from kquery_spark.sources.files import check_no_case_difference, local_path, naming_file
from kquery_spark.sources.footers import map_files
from kquery_spark.sources.hybrid_calendar import GREGORIAN_START_DAY, REBASE_END_MICROS, gregorian_days
from kquery_spark.sources.listing import partitioned_files
from kquery_spark.sources.orc.features import UNNAMED
from kquery_spark.sources.orc.file import OrcContent, open_orc, orc_content, remote_orc
from kquery_spark.sources.orc.footer import OrcCalendar
from kquery_spark.sources.partitions import constant, partition_range, with_partitions
from kquery_spark.sources.prefetch.fetching import Release, nothing_to_release
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch
from kquery_spark.types.units import DAY_MICROS
from kquery_spark.types.vector import Int64s, from_arrow

_TYPE_KEY = b"spark.sql.catalyst.type"
# Spark types that ORC does not have: Spark stores them as other types, and declares them in the metadata of the field.
_SPARK_ONLY_TYPES = ("interval", "char", "varchar", "variant", "time(")
_MISSING_DAYS = 10  # days before 1582-10-15 that the hybrid calendar skips
_MAX_NANOS_MILLIS = 9_223_372_036_854  # milliseconds; pyarrow reads timestamps as nanoseconds
_TWO_DAYS_MICROS = 2 * DAY_MICROS


@dataclass(frozen=True)
class OrcSource(Source):
    """ORC files with one table schema; partition columns come last, as in Spark.

    zone: the time zone of Spark's JVM. ORC timestamps are wall-clock times of the writer, which Spark interprets in its own
    JVM's zone. defaults: the default values, as plain values, of columns that some files do not have; columns without an
    entry are NULL in such files.
    """

    divisible: ClassVar[bool] = True
    columnar: ClassVar[bool] = True

    files: tuple[DataFile, ...]
    table_schema: pa.Schema
    partition_columns: tuple[str, ...] = ()
    zone: str = "UTC"
    defaults: tuple[tuple[str, Any], ...] = ()
    bucketing: Bucketing | None = None

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.table_schema

    @cached_property
    def _contents(self) -> list[OrcContent]:
        """The metadata of each file; Spark accepts empty files, which have no stripes."""
        no_stripes = OrcContent(pa.schema([]))
        return list(map_files(lambda file: orc_content(file) if file.size else no_stripes, self.files))

    @override
    def check_files(self, columns: Sequence[str]) -> None:
        """Check the footers of all files."""
        fields = [self.table_schema.field(c) for c in columns if c not in self.partition_columns]
        for file, content in zip(self.files, self._contents, strict=True):
            if content.schema.names and _lacks_names(content.schema):
                raise UNNAMED.declined()
            _check_columns(file, content.schema, fields)
            if file.size:
                _check_times(file, fields)

    def splits(self) -> list[Split]:
        """One split per stripe."""
        return [
            Split(index, (stripe,), rows, content.stored_bytes // len(content.stripe_rows))
            for index, content in enumerate(self._contents)
            for stripe, rows in enumerate(content.stripe_rows)
        ]

    @override
    def row_count(self) -> int | None:
        return sum(content.rows for content in self._contents)

    @override
    def column_bytes(self, columns: Sequence[str]) -> int:
        """Assume that all columns have the same size."""
        size = sum(content.stored_bytes for content in self._contents)
        return int(size * len(columns) / max(1, len(self.table_schema)))

    @override
    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        """Return statistics of the stripe. Columns of floating-point numbers and timestamps have none."""
        if column in self.partition_columns:
            return partition_range(self.files[split.file], self.partition_columns, column, split.rows)
        if len(split.pieces) != 1:
            return None
        ranges = self.once(("ranges", split.file, column), lambda: self._ranges(split.file, column))
        return ranges[split.pieces[0]] if ranges else None

    def _ranges(self, file: int, column: str) -> list[ColumnRange | None]:
        """Return the statistics of each stripe of a file; empty if there are none."""
        tail = orc_content(self.files[file]).tail
        return [] if tail is None else tail.ranges(column, self.table_schema.field(column).type)

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        """One batch per stripe."""
        file = self.files[split.file]
        with open_orc(file) as opened:
            schema = opened.schema
            names = set(schema.names)
            for stripe in split.pieces:
                yield self._batch(file, columns, names, opened.read(stripe, self._stored(schema, columns)))

    def _stored(self, schema: pa.Schema, columns: Sequence[str]) -> list[str]:
        """Return the file's columns to read: at least one, because a read without columns loses the number of rows."""
        stored = [c for c in columns if c not in self.partition_columns and c in schema.names]
        return stored or [_narrowest(schema)]

    @override
    def is_remote(self, split: Split) -> bool:
        return local_path(self.files[split.file].path) is None

    @override
    def fetch(self, split: Split, columns: Sequence[str], rows: Int64s | None = None) -> Release:
        remote = remote_orc(self.files[split.file])
        if remote is None:
            return nothing_to_release
        (stripe,) = split.pieces
        return remote.hold(stripe, self._stored(remote.schema, columns))

    def _batch(
        self, file: DataFile, columns: Sequence[str], names: set[str], stripe_batch: pa.RecordBatch
    ) -> Batch:
        """Build the requested columns from a stripe, partition values, or defaults for columns that the file lacks."""
        schema = pa.schema([self.table_schema.field(c) for c in columns])
        arrays = []
        for column in columns:
            dtype = schema.field(column).type
            if column in self.partition_columns:
                value = file.partition[self.partition_columns.index(column)]
                arrays.append(constant(value, dtype, stripe_batch.num_rows))
            elif column in names:
                arrays.append(self._convert(stripe_batch.column(column), dtype, column, file))
            else:
                check_no_case_difference(column, names, file.path)
                arrays.append(constant(dict(self.defaults).get(column), dtype, stripe_batch.num_rows))
        return Batch(schema, tuple(arrays), stripe_batch.num_rows)

    def _convert(self, data: pa.Array, dtype: pa.DataType, column: str, file: DataFile) -> pa.Array:
        what = f"{column} of {file.path}"
        if isinstance(data, pa.ChunkedArray):
            data = data.combine_chunks()
        if dtype == t.TIMESTAMP_NTZ and pa.types.is_int64(data.type):
            return data.view(dtype)
        if t.is_timestamp(dtype) and _is_wall_clock(data.type):
            return self._instants(data, dtype, what)
        if dtype == t.DATE and data.type == t.DATE:
            early = pc.any(pc.less(data.view(pa.int32()), GREGORIAN_START_DAY)).as_py()
            return _early_dates(data, file, what) if early else data
        if data.type != dtype:
            raise SourceError(
                f"column {what} is {t.spark_name(data.type)} in the file, but {t.spark_name(dtype)} in the table"
            )
        return from_arrow(dtype, data).data

    def _instants(self, data: pa.Array, dtype: pa.DataType, what: str) -> pa.Array:
        nanos = data.view(pa.int64())
        micros = pc.divide(nanos, 1000)
        lowest = pc.min(micros).as_py()
        if lowest is not None and lowest < _TWO_DAYS_MICROS:
            # Readers differ in how they read fractions of seconds before 1970, and in their zone rules before 1900.
            early = pc.less(micros, _TWO_DAYS_MICROS)
            whole = pc.equal(pc.multiply(pc.divide(micros, 1_000_000), 1_000_000), micros)
            if lowest < REBASE_END_MICROS or not pc.all(pc.or_kleene(pc.invert(early), whole)).as_py():
                raise SourceError(f"a time before 1900 (1970 if fractional) in {what} is not supported")
        if zones.fixed_offset(self.zone) == 0:
            return micros.view(dtype)
        values, mask = zones.ints(micros)
        return pa.array(zones.to_instants(values, self.zone), mask=mask).view(dtype)


def _early_dates(data: pa.Array, file: DataFile, what: str) -> pa.Array:
    """Convert dates, some before 1582-10-15, from the calendar that the file's footer names."""
    calendar = _calendar(file)
    if calendar is None:
        raise SourceError(f"a date before 1582-10-15 in {what} is not supported with this compression")
    days, mask = zones.ints(data.view(pa.int32()).cast(pa.int64()))
    if calendar.proleptic:
        # Java's reader converts through the hybrid calendar and moves the days that it skips by ten days.
        days = np.where(
            (days < GREGORIAN_START_DAY) & (days >= GREGORIAN_START_DAY - _MISSING_DAYS), days + 10, days
        )
    else:
        days = gregorian_days(days)
    return pa.array(days.astype(np.int32), mask=mask).view(t.DATE)


def _lacks_names(schema: pa.Schema) -> bool:
    """Return whether all columns have the placeholder names ``_col0``, ``_col1``, ... that old Hive wrote."""
    return all(name.startswith("_col") for name in schema.names)


def _check_columns(file: DataFile, schema: pa.Schema, fields: Sequence[pa.Field]) -> None:
    """Raise Unsupported for columns that pyarrow may mix up, or that a file has twice (ignoring case) or with other types.

    pyarrow selects columns by dotted paths, so the name ``a.b`` may select field ``b`` of column ``a``.
    """
    names = set(schema.names)
    folded = Counter(name.lower() for name in schema.names)
    prefixes = [f"{column.name}." for column in schema if pa.types.is_nested(column.type)]
    for field in fields:
        if field.name in names and field.name.startswith(tuple(prefixes)):
            raise Unsupported(
                f"{file.path} has nested columns, and {field.name} may be the path of a field in one of them"
            )
        if folded[field.name.lower()] > 1:
            raise Unsupported(f"{file.path} has two columns {field.name} that differ only in case")
        if field.name not in names:
            check_no_case_difference(field.name, names, file.path)
        elif not _readable_as(schema.field(field.name), field.type):
            raise Unsupported(_mismatch(f"{field.name} of {file.path}", schema, field))


def _check_times(file: DataFile, fields: Sequence[pa.Field]) -> None:
    """Decline a file whose footer shows times that ``OrcSource`` cannot read exactly, or whose calendar is unknown."""
    timestamps = [f.name for f in fields if t.is_timestamp(f.type)]
    if not timestamps and not any(f.type == t.DATE for f in fields):
        return
    calendar = _calendar(file)
    if calendar is None:
        raise Unsupported(f"dates and timestamps of {file.path} are not supported with this compression")
    for name in timestamps:
        low, high = calendar.timestamps.get(name, (0, 0))
        if not _reads_exactly(low, high):
            raise Unsupported(
                f"ORC timestamps before 1900 (1970 if fractional) or after 2262 are not supported; {name} of {file.path} "
                "has one"
            )


def _reads_exactly(low_ms: int, high_ms: int) -> bool:
    """Return whether all times between two limits can be read exactly."""
    # Some writers store a fraction of the last second before 1970 as a fraction of the first second after it.
    is_whole_second = low_ms % 1000 == 0
    return (
        low_ms >= REBASE_END_MICROS // 1000
        and (low_ms >= 1000 or is_whole_second)
        and high_ms < _MAX_NANOS_MILLIS
    )


def _calendar(file: DataFile) -> OrcCalendar | None:
    tail = orc_content(file).tail
    return None if tail is None else tail.calendar


def _is_wall_clock(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(dtype) and dtype.tz is None)


def _readable_as(field: pa.Field, dtype: pa.DataType) -> bool:
    """Return whether ``OrcSource._convert`` supports reading a file's column as the table's type."""
    declared = (field.metadata or {}).get(_TYPE_KEY, b"").decode(errors="replace")
    if t.is_timestamp(dtype):
        return _is_wall_clock(field.type)
    if dtype == t.TIMESTAMP_NTZ:
        return bool(declared == "timestamp_ntz" and pa.types.is_int64(field.type))
    if declared in ("timestamp_ntz", "variant") or declared.startswith(
        ("interval", "char", "varchar", "time(")
    ):
        return False
    return bool(field.type == dtype)


def _mismatch(what: str, schema: pa.Schema, column: pa.Field) -> str:
    file_type = t.spark_name(schema.field(column.name).type)
    return f"column {what} is {file_type} in the file, but {t.spark_name(column.type)} in the table"


def _narrowest(schema: pa.Schema) -> str:
    flat = [f for f in schema if pa.types.is_primitive(f.type) or pa.types.is_decimal(f.type)]
    return str(min(flat, key=lambda f: f.type.bit_width).name if flat else schema[0].name)


def spark_field(field: pa.Field, tz: str) -> pa.Field:
    """Return a column of an ORC file with Spark's type; raises Unsupported if it cannot be read exactly."""
    declared = (field.metadata or {}).get(_TYPE_KEY, b"").decode(errors="replace")
    if declared == "timestamp_ntz" and pa.types.is_int64(field.type):
        return pa.field(field.name, t.TIMESTAMP_NTZ)
    if _is_wall_clock(field.type):
        return pa.field(field.name, t.timestamp(tz))
    if declared.startswith(_SPARK_ONLY_TYPES):
        raise Unsupported(f"the ORC column {field.name} of type {declared} is not supported")
    return pa.field(field.name, _supported_type(field.name, field.type, is_nested=False))


def check_orc_type(name: str, dtype: pa.DataType) -> None:
    """Raise Unsupported for a column type that ORC files cannot be read into exactly."""
    if not t.is_timestamp(dtype) and dtype != t.TIMESTAMP_NTZ:
        _supported_type(name, dtype, is_nested=False)


def _supported_type(name: str, dtype: pa.DataType, is_nested: bool = True) -> pa.DataType:
    """Return the type without metadata of nested fields; raises Unsupported for types that cannot be read exactly."""
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(f.name, _supported_nested_type(name, f)) for f in dtype])
    if pa.types.is_map(dtype):
        key_type = _supported_nested_type(name, dtype.key_field)
        return pa.map_(key_type, _supported_nested_type(name, dtype.item_field))
    if pa.types.is_list(dtype):
        return pa.list_(_supported_nested_type(name, dtype.value_field))
    if dtype == t.DATE and is_nested:
        raise Unsupported(f"the ORC column {name} has dates inside of a nested type, which is not supported")
    if dtype in (t.BOOL, t.STRING, t.BINARY, t.DATE) or t.is_numeric(dtype):
        return dtype
    raise Unsupported(f"the ORC column {name} of type {dtype} is not supported")


def _supported_nested_type(name: str, field: pa.Field) -> pa.DataType:
    """Return the type of a field nested in the column ``name``; raises Unsupported for types that cannot be read exactly."""
    declared = (field.metadata or {}).get(_TYPE_KEY, b"").decode(errors="replace")
    if declared.startswith((*_SPARK_ONLY_TYPES, "timestamp_ntz")):
        raise Unsupported(f"the ORC column {name} has a part of type {declared}, which is not supported")
    return _supported_type(name, field.type)


def orc_source(paths: Sequence[str], tz: str = "UTC", zone: str | None = None) -> OrcSource:
    """Create the source of ORC files, directories or globs. zone: the JVM's time zone; by default the session's zone."""
    files, fields, summaries = partitioned_files(paths, tz)
    if summaries:
        raise Unsupported(
            f"Spark may take the columns of ORC files from {summaries[0].path}, which has no rows"
        )
    filled = [f for f in files if f.size]
    if not filled:
        raise SourceError(f"no data files under {', '.join(paths)}")
    file_schema = orc_content(filled[0]).schema
    with naming_file(filled[0].path):
        if _lacks_names(file_schema):
            raise UNNAMED.declined()
        columns = with_partitions([spark_field(f, tz) for f in file_schema], fields)
    return OrcSource(tuple(files), pa.schema(columns), tuple(f.name for f in fields), zone or tz)
