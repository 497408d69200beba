"""Finds columns of a Parquet source that Spark, by its settings or its version, reads differently than the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kquery_spark.errors import Unsupported
from kquery_spark.sources.parquet.column_types import has_times, is_promoted, lacks_fields, readable_as
from kquery_spark.sources.parquet.features import CONVERTED_INT96
from kquery_spark.sources.parquet.open_files import open_file, open_files
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.sources.parquet.variants import check_not_shredded
from kquery_spark.types import names as t


def check_no_int96(source: ParquetSource, columns: Sequence[str], *, by_parquet_java: bool = True) -> None:
    """Raise Unsupported for columns with INT96 times.

    by_parquet_java: whether files that Parquet's Java library wrote are checked, too.
    """
    for file in source.files:
        opened = open_file(file)
        if opened.by_parquet_java and not by_parquet_java:
            continue
        for column in columns:
            if opened.has_int96(column):
                raise CONVERTED_INT96.declined(column=column, file=file.path)


def check_no_shredding(source: ParquetSource, columns: Sequence[str]) -> None:
    """Raise Unsupported for shredded variants."""
    for column in (c for c in columns if source.table_schema.field(c).type == t.VARIANT):
        for file in source.files:
            check_not_shredded(open_file(file), column)


def check_no_promotion(source: ParquetSource, columns: Sequence[str], version: str) -> None:
    """Raise Unsupported for columns that need a type promotion that Spark has only since 4.0. version: Spark's."""
    fields = [source.table_schema.field(c) for c in columns if c not in source.partition_columns]
    for file in source.files:
        opened = open_file(file)
        for field in (field for field in fields if field.name in opened.names):
            stored_type, instants = opened.schema.field(field.name).type, opened.has_int96(field.name)
            if readable_as(stored_type, field.type, instants) and is_promoted(
                stored_type, field.type, instants
            ):
                raise Unsupported(
                    f"Spark {version}, unlike 4.0, may not read column {field.name} of {file.path} as "
                    f"{t.spark_name(field.type)}"
                )


def file_without_fields(source: ParquetSource, columns: Sequence[str]) -> str | None:
    """The path of the first file in which a struct of these columns lacks a field; None if no file lacks one."""
    for file in source.files:
        opened = open_file(file)
        for field in (source.table_schema.field(c) for c in columns if c not in source.partition_columns):
            stored_type = opened.schema.field(field.name).type if field.name in opened.names else field.type
            if field.type != t.VARIANT and lacks_fields(stored_type, field.type):
                return file.path
    return None


def zones_to_rebase(source: ParquetSource, columns: Sequence[str]) -> set[str | None]:
    """The time zones that are needed to rebase old times in these columns; None stands for a file that names no zone."""
    unnamed = replace(source.rebase, default_zone=None)
    zones: set[str | None] = set()
    stored = [column for column in columns if column not in source.partition_columns]
    with_times = [column for column in stored if has_times(source.table_schema.field(column).type)]
    for opened in open_files(source.files) if with_times else ():
        rebases = [opened.rebase(column, unnamed) for column in with_times]
        if any(rebase is not None and rebase.needs_zone for rebase in rebases):
            zones.add(opened.zone_of(unnamed))
    return zones
