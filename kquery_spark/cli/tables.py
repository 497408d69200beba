"""The option ``--table NAME=[FORMAT:]PATH``: parses it, finds the format, and registers the table."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kquery_spark.cli.failures import Exit, Failure, reading
from kquery_spark.cli.paths import local_path, missing_path, path_exists, path_on_disk
from kquery_spark.sources.formats import FORMATS, format_named
from kquery_spark.spark_bridge.hadoop.files import HIDDEN, HadoopFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    import kquery_spark as kq

_FORMAT_NAMES = tuple(entry.name for entry in FORMATS)
_EXTENSIONS = {ending: entry.name for entry in FORMATS for ending in entry.endings}
_COMPRESSED = (".gz", ".bz2", ".zst", ".snappy", ".lz4")
_SCHEMES = ("file", "hdfs", "viewfs", "dbfs", "maprfs")
"""File systems whose paths may begin with ``scheme:/``; all others need ``scheme://``."""


@dataclass(frozen=True)
class TableSpec:
    """A table of the command line. format: None if it is determined by the path. schema: None if it is inferred."""

    name: str
    path: str
    format: str | None = None
    schema: str | None = None


def table_option(required: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option ``--table NAME=[FORMAT:]PATH``, which can be repeated. The command receives ``tables``."""
    return click.option(
        "--table",
        "tables",
        type=_parse_option,
        metavar="NAME=[FORMAT:]PATH",
        multiple=True,
        required=required,
        help="May be given many times.",
    )


def _parse_option(text: str) -> TableSpec:
    try:
        return parse_table(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def parse_table(text: str) -> TableSpec:
    """Parse ``trips=/data/trips.csv`` or ``trips=csv:/data/trips``. Raises ValueError if it is malformed."""
    name, equals, path = text.partition("=")
    name, path = name.strip(), path.strip()
    if not equals or not path:
        raise ValueError(f"'{text}' should be NAME=PATH or NAME=FORMAT:PATH")
    if not name.isidentifier():
        raise ValueError(f"'{name}' cannot be the name of a table: letters, digits and _ only")
    format_, colon, rest = path.partition(":")
    if colon and format_.lower() in _FORMAT_NAMES:
        if not rest:
            raise ValueError(f"'{text}' has no path after '{format_}:'")
        return TableSpec(name, rest, format_.lower())
    if colon and format_.isidentifier() and not _is_scheme(format_, rest) and not path_exists(path):
        raise ValueError(
            f"unknown format '{format_}' in '{text}'; FORMAT is one of {', '.join(_FORMAT_NAMES)}, "
            "and a path of another file system begins with SCHEME://"
        )
    return TableSpec(name, path)


def _is_scheme(word: str, rest: str) -> bool:
    return rest.startswith("//") or word == "file" or (word.lower() in _SCHEMES and rest.startswith("/"))


def format_of_path(path: str) -> str | None:
    """Return the format of a path's extension; None if it is unknown. The extension of a compression codec is ignored."""
    stem = path.rstrip("/").lower()
    for ending in _COMPRESSED:
        stem = stem.removesuffix(ending)
    return _EXTENSIONS.get(os.path.splitext(stem)[1])


def _unknown_format(spec: TableSpec) -> Failure:
    how = f"write {spec.name}=FORMAT:PATH, FORMAT one of {', '.join(_FORMAT_NAMES)}"
    return Failure(Exit.USAGE, f"cannot tell the format of {spec.path}; {how}")


def _check_plain_files(spec: TableSpec, exists: Callable[[str], bool]) -> None:
    """Raise Failure for a Delta or Iceberg table, whose directory also has files that are not part of the table.

    exists: whether the directory has a file or directory with this relative path.
    """
    for sign, table in (("_delta_log", "Delta table"), ("metadata/version-hint.text", "Iceberg table")):
        if exists(sign):
            raise Failure(
                Exit.USAGE,
                f"{spec.path} is a {table}, and --table reads plain files; use the table's own name in the SQL, or write "
                f"{spec.name}=FORMAT:PATH to read all files in the directory, including deleted ones",
            )


def read_sql(path: str) -> str:
    """Return the contents of an SQL file. Raises Failure if it is empty."""
    with reading(path):
        sql = Path(path).read_text(encoding="utf-8")
    if not sql.strip():
        raise Failure(Exit.BAD_SQL, f"{path} contains no SQL")
    return sql


def table_format(spark: SparkSession, spec: TableSpec) -> str:
    """Return the format of a table: as specified, by its extension, or by the first data file in its directory."""
    if spec.format or (named := format_of_path(spec.path)):
        return spec.format or str(named)
    files = HadoopFiles(spark, spec.path)
    if not files.system.exists(files.path):
        raise missing_path(spec.path)
    _check_plain_files(spec, lambda name: files.system.exists(files.child(files.path, name)))
    for name in files.names_below():
        if named := format_of_path(name):
            return named
    raise _unknown_format(spec)


def read_table(spark: SparkSession, spec: TableSpec) -> DataFrame:
    """Return the table as a Spark DataFrame. CSV has a header, and its types come from ``spec.schema`` or are inferred."""
    file_format = format_named(table_format(spark, spec))
    reader = spark.read.format(file_format.name).options(**file_format.file_options)
    if spec.schema:
        reader = reader.schema(spec.schema)
    else:
        reader = reader.options(**file_format.inference)
    frame = reader.load(spec.path)
    if frame.columns == ["_corrupt_record"]:
        raise Failure(Exit.UNREADABLE, f"no line of {spec.path} is valid {file_format.title}")
    return frame


def check_tables(specs: tuple[TableSpec, ...]) -> None:
    """Raise Failure for local files that are missing or of an unknown format, before Spark is started."""
    for spec in specs:
        path = path_on_disk(spec.path)
        if path is not None and not path_exists(path):
            raise missing_path(spec.path)
        path = local_path(spec.path)
        if spec.format or format_of_path(spec.path) or path is None or not os.path.exists(path):
            continue  # a path that is not local can be in Spark's default file system
        if _format_on_disk(spec, path) is None:
            raise _unknown_format(spec)


def register_in_spark(spark: SparkSession, specs: tuple[TableSpec, ...]) -> None:
    """Create a temporary view for each table."""
    for spec in specs:
        read_table(spark, spec).createOrReplaceTempView(spec.name)


def register_locally(context: kq.ExecutionContext, specs: tuple[TableSpec, ...]) -> None:
    """Register every table with a context, which may run on Spark (``serve --engine kquery``)."""
    for spec in specs:
        path = local_path(spec.path)
        if path is None:  # an object store or HDFS
            path = spec.path
        elif not path_exists(path):
            raise missing_path(spec.path)
        format_ = spec.format or format_of_path(path) or _format_on_disk(spec, path)
        if format_ is None:
            raise _unknown_format(spec)
        getattr(context, f"register_{format_}")(spec.name, path)


def _format_on_disk(spec: TableSpec, path: str) -> str | None:
    """Return the format of the first data file in a local directory; None without one. Hidden files are skipped."""
    _check_plain_files(spec, lambda name: os.path.exists(os.path.join(path, name)))
    for _, directories, files in os.walk(path):
        directories[:] = sorted(name for name in directories if not name.startswith(HIDDEN))
        for file in sorted(files):
            named = format_of_path(file)
            if named and not file.startswith(HIDDEN):
                return named
    return None
