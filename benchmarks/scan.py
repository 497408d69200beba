"""Nanoseconds of CPU time per value of a Parquet scan: the engine with and without compiled loops, pyarrow, DuckDB, and Polars.

``python -m benchmarks.scan`` writes one file per row of the table (a type, an encoding, a codec, a share of NULLs, a row-group
size) and reads its column: all rows, or the selected share of the rows. The readers take turns, their rows are compared, and
each number is the median over the rounds of the CPU time of all threads. DuckDB and Polars are left out if they are not
installed. They count the values and add up the numbers or string lengths, as they have no other way to read a column and
forget it, and they read all rows in every row of the table. ``--only TEXT`` measures the rows of the table that contain TEXT.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kquery_spark.config.engine import EngineConfig
from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.physical.split_coalescer import MAX_BATCHES
from kquery_spark.sources.base import Split
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.types.vector import Int64s, narrow

ROWS = 1 << 20
_SEED = 20_260_101
# The rows that a scan reads together, at most.
_COALESCED_ROWS = MAX_BATCHES * EngineConfig().batch_rows
Reader = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """A row of the table. distinct: number of distinct values, 0 for as many as rows. selected: share of rows to read."""

    dtype: str
    encoding: str = "dictionary"
    codec: str = "snappy"
    nulls: float = 0.0
    distinct: int = 2500
    group_rows: int = 122_880
    selected: float = 1.0

    def __str__(self) -> str:
        return (
            f"{self.dtype:8} {self.encoding:10} {self.codec:7} {self.nulls:5.0%} {self.distinct or ROWS:8} "
            f"{self.group_rows:8} {self.selected:6.1%}"
        )


def cases() -> Iterator[Case]:
    """The rows of the table: each varies one property of a usual column, or two."""
    for dtype in ("int32", "int64", "double", "date", "string"):
        for distinct in (4, 2500):
            for selected in (1.0, 0.1, 0.01):
                yield Case(dtype, distinct=distinct, selected=selected)
        for selected in (1.0, 0.1, 0.01):
            yield Case(dtype, encoding="plain", distinct=0, selected=selected)
    for dtype in ("int16", "boolean", "int96", "decimal"):
        for nulls in (0.0, 0.02):
            for selected in (1.0, 0.01):
                yield Case(dtype, nulls=nulls, selected=selected)
    for dtype in ("int64", "string"):
        for nulls in (0.02, 0.5):
            for selected in (1.0, 0.01):
                yield Case(dtype, nulls=nulls, selected=selected)
        for codec in ("none", "zstd", "gzip", "lz4"):
            for selected in (1.0, 0.01):
                yield Case(dtype, codec=codec, selected=selected)
        for group_rows in (10_000, 1_000_000):
            for selected in (1.0, 0.01):
                yield Case(dtype, group_rows=group_rows, selected=selected)
    for selected in (1.0, 0.01):
        yield Case("int64", distinct=100_000, selected=selected)
        yield Case("double", encoding="split", codec="zstd", distinct=0, selected=selected)
        for dtype in ("int64", "string", "decimal"):
            yield Case(dtype, encoding="delta", distinct=0, selected=selected)


def column(case: Case) -> pa.Array:
    """The values of a case."""
    rng = np.random.default_rng(_SEED)
    mask = rng.random(ROWS) < case.nulls if case.nulls else None
    numbers = rng.integers(0, case.distinct, ROWS) if case.distinct else rng.permutation(ROWS)
    if case.dtype == "string":
        return pa.array([f"value number {n}" for n in numbers], mask=mask)
    if case.dtype == "date":
        return pa.array(numbers.astype(np.int32), mask=mask).cast(pa.date32())
    if case.dtype == "boolean":
        return pa.array(numbers % 2 == 0, mask=mask)
    if case.dtype == "int96":
        return pa.array(numbers * 10**9, pa.timestamp("us"), mask=mask)
    if case.dtype == "decimal":
        return pa.array(numbers, mask=mask).cast(pa.decimal128(30, 2))
    return pa.array(numbers, mask=mask).cast(getattr(pa, {"double": "float64"}.get(case.dtype, case.dtype))())


def write(case: Case, directory: Path) -> Path:
    """Write the file of a case."""
    path = directory / "scan.parquet"
    delta = "DELTA_BINARY_PACKED" if case.dtype == "int64" else "DELTA_BYTE_ARRAY"
    encoding = {"split": "BYTE_STREAM_SPLIT", "delta": delta}.get(case.encoding)
    pq.write_table(
        pa.table({"x": column(case)}),
        path,
        row_group_size=case.group_rows,
        compression=case.codec,
        use_dictionary=case.encoding == "dictionary",
        column_encoding=encoding and {"x": encoding},
        use_deprecated_int96_timestamps=case.dtype == "int96",
        dictionary_pagesize_limit=64 << 20,
    )
    return path


def selections(case: Case, source: ParquetSource) -> list[Int64s | None]:
    """The rows to read of each row group; None for all."""
    rng = np.random.default_rng(_SEED)
    return [
        None if case.selected == 1 else np.flatnonzero(rng.random(split.rows) < case.selected)
        for split in source.splits()
    ]


def by_engine(source: ParquetSource, selected: list[Int64s | None]) -> pa.ChunkedArray:
    """The column as the engine's scan decodes it, which coalesces small row groups."""
    parts = []
    splits, chosen = source.splits(), selected
    while splits:
        together = splits[: max(1, _COALESCED_ROWS // splits[0].rows)]
        split, count = source.coalesce(together, ["x"])
        rows = _rows_of_coalesced(splits[:count], chosen[:count])
        batch = next(source.read(split, ["x"])) if rows is None else source.read_rows(split, ["x"], rows)
        parts.append(batch.columns[0])
        splits, chosen = splits[count:], chosen[count:]
    return pa.chunked_array(parts)


def _rows_of_coalesced(splits: list[Split], selected: list[Int64s | None]) -> Int64s | None:
    """The positions of the selected rows in the coalesced splits; None for all."""
    starts = np.cumsum([0, *(split.rows for split in splits)])
    parts = [rows + start for rows, start in zip(selected, starts[:-1], strict=True) if rows is not None]
    return np.concatenate(parts) if parts else None


def by_pyarrow(path: Path, selected: list[Int64s | None]) -> pa.ChunkedArray:
    """The column as pyarrow decodes it: whole row groups, then the selected rows of them."""
    file = pq.ParquetFile(path)
    parts: list[pa.Array] = []
    for group, rows in enumerate(selected):
        data = file.read_row_group(group, columns=["x"], use_threads=False).column(0)
        parts += (data if rows is None else data.take(pa.array(rows))).chunks
    return pa.chunked_array(parts)


def readers(case: Case, path: Path) -> dict[str, Reader]:
    """The readers of a case by name."""
    source = parquet_source([str(path)])
    without = ParquetSource(source.files, source.table_schema, compiled=False)
    selected = selections(case, source)
    found: dict[str, Reader] = {
        "engine": lambda: by_engine(source, selected),
        "no loops": lambda: by_engine(without, selected),
        "pyarrow": lambda: by_pyarrow(path, selected),
    }
    if importlib.util.find_spec("duckdb") is not None:
        import duckdb

        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        value = (
            "strlen(x)"
            if case.dtype == "string"
            else "x - date '1970-01-01'"
            if case.dtype == "date"
            else "epoch_us(x)"
            if case.dtype == "int96"
            else "x::INT"
            if case.dtype == "boolean"
            else "x"
        )
        found["duckdb"] = lambda: connection.execute(
            f"SELECT count(x), sum({value}) FROM read_parquet('{path}')"
        ).fetchall()
    if importlib.util.find_spec("polars") is not None:
        import polars

        found["polars"] = lambda: polars.read_parquet(path, columns=["x"], use_statistics=False)
    return found


def check(case: Case, results: dict[str, Any]) -> None:
    """Raise AssertionError unless the engine's rows, with and without loops, are pyarrow's."""
    expected = as_plain(results["pyarrow"])
    for name in ("engine", "no loops"):
        assert as_plain(results[name]).equals(expected), (case, name)
    if "duckdb" in results and case.selected == 1:
        assert results["duckdb"][0][0] == len(expected) - expected.null_count, case


def as_plain(data: pa.ChunkedArray) -> pa.Array:
    """A column as one array of values: times as microseconds, and decimals as unscaled integers."""
    array = pa.chunked_array(
        [pc.cast(c, c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in data.chunks]
    ).combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
    return narrow(array) if pa.types.is_decimal(array.type) else array


def measure(case: Case, directory: Path, rounds: int) -> dict[str, float]:
    """Nanoseconds of CPU time per value of the file for each reader."""
    named = readers(case, write(case, directory))
    check(case, {name: read() for name, read in named.items()})
    seconds: dict[str, list[float]] = {name: [] for name in named}
    for _ in range(rounds):
        for name, read in named.items():
            start = time.process_time()
            read()
            seconds[name].append(time.process_time() - start)
    return {name: statistics.median(times) / ROWS * 1e9 for name, times in seconds.items()}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scan", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each row of the table (default: 5)")
    parser.add_argument("--only", default="", help="measure the rows of the table that contain this string")
    args = parser.parse_args()
    if FILE_LOOPS.compile_now() is None:
        parser.error("the loops cannot be compiled: numba or a cache directory is missing")
    is_first = True
    with tempfile.TemporaryDirectory() as directory:
        for case in cases():
            if args.only not in str(case):
                continue
            numbers = measure(case, Path(directory), args.rounds)
            if is_first:
                heads = "".join(f"{name:>10}" for name in numbers)
                print(f"{'type':8} {'encoding':10} {'codec':7} NULLs distinct    group   rows{heads}")
                is_first = False
            print(str(case) + "".join(f"{number:10.2f}" for number in numbers.values()), flush=True)


if __name__ == "__main__":
    main()
