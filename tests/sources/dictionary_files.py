"""Parquet files whose columns are dictionary-encoded, with few rows per distinct value."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.sources.parquet.source import ParquetSource

ROWS = 6000


def table(rows: int = ROWS, values: int = 300, nulls: float = 0.1) -> pa.Table:
    """Return a table with columns of all types. values: the number of distinct values. nulls: the share of NULLs."""
    rng = np.random.default_rng(7)
    null = rng.random(rows) < nulls
    whole = rng.integers(0, values, rows)

    def some(found: Any, dtype: pa.DataType | None = None) -> pa.Array:
        return pa.array(found, dtype, mask=null)

    runs = np.repeat(whole, rng.integers(1, 40, rows))[:rows]
    return pa.table(
        {
            "id": pa.array(np.arange(rows)),
            "i": some(whole.astype(np.int32)),
            "l": some(whole * 10**12),
            "runs": some(runs),
            "f": some(np.where(whole == 3, np.nan, whole / 7).astype(np.float32)),
            "d": some(np.choose(whole % 4, [0.0, -0.0, np.nan, 1.5])),
            "day": some(whole.astype("datetime64[D]")),
            "ts": some(whole.astype("datetime64[us]")).cast(pa.timestamp("us", "UTC")),
            "ntz": some(whole.astype("datetime64[ms]")).cast(pa.timestamp("ms")),
            "m": some(whole.astype(np.int32)).cast(pa.decimal128(12, 2)),
            "m30": some(whole).cast(pa.decimal128(30, 0)),
            "one": some(np.zeros(rows, np.int32)),
            "nothing": pa.nulls(rows, pa.int32()),
            "full": pa.array(whole),
            "s": some(whole.astype(str)),
            "h": some(whole.astype(np.int16)),
            "byte": some((whole % 256 - 128).astype(np.int8)),
            "u": some(whole.astype(np.uint32)),
            "wide": pa.array(
                [None if n else Decimal(int(v) - 90) * 10**25 for n, v in zip(null, whole, strict=True)]
            ),
            "flag": some(whole % 3 == 0),
        }
    )


INDEXED = {
    "id",
    "nothing",
    "i",
    "l",
    "runs",
    "f",
    "d",
    "day",
    "ts",
    "ntz",
    "one",
    "full",
    "h",
    "byte",
    "u",
    "m",
    "m30",
    "wide",
}
"""The columns whose conditions are evaluated on the dictionary."""


def write(path: Path, rows: pa.Table, **options: Any) -> ParquetSource:
    """Write a file of several row groups with small pages. options: change the options of the writer."""
    given = {"data_page_size": 1000, "write_batch_size": 100, "row_group_size": 4000}
    pq.write_table(rows, str(path), **{**given, **options})
    return parquet_source([str(path)])
