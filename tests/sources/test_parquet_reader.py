"""The compiled reader of Parquet columns: the same rows as pyarrow, for all types, encodings, codecs, and page versions."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kquery_spark as kq
from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.physical import split_columns
from kquery_spark.sources.parquet.column_reader import ColumnReader
from tests.sources.damaged_chunks import check_damaged_chunks
from tests.sources.parquet_reading import (
    CODECS,
    NULLS,
    ROWS,
    assert_equal_to_pyarrow,
    assert_pages_are_read,
    with_comparable_bits,
    write,
)


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
        columns = opened.column_readers([group], sorted(names), kernels)
        for name, column in columns.items():
            found = column.read()
            assert found is not None
            assert with_comparable_bits(pa.chunked_array([found])).equals(
                with_comparable_bits(opened.read(group, [name]).column(0))
            )


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


def test_other_types_are_left_to_pyarrow(tmp_path, kernels):
    others = pa.table(
        {
            "list": pa.array([[1, 2], None] * 50),
            "fixed": pa.array([b"abc", None] * 50, pa.binary(3)),
        }
    )
    assert_equal_to_pyarrow(write(tmp_path / "others.parquet", others), kernels, read=set())


@pytest.mark.parametrize("codec", ["none", "snappy", "lz4"])
def test_damaged_pages_are_errors_or_what_pyarrow_reads(tmp_path, kernels, codec):
    rows = table(0.2, rows=1500, distinct=60).select(["i", "runs", "s", "long"])
    write(tmp_path / "f.parquet", rows, compression=codec, row_group_size=1500)
    check_damaged_chunks(tmp_path / "f.parquet", kernels, 240)


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
    found = opened.column_readers([0], ["l"], kernels)["l"].read()
    assert found is not None
    values = np.frombuffer(found.buffers()[1], np.int64)
    assert not values[pc.is_null(found).to_numpy(zero_copy_only=False)].any()
