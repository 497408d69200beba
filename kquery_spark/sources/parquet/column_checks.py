"""Checks of the columns of a Parquet file: whether Spark and the engine read them as the types of the table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.sources.parquet.calendar import RebaseSettings
from kquery_spark.sources.parquet.column_types import is_in_nanoseconds, mismatch, readable_as
from kquery_spark.sources.parquet.declared_types import check_names, declared_type
from kquery_spark.sources.parquet.features import BROTLI, DEPENDENT_PAGES, NANOSECONDS
from kquery_spark.sources.parquet.file import OpenFile
from kquery_spark.sources.parquet.shredding import METADATA, VALUE
from kquery_spark.sources.parquet.variants import check_compiled, check_variant
from kquery_spark.types import decimals
from kquery_spark.types import names as t
from kquery_spark.types.arrow_types import BINARIES, is_any, spark_column_type

# Annotations of leaves that Spark and Arrow read as the same type, apart from TIME.
_ANNOTATIONS = ("NONE", "STRING", "INT", "DECIMAL", "DATE", "TIMESTAMP", "JSON", "BSON")


def check_type(opened: OpenFile, field: pa.Field, settings: RebaseSettings) -> None:
    """Raise SourceError or Unsupported for a column that the engine or Spark cannot read as the table's type."""
    name, path = field.name, opened.file.path
    stored_type = opened.schema.field(name).type
    if field.type == t.VARIANT:
        check_variant(opened, name, opened.rebase(name, settings) is not None)
        check_compiled(opened, name)
        return
    if not readable_as(stored_type, field.type, opened.has_int96(name)):
        raise SourceError(mismatch(path, name, stored_type, field.type))
    if is_in_nanoseconds(stored_type):
        raise NANOSECONDS.declined(column=name, file=path)
    _check_calendar(opened, name, settings)
    if opened.may_exceed_type(name):
        raise Unsupported(f"{name} of {path} may have numbers outside the range of its declared type")


def check_storage(opened: OpenFile, name: str) -> None:
    """Raise SourceError or Unsupported for a column whose codec, name or encoding Spark does not read."""
    path = opened.file.path
    if name in opened.brotli:
        raise BROTLI.declined(column=name, file=path)
    if name in opened.columns_with_dependent_pages:
        raise DEPENDENT_PAGES.declined(column=name, file=path)
    if name.lower() in opened.ambiguous:
        raise SourceError(f"{path} has two columns {name} that differ only in case")
    if any(shared == name or shared.startswith(f"{name}.") for shared in opened.shared_paths):
        raise Unsupported(f"{name} of {path} and another column have the same path, which Spark mixes up")
    if _is_narrow_decimal_in_bytes(opened, name):
        raise Unsupported(f"{name} of {path} has up to 18 digits in bytes, which Spark does not read")


def _is_narrow_decimal_in_bytes(opened: OpenFile, name: str) -> bool:
    dtype = opened.schema.field(name).type
    if not (t.is_decimal(dtype) and decimals.is_narrow(dtype)):
        return False
    leaf = opened.flat(name)
    return leaf is not None and bool(leaf.physical_type == "BYTE_ARRAY")


def _check_calendar(opened: OpenFile, column: str, settings: RebaseSettings) -> None:
    """Raise Unsupported for old dates or times that Spark refuses, or whose hybrid calendar needs an unknown time zone."""
    rebase = opened.rebase(column, settings)
    if rebase is None:
        return
    if rebase.is_refused:
        raise Unsupported(
            f"{column} of {opened.file.path} may have dates before 1582 or times before 1900, which Spark refuses to read "
            "in EXCEPTION mode"
        )
    if rebase.needs_zone and rebase.zone is None:
        zone = opened.zone_of(settings)
        raise Unsupported(
            f"{column} of {opened.file.path} may have times before 1900 in the hybrid calendar of "
            f"{'an unknown time zone' if zone is None else f'the time zone {zone}'}"
        )


def table_fields(opened: OpenFile, tz: str) -> list[pa.Field]:
    """The fields of a table with the columns of a file. Raises Unsupported for columns that the engine cannot read.

    Spark uses the schema that it has declared in the footer, while the engine decodes by the Parquet schema. If the two
    differ, the file is declined.
    """
    for leaf in opened.leaves:
        if not _is_known_annotation(leaf.logical_type):
            raise Unsupported(
                f"the Parquet column {leaf.path} is annotated as {leaf.logical_type}, which is not supported"
            )
    declared = opened.declared
    if declared is None:
        return [_stored_field(field, opened, tz) for field in opened.schema]
    check_names(declared, opened.schema.names)
    return [_declared_field(*fields, opened, tz) for fields in zip(opened.schema, declared, strict=True)]


def _is_known_annotation(logical_type: Any) -> bool:
    """True if Spark and the engine read a leaf with this annotation as the same type, or the engine declines the type."""
    if logical_type.type == "TIME":
        annotation = json.loads(logical_type.to_json())
        return annotation["timeUnit"] != "nanoseconds" and not annotation["isAdjustedToUTC"]
    return logical_type.type in _ANNOTATIONS


def _stored_field(field: pa.Field, opened: OpenFile, tz: str) -> pa.Field:
    """The field of the table for a column of a file without a schema of Spark."""
    if _may_be_variant(field.type):
        raise Unsupported(f"the Parquet column {field.name} may have variants, which are not supported")
    return pa.field(field.name, _stored_type(field, opened, tz))


def _declared_field(field: pa.Field, declared: Mapping[str, Any], opened: OpenFile, tz: str) -> pa.Field:
    """The field of the table for a column that Spark declares."""
    dtype = declared_type(declared, tz)
    stored = _stored_type(field, opened, tz)
    if stored != t.INTERVAL_STORAGE.get(dtype, dtype):
        declared_name, stored_name = t.spark_name(dtype), t.spark_name(stored)
        raise Unsupported(
            f"Spark declares the Parquet column {field.name} as {declared_name}, but it is stored as {stored_name}"
        )
    return pa.field(field.name, dtype)


def _stored_type(field: pa.Field, opened: OpenFile, tz: str) -> pa.DataType:
    """The engine's type of a column, by the Parquet schema."""
    if pa.types.is_nested(field.type) and opened.has_int96(field.name):
        raise Unsupported(f"the Parquet column {field.name} has INT96 times inside, which is not supported")
    if field.name in opened.int96:
        return t.timestamp(tz)
    return t.nullable_within(spark_column_type(field, tz))


def _may_be_variant(dtype: pa.DataType) -> bool:
    """True if a type contains a group with the fields of a variant; Arrow does not return the annotations of groups."""
    if pa.types.is_struct(dtype) and {VALUE, METADATA} <= {field.name for field in dtype}:
        return is_any(dtype.field(METADATA).type, BINARIES)
    return any(map(_may_be_variant, t.parts_of(dtype)))
