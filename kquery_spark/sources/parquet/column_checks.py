"""Checks of the columns of a Parquet file: whether Spark and the engine read them as the types of the table."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.sources.parquet.calendar import RebaseSettings
from kquery_spark.sources.parquet.column_types import is_in_nanoseconds, mismatch, readable_as
from kquery_spark.sources.parquet.features import BROTLI, DEPENDENT_PAGES, NANOSECONDS
from kquery_spark.sources.parquet.file import OpenFile
from kquery_spark.sources.parquet.variants import check_compiled, check_variant
from kquery_spark.types import decimals
from kquery_spark.types import names as t


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
