"""The footers of files that this process keeps parsed."""

from __future__ import annotations

from kquery_spark.sources.base import DataFile
from kquery_spark.sources.kept_values import KeptValues, Sized

MAX_BYTES = 256 << 20

PARQUET_FOOTERS: KeptValues[DataFile, Sized] = KeptValues(MAX_BYTES)
"""Those of this process's Parquet files."""
