"""What the mutation campaign needs to know of a format, and the formats that it knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kquery_spark import ExecutionContext

MODULES = {
    "csv": "tests.sources.mutations.csv_files",
    "delta": "tests.sources.mutations.delta_tables",
    "iceberg": "tests.sources.mutations.iceberg_tables",
    "json": "tests.sources.mutations.json_files",
    "orc": "tests.sources.mutations.orc_files",
    "parquet": "tests.sources.mutations.parquet_files",
}
"""The module of each format, which has its entry as ``FORMAT``. Add a format here."""


@dataclass(frozen=True)
class Pristine:
    """One undamaged input: a directory, the files in it that the campaign damages, and SQL over its rows as table ``t``."""

    name: str
    root: Path
    files: tuple[Path, ...]
    queries: tuple[str, ...] = ("SELECT * FROM t",)


@dataclass(frozen=True)
class Mutation:
    """The bytes of a damaged file, and what was done to them."""

    data: bytes
    description: str


@dataclass(frozen=True)
class MutatedFormat:
    """One format.

    make: writes undamaged inputs below a directory. mutate: damages the bytes of one of their files. register: registers the
    input in a directory as table ``t`` of an ``ExecutionContext``. frame: reads the same with Spark. prepare: called once
    in every process that reads, to import modules and to lower thresholds that small files do not reach. spark_settings:
    of the Spark session.
    """

    name: str
    make: Callable[[Path], list[Pristine]]
    mutate: Callable[[bytes, Path, Random], Mutation]
    register: Callable[[ExecutionContext, Path], None]
    frame: Callable[[SparkSession, Path], DataFrame]
    prepare: Callable[[], None] = lambda: None
    spark_settings: Mapping[str, str] = field(default_factory=dict)


def format_named(name: str) -> MutatedFormat:
    """The entry of a format."""
    entry: MutatedFormat = import_module(MODULES[name]).FORMAT
    return entry
