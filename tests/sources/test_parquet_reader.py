"""The compiled reader of Parquet columns: the same rows as pyarrow, for all types, encodings, codecs, and page versions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import SourceError
from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.physical import split_columns
from kquery_spark.sources.parquet.column_reader import ColumnReader
from kquery_spark.sources.parquet.file import OpenFile
from kquery_spark.sources.parquet.open_files import open_file
from kquery_spark.sources.parquet.source import parquet_source
from kquery_spark.types.vector import narrow

ROWS = 5000
CODECS = ["none", "snappy", "gzip", "zstd", "lz4"]
NULLS = [0.0, 0.05, 0.9]


def table(nulls: float, rows: int = ROWS, distinct: int = 700) -> pa.Table:
    rng = np.random.default_rng(5)
    mask = rng.random(rows) < nulls if nulls else None
    whole = rng.integers(0, distinct, rows)
    runs = np.repeat(whole, rng.integers(1, 60, rows))[:rows]

    def column(values: Any, dtype: pa.DataType | None = None) -> pa.Array:
        return pa.array(values, dtype, mask=mask)

    return pa.table(
        {
            "i": column(whole.astype(np.int32) - 300),
            "l": column(whole * 10**15 - 10**17),
            "unique": column(np.arange(rows) * 7919),
            "runs": column(runs),
            "one": column(np.full(rows, 42)),
            "f": column((whole / 7).astype(np.float32)),
            "d": column(np.where(whole == 3, np.nan, np.where(whole == 4, -0.0, whole / 3))),
            "day": column(whole.astype("datetime64[D]")),
            "ts": column(whole.astype("datetime64[us]")),
            "m": column(whole.astype(np.int32)).cast(pa.decimal128(12, 2)),
            "s": column([f"string {v}" * (v % 4) for v in whole]),
            "few": column([["a", "", "ü€", "four"][v % 4] for v in whole]),
            "long": column(["x" * int(v) for v in whole % 300]),
            "b": column([bytes([v % 256]) * (v % 30) for v in whole], pa.binary()),
            "empty": column([""] * rows),
        }
    )


def write(path: Path, rows: pa.Table, **options: Any) -> OpenFile:
    given = {
        "data_page_size": 1500,
        "write_batch_size": 128,
        "row_group_size": 3000,
        "store_decimal_as_integer": True,
    }
    pq.write_table(rows, str(path), **{**given, **options})
    return open_file(parquet_source([str(path)]).files[0])


def as_read(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array in which bits are compared: floats and short decimals as integers, dictionaries as strings."""
    array = column.combine_chunks()
    if pa.types.is_decimal(array.type) and array.type.precision <= 18:
        array = narrow(array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):
        array = array.view(pa.int32() if array.type == pa.float32() else pa.int64())
    return array


