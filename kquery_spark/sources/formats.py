"""The registry of file formats that the engine reads."""

from __future__ import annotations

from kquery_spark.sources.csv.format import CSV
from kquery_spark.sources.file_format import Format
from kquery_spark.sources.json.format import JSON
from kquery_spark.sources.orc.format import ORC
from kquery_spark.sources.parquet.format import PARQUET

FORMATS: tuple[Format, ...] = (PARQUET, CSV, JSON, ORC)
DEFAULT_FORMAT = PARQUET
"""The format that the command line writes if the file name has no known extension."""

_BY_NAME = {entry.name: entry for entry in FORMATS}


def format_named(name: str) -> Format:
    """The entry of a format; raises KeyError for an unknown name."""
    return _BY_NAME[name]
