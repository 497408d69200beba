"""The source of Parquet files that are read by path: its columns are those that Spark infers from one of the files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.files import naming_file
from kquery_spark.sources.listing import SUMMARY_NAMES, partitioned_files
from kquery_spark.sources.parquet.declared_types import check_names, columns_with_defaults, declared_type
from kquery_spark.sources.parquet.open_files import open_file, open_files
from kquery_spark.sources.parquet.parsed_footer import ParsedFooter
from kquery_spark.sources.parquet.shredding import METADATA, VALUE
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.sources.partitions import with_partitions
from kquery_spark.types import names as t
from kquery_spark.types.arrow_types import BINARIES, is_any, spark_column_type

# Annotations of leaves that Spark and Arrow read as the same type, apart from TIME.
_ANNOTATIONS = ("NONE", "STRING", "INT", "DECIMAL", "DATE", "TIMESTAMP", "JSON", "BSON")


def parquet_source(paths: Sequence[str], tz: str = "UTC") -> ParquetSource:
    """Build a source from paths of Parquet files, directories or globs; every column is nullable, as in Spark."""
    files, fields, summaries = partitioned_files(paths, tz)
    first = _choose_schema_file([*files, *summaries])
    footer = (
        ParsedFooter(first, is_summary=True)
        if first in summaries
        else open_file(replace(first, partition=()))
    )
    with naming_file(first.path):
        columns = with_partitions(_table_fields(footer, tz), fields)
    _check_defaults(columns_with_defaults(footer.declared or ()), files)
    return ParquetSource(tuple(files), pa.schema(columns), tuple(f.name for f in fields))


def _choose_schema_file(files: Sequence[DataFile]) -> DataFile:
    """Return the file whose schema is the table's: a summary file, or else the first file in path order.

    It follows Spark's ``ParquetUtils.inferSchema``. Names such as ``_metadata_of_a`` have no precedence.
    """

    def preference(file: DataFile) -> tuple[int, str]:
        name = file.path.rpartition("/")[2]
        return SUMMARY_NAMES.index(name) if name in SUMMARY_NAMES else len(SUMMARY_NAMES), file.path

    return min(files, key=preference)


def _check_defaults(columns: Sequence[str], files: Sequence[DataFile]) -> None:
    """Raise Unsupported if a file lacks one of these columns, for which Spark then reads their default values."""
    for opened in open_files(files) if columns else ():
        if (column := next((c for c in columns if c not in opened.names), None)) is not None:
            raise Unsupported(f"{opened.file.path} lacks {column}, which has a default value")


def _table_fields(footer: ParsedFooter, tz: str) -> list[pa.Field]:
    """Return the table fields for the columns of a file. Raises Unsupported for columns that the engine cannot read.

    Spark uses the schema that it has declared in the footer, while the engine decodes by the Parquet schema. If the two
    differ, the file is declined.
    """
    for leaf in footer.leaves:
        if not _is_known_annotation(leaf.logical_type):
            raise Unsupported(
                f"the Parquet column {leaf.path} is annotated as {leaf.logical_type}, which is not supported"
            )
    declared = footer.declared
    if declared is None:
        return [_stored_field(field, footer, tz) for field in footer.schema]
    check_names(declared, footer.schema.names)
    return [_declared_field(*fields, footer, tz) for fields in zip(footer.schema, declared, strict=True)]


def _is_known_annotation(logical_type: Any) -> bool:
    """True if Spark and the engine read a leaf with this annotation as the same type, or the engine declines the type."""
    if logical_type.type == "TIME":
        annotation = json.loads(logical_type.to_json())
        return annotation["timeUnit"] != "nanoseconds" and not annotation["isAdjustedToUTC"]
    return logical_type.type in _ANNOTATIONS


def _stored_field(field: pa.Field, footer: ParsedFooter, tz: str) -> pa.Field:
    """Return the table field for a column of a file whose footer has no schema of Spark."""
    if _may_be_variant(field.type):
        raise Unsupported(f"the Parquet column {field.name} may have variants, which are not supported")
    return pa.field(field.name, _stored_type(field, footer, tz))


def _declared_field(field: pa.Field, declared: Mapping[str, Any], footer: ParsedFooter, tz: str) -> pa.Field:
    """Return the table field for a column that Spark declares in the footer."""
    dtype = declared_type(declared, tz)
    stored = _stored_type(field, footer, tz)
    if stored != t.INTERVAL_STORAGE.get(dtype, dtype):
        declared_name, stored_name = t.spark_name(dtype), t.spark_name(stored)
        raise Unsupported(
            f"Spark declares the Parquet column {field.name} as {declared_name}, but it is stored as {stored_name}"
        )
    return pa.field(field.name, dtype)


def _stored_type(field: pa.Field, footer: ParsedFooter, tz: str) -> pa.DataType:
    """Return the engine's type of a column by the Parquet schema."""
    if pa.types.is_nested(field.type) and footer.has_int96(field.name):
        raise Unsupported(f"the Parquet column {field.name} has INT96 times inside, which is not supported")
    if field.name in footer.int96:
        return t.timestamp(tz)
    return t.nullable_within(spark_column_type(field, tz))


def _may_be_variant(dtype: pa.DataType) -> bool:
    """True if a type contains a group with the fields of a variant; Arrow does not return the annotations of groups."""
    if pa.types.is_struct(dtype) and {VALUE, METADATA} <= {field.name for field in dtype}:
        return is_any(dtype.field(METADATA).type, BINARIES)
    return any(map(_may_be_variant, t.parts_of(dtype)))