def selections(rows: int) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    rng = np.random.default_rng(rows)
    every = np.arange(rows)
    some = [every[rng.random(rows) < share] for share in (0.004, 0.03, 0.3, 0.9)]
    return [every[:0], every[:1], every[-1:], every[rows // 3 : rows // 3 + 5], every, *some]


def assert_equal_to_pyarrow(opened: OpenFile, kernels: ModuleType, *, read: set[str]) -> None:
    """Compares all rows and selections of each column and row group. read: the columns that the loops must read."""
    for group, (rows, _) in enumerate(opened.groups):
        columns = opened.column_readers(group, opened.schema.names, kernels)
        for name in opened.schema.names:
            expected = as_read(opened.read(group, [name]).column(0))
            found = columns[name].read() if name in columns else None
            assert (found is not None) == (name in read), (name, group)
            if found is None:
                assert name not in columns or all(columns[name].read(r) is None for r in selections(rows)[1:])
                continue
            found.validate(full=True)
            assert as_read(pa.chunked_array([found])).equals(expected), (name, group)
            for chosen in selections(rows):
                some = columns[name].read(chosen)
                assert some is not None, (name, group, len(chosen))
                some.validate(full=True)
                assert as_read(pa.chunked_array([some])).equals(expected.take(pa.array(chosen))), (
                    name,
                    group,
                    len(chosen),
                )


def assert_pages_are_read(
    path: Path, kernels: ModuleType, table_of: Callable[[float], pa.Table], **options: Any
) -> None:
    """Compare files with and without dictionaries, for all shares of NULLs, with pyarrow. table_of: makes the table."""
    for nulls in NULLS:
        rows = table_of(nulls)
        opened = write(path / f"coded{nulls}.parquet", rows, **options)
        assert_equal_to_pyarrow(opened, kernels, read=set(rows.schema.names))
        plain = write(path / f"plain{nulls}.parquet", rows, use_dictionary=False, **options)
        assert_equal_to_pyarrow(plain, kernels, read=set(rows.schema.names))


@pytest.mark.parametrize(("codec", "version"), list(product(CODECS, ["1.0", "2.0"])))
def test_dictionary_and_plain_pages_are_read_as_by_pyarrow(tmp_path, kernels, codec, version):
    assert_pages_are_read(tmp_path, kernels, table, compression=codec, data_page_version=version)


@pytest.mark.parametrize("nulls", NULLS)
def test_chunks_whose_dictionary_became_too_large_are_read_as_by_pyarrow(tmp_path, kernels, nulls):
    rows = table(nulls)
    opened = write(tmp_path / "f.parquet", rows, dictionary_pagesize_limit=600)
    mixed = set(opened._dictionaries) & {"s", "long"}  # read as dictionaries, which plain pages are not
    assert_equal_to_pyarrow(opened, kernels, read=set(rows.schema.names) - mixed)


@pytest.mark.parametrize("row_group_size", [1, 7, 64, 5000])
def test_row_groups_of_all_sizes_are_read_as_by_pyarrow(tmp_path, kernels, row_group_size):
    rows = table(0.2, rows=70 if row_group_size < 64 else ROWS)
    opened = write(tmp_path / "f.parquet", rows, row_group_size=row_group_size, data_page_size=1 << 20)
    names = {"i", "l", "runs", "s", "d"}
    for group in range(min(3, len(opened.groups))):
        columns = opened.column_readers(group, sorted(names), kernels)
        for name, column in columns.items():
            found = column.read()
            assert found is not None
            assert as_read(pa.chunked_array([found])).equals(as_read(opened.read(group, [name]).column(0)))


@pytest.mark.parametrize("distinct", [1, 2, 3, 200, 300, 5000, 40_000, 70_000, 140_000])
def test_dictionary_indices_of_all_widths_are_read_as_by_pyarrow(tmp_path, kernels, distinct):
    rng = np.random.default_rng(distinct)
    values = np.concatenate([rng.permutation(distinct), rng.integers(0, distinct, 3000)])
    rows = pa.table(
        {"x": pa.array(values), "y": pa.array(values.astype(np.int32), mask=rng.random(len(values)) < 0.1)}
    )
    opened = write(
        tmp_path / "f.parquet",
        rows,
        row_group_size=len(rows),
        dictionary_pagesize_limit=10**8,
        data_page_size=10**5,
    )
    assert_equal_to_pyarrow(opened, kernels, read={"x", "y"})


def test_other_encodings_and_types_are_left_to_pyarrow(tmp_path, kernels):
    rows = table(0.1).select(["l", "s"])
    encodings = {"l": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY"}
    opened = write(tmp_path / "delta.parquet", rows, use_dictionary=False, column_encoding=encodings)
    assert_equal_to_pyarrow(opened, kernels, read=set())
    split = dict.fromkeys(["l", "d"], "BYTE_STREAM_SPLIT")
    rows = table(0.1).select(["l", "d"])
    opened = write(tmp_path / "split.parquet", rows, use_dictionary=False, column_encoding=split)
    assert_equal_to_pyarrow(opened, kernels, read=set())
    others = pa.table(
        {
            "list": pa.array([[1, 2], None] * 50),
            "fixed": pa.array([b"abc", None] * 50, pa.binary(3)),
        }
    )
    assert_equal_to_pyarrow(write(tmp_path / "others.parquet", others), kernels, read=set())


@pytest.mark.parametrize("codec", ["none", "snappy", "lz4"])
def test_damaged_pages_are_errors_or_what_pyarrow_reads(tmp_path, kernels, codec):
    rng = np.random.default_rng(3)
    rows = table(0.2, rows=1500, distinct=60).select(["i", "runs", "s", "long"])
    path = tmp_path / "f.parquet"
    write(path, rows, compression=codec, row_group_size=1500)
    good = path.read_bytes()
    metadata = pq.read_metadata(path).row_group(0)
    outcomes = set()
    for number in range(240):
        index = number % metadata.num_columns
        chunk = metadata.column(index)
        start = chunk.dictionary_page_offset
        bad = bytearray(good)
        for _ in range(int(rng.integers(1, 4))):
            bad[int(rng.integers(start, start + chunk.total_compressed_size))] = int(rng.integers(0, 256))
        changed = tmp_path / f"{number}.parquet"
        changed.write_bytes(bad)
        opened, name = open_file(parquet_source([str(changed)]).files[0]), rows.schema.names[index]
        found = opened.column_readers(0, [name], kernels)[name].read()
        few = opened.column_readers(0, [name], kernels)[name].read(np.arange(0, 1500, 100))
        try:
            expected = as_read(opened.read(0, [name]).column(0))
        except SourceError:
            expected = None
        if found is not None:
            found.validate()
            assert few is not None
        if found is not None and expected is not None:
            assert as_read(pa.chunked_array([found])).equals(expected), number
            assert few is not None
            assert as_read(pa.chunked_array([few])).equals(
                expected.take(pa.array(np.arange(0, 1500, 100)))
            ), number
        outcomes.add((found is None, expected is None))
    assert {(False, False), (True, True)} <= outcomes


QUERIES = [
    "SELECT i, l, s, few, day, m, d FROM t WHERE i = 5 OR few = 'four' AND day > date '1970-06-01'",
    "SELECT few, count(*) AS n, sum(runs) AS r, max(s) AS s FROM t WHERE unique > 7919000 GROUP BY few",
    "SELECT long, b, ts FROM t WHERE runs BETWEEN 100 AND 120 AND s IS NOT NULL",
    "SELECT s, m FROM t WHERE m > 3.00 AND long LIKE 'xx%' AND one = 42",
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_give_the_same_rows_with_and_without_loops(tmp_path, monkeypatch, kernels, query):
    monkeypatch.setattr(split_columns, "_MIN_INDEXED_ROWS", 0)
    write(tmp_path / "f.parquet", table(0.1))
    used: list[bool] = []
    real = ColumnReader.read

    def read(self: ColumnReader, rows: Any = None) -> Any:
        used.append(rows is not None)
        return real(self, rows)

    monkeypatch.setattr(ColumnReader, "read", read)

    def answer() -> pa.Table:
        context = kq.ExecutionContext()
        context.register_parquet("t", str(tmp_path / "f.parquet"))
        rows = context.sql(query).to_arrow()
        return rows.sort_by([(name, "ascending") for name in rows.schema.names])

    by_loops = answer()
    assert True in used
    monkeypatch.setattr(FILE_LOOPS, "kernels", lambda *_: None)
    used.clear()
    assert by_loops.equals(answer())
    assert not used
    assert by_loops.num_rows > 0


def test_the_values_of_null_rows_are_zero(tmp_path, kernels):
    opened = write(tmp_path / "f.parquet", table(0.5), row_group_size=ROWS)
    found = opened.column_readers(0, ["l"], kernels)["l"].read()
    assert found is not None
    values = np.frombuffer(found.buffers()[1], np.int64)
    assert not values[pc.is_null(found).to_numpy(zero_copy_only=False)].any()
