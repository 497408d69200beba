"""ORC: files of several stripes in each codec, damaged in the tail, the footers of stripes, indexes and data."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import orc

from kquery_spark.sources.orc.footer import orc_tail, stripe_footer_range
from tests.sources.mutations.formats import MutatedFormat, Mutation, Pristine
from tests.sources.mutations.mutate import Region, mutated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kquery_spark import ExecutionContext

_ROWS = 3000
_QUERIES = (
    "SELECT * FROM t",
    "SELECT s FROM t WHERE k = 3",
    "SELECT count(*), min(k), max(s) FROM t",
)
_WEIGHTS = {"tail": 5, "stripe footer": 5, "index": 1, "data": 5}


def _make(directory: Path) -> list[Pristine]:
    flat, nested = _flat(), _nested()
    tables = dict.fromkeys(("uncompressed", "zlib", "snappy", "lz4", "zstd"), flat)
    inputs = [_written(directory, codec, table, codec) for codec, table in tables.items()]
    return [*inputs, _written(directory, "nested", nested, "uncompressed")]


def _written(directory: Path, name: str, table: pa.Table, codec: str) -> Pristine:
    root = directory / name
    root.mkdir(parents=True)
    file = root / f"{name}.orc"
    orc.write_table(table, str(file), compression=codec, stripe_size=1 << 12, batch_size=500)
    return Pristine(name, root, (file,), _QUERIES)


def _flat() -> pa.Table:
    rows = range(_ROWS)
    return pa.table(
        {
            "k": pa.array([i % 7 if i % 11 else None for i in rows], pa.int32()),
            "big": pa.array([i * 10**12 - 7 for i in rows]),
            "s": pa.array([f"string {i % 20}" if i % 5 else None for i in rows]),
            "unique": pa.array([f"unique {i * 7919}" for i in rows]),
            "b": pa.array([bytes([i % 256]) * (i % 4) for i in rows]),
            "f": pa.array(np.arange(_ROWS, dtype=np.float32) / 3),
            "d": pa.array([None if i % 3 else i / 7 for i in rows]),
            "flag": pa.array([i % 3 == 0 for i in rows]),
            "day": pa.array([dt.date(2020, 1, 1) + dt.timedelta(i) for i in rows]),
            "m": pa.array([Decimal(i).scaleb(-2) for i in rows], pa.decimal128(9, 2)),
            "ts": pa.array(
                [dt.datetime(2020, 1, 1) + dt.timedelta(seconds=977 * i) for i in rows], pa.timestamp("us")
            ),
        }
    )


def _nested() -> pa.Table:
    rows = range(_ROWS)
    return pa.table(
        {
            "k": pa.array([i % 7 if i % 11 else None for i in rows], pa.int32()),
            "s": pa.array([f"string {i % 20}" for i in rows]),
            "list": pa.array([list(range(i % 4)) if i % 6 else None for i in rows], pa.list_(pa.int64())),
            "struct": pa.array([{"x": i, "y": f"y{i % 9}"} if i % 5 else None for i in rows]),
            "map": pa.array(
                [[(f"k{i % 3}", i)] if i % 4 else [] for i in rows], pa.map_(pa.string(), pa.int32())
            ),
        }
    )


class _InMemory:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_at(self, nbytes: int, offset: int) -> bytes:
        return self._data[offset : offset + nbytes]


@cache
def _regions(data: bytes) -> dict[str, list[Region]]:
    """The regions of an undamaged file by kind."""
    tail = orc_tail(_InMemory(data), len(data))
    assert tail is not None
    stripes = list(tail.footer.stripes)
    footers = [stripe_footer_range(stripe) for stripe in stripes]
    return {
        "tail": [Region("tail", footers[-1].end, len(data))],
        "stripe footer": [Region(f"footer of stripe {i}", f.start, f.end) for i, f in enumerate(footers)],
        "index": [Region("index", s.offset, s.offset + s.index_length) for s in stripes],
        "data": [
            Region("data", s.offset + s.index_length, f.start) for s, f in zip(stripes, footers, strict=True)
        ],
    }


def _mutate(data: bytes, file: Path, rng: Random) -> Mutation:
    regions = _regions(data)
    kind = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    return mutated(data, regions[kind], rng)


def _register(context: ExecutionContext, root: Path) -> None:
    context.register_orc("t", str(root))


def _frame(spark: SparkSession, root: Path) -> DataFrame:
    return spark.read.orc(str(root))


FORMAT = MutatedFormat("orc", _make, _mutate, _register, _frame)
