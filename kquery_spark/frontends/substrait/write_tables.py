"""Writes tables that are not registered under a name: rows in memory, and Parquet files."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import KQueryError, SubstraitError
from kquery_spark.expr import Literal
from kquery_spark.expr.constants import vector_literal
from kquery_spark.frontends.substrait.literals import write_literal
from kquery_spark.frontends.substrait.messages import Message
from kquery_spark.frontends.substrait.types import write_schema
from kquery_spark.sources.memory import MemorySource
from kquery_spark.sources.parquet.calendar import CORRECTED_ALL
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.types.vector import Vector

_MAX_ROWS = 10_000
"""The maximum number of rows of a table in memory whose rows are written into a plan."""


def write_no_columns(read: Message, source: MemorySource) -> None:
    """Write the one row of a SELECT without FROM."""
    if source.row_count() != 1:
        raise SubstraitError("rows without columns cannot be written as Substrait")
    read.base_schema.CopyFrom(write_schema(pa.schema([])))
    read.virtual_table.values.add()


def write_rows(read: Message, source: MemorySource) -> None:
    """Write the rows of a table in memory as a virtual table."""
    if source.table.num_rows > _MAX_ROWS:
        raise SubstraitError(
            f"a table in memory of more than {_MAX_ROWS:,} rows cannot be written as Substrait; register it under a name"
        )
    columns = [
        [write_literal(_literal(value, field)) for chunk in source.table.column(i).chunks for value in chunk]
        for i, field in enumerate(source.schema)
    ]
    for row in zip(*columns, strict=True):
        read.virtual_table.values.add().fields.extend(row)
    if not source.table.num_rows:
        read.virtual_table.SetInParent()


def _literal(value: pa.Scalar, field: pa.Field) -> Literal:
    try:
        return vector_literal(Vector(field.type, value))
    except (KQueryError, AttributeError, pa.ArrowException) as error:
        raise SubstraitError(f"a value of column {field.name} cannot be written as Substrait") from error


def write_files(read: Message, source: ParquetSource) -> None:
    """Write the Parquet files of a scan. A plan has no place for partition columns, default values, or a calendar mode."""
    if source.partition_columns or source.defaults or source.rebase != CORRECTED_ALL:
        raise SubstraitError(
            "files with partition columns, default values, or a calendar mode cannot be written as Substrait; "
            "register them as a table"
        )
    for file in source.files:
        item = read.local_files.items.add(uri_file=file.path)
        item.parquet.SetInParent()
