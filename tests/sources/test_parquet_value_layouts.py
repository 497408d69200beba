"""Columns whose values are stored otherwise than in Arrow: the compiled loops read them as pyarrow does, and as Spark does."""

from __future__ import annotations

from dataclasses import replace
from decimal import Context, Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.fuzz.settings import IN_DRIVER, applied
from kquery_spark.kernels.parquet_page_table import BITS, INT96
from kquery_spark.sources.parquet.column_reader import ColumnReader
from kquery_spark.sources.parquet.flat_chunk import ValueLayout
from kquery_spark.sources.parquet.open_files import open_file
from kquery_spark.sources.parquet.path_source import parquet_source
from tests.conftest import SPARK_VERSION
from tests.sources.damaged_chunks import check_damaged_chunks
from tests.sources.parquet_reading import (
    CODECS,
    NULLS,
    ROWS,
    assert_equal_to_pyarrow,
    assert_filtered_as_by_spark,
    assert_pages_are_read,
    write,
)

DAYS = 86_400_000_000


DIGITS = (2, 4, 6, 9, 11, 14, 16, 18, 19, 21, 23, 26, 28, 31, 33, 35, 38)
"""The numbers of digits of decimals in 1 to 16 bytes, including two numbers for 9 bytes."""


def decimals(rng: np.random.Generator, few: Any, digits: int, mask: Any) -> pa.Array:
    """Decimals with two digits after the point: the largest and the smallest one, few distinct ones, and others."""
    largest, words = 10**digits - 1, rng.integers(0, 1 << 62, (len(few), 3)).tolist()
    values = [(a << 70 | b << 35 | c) % (2 * largest) - largest for a, b, c in words]
    ends = [largest, -largest, 0, -1]
    values = [ends[i] if i < 4 else v if i % 500 < 250 else few[i] % 10 for i, v in enumerate(values)]
    scaled = [Decimal(int(v)).scaleb(-2, Context(prec=40)) for v in values]
    kept = scaled if mask is None else [None if null else v for v, null in zip(scaled, mask, strict=True)]
    return pa.array(kept, pa.decimal128(digits, 2))


def table(nulls: float, rows: int = ROWS) -> pa.Table:
    """INT96 times from the year 1 to 9999, Boolean values, short integers, and decimals of all digits, also in few bytes."""
    rng = np.random.default_rng(11)
    mask = rng.random(rows) < nulls if nulls else None
    few = rng.integers(0, 150, rows)
    first, last = -719_162 * DAYS, 2_932_896 * DAYS + DAYS - 1

    def column(values: Any, dtype: pa.DataType | None = None) -> pa.Array:
        return pa.array(values, dtype, mask=mask)

    return pa.table(
        {
            "few_times": column((few - 75) * (DAYS // 2) - few % 2, pa.timestamp("us")),
            "times": column(rng.integers(first, last, rows, endpoint=True), pa.timestamp("us")),
            "ends": column(np.where(few % 2, first, last), pa.timestamp("us")),
            "flag": column(few % 3 == 0),
            "all": column(np.ones(rows, np.bool_)),
            "runs": column(np.arange(rows) // 100 % 2 == 0),
            "byte": column((few - 75).astype(np.int8)),
            "short": column(rng.integers(-(1 << 15), 1 << 15, rows).astype(np.int16)),
            "u8": column(few.astype(np.uint8)),
            "u16": column(rng.integers(0, 1 << 16, rows).astype(np.uint16)),
            "u32": column(rng.integers(0, 1 << 32, rows).astype(np.uint32)),
            "u64": column(few.astype(np.uint64) << np.uint64(57)),
            "time": column(few * 10**6, pa.time64("us")),
            **{f"m{digits}": decimals(rng, few, digits, mask) for digits in DIGITS},
        }
    )


IN_OTHER_LAYOUTS = {"use_deprecated_int96_timestamps": True, "store_decimal_as_integer": False}


@pytest.mark.parametrize(("codec", "version"), list(product(CODECS, ["1.0", "2.0"])))
def test_dictionary_and_plain_pages_are_read_as_by_pyarrow(tmp_path, kernels, codec, version):
    options = {"compression": codec, "data_page_version": version, **IN_OTHER_LAYOUTS}
    assert_pages_are_read(tmp_path, kernels, table, **options)


@pytest.mark.parametrize("nulls", NULLS)
def test_chunks_whose_dictionary_became_too_large_are_read_as_by_pyarrow(tmp_path, kernels, nulls):
    rows = table(nulls)
    opened = write(tmp_path / "f.parquet", rows, dictionary_pagesize_limit=600, **IN_OTHER_LAYOUTS)
    assert_equal_to_pyarrow(opened, kernels, read=set(rows.schema.names))


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 8, 9])
def test_short_chunks_are_read_as_by_pyarrow(tmp_path, kernels, rows):
    for nulls, use_dictionary in product((0.0, 0.5, 1.0), (True, False)):
        some = table(nulls, rows)
        path = tmp_path / f"{nulls}{use_dictionary}.parquet"
        opened = write(path, some, use_dictionary=use_dictionary, compression="none", **IN_OTHER_LAYOUTS)
        if rows:
            assert_equal_to_pyarrow(opened, kernels, read=set(some.schema.names))
            continue
        for group in range(len(opened.groups)):
            read = [r.read() for r in opened.column_readers([group], some.schema.names, kernels).values()]
            assert all(column is None or len(column) == 0 for column in read)


@pytest.mark.parametrize("codec", ["none", "snappy", "lz4"])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_damaged_pages_are_errors_or_what_pyarrow_reads(tmp_path, kernels, codec, use_dictionary):
    rows = table(0.2, rows=600)
    options = {"compression": codec, "use_dictionary": use_dictionary, **IN_OTHER_LAYOUTS}
    write(tmp_path / "f.parquet", rows, row_group_size=600, **options)
    check_damaged_chunks(tmp_path / "f.parquet", kernels, 40 * rows.num_columns)


SPARK_TIMES = ("(id % 40) * 43200000000 - 864000000001", "id * 7777777777 - 62135596800000000")


@pytest.mark.parametrize("rebase", ["CORRECTED", "LEGACY"])
@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_times_that_spark_wrote_are_read_as_by_spark(spark, tmp_path, check_reader, rebase, zone):
    path = str(tmp_path / "times")
    columns = [f"IF(id % 7 = 3, NULL, timestamp_micros({m})) AS c{i}" for i, m in enumerate(SPARK_TIMES)]
    settings = {
        "spark.sql.parquet.int96RebaseModeInWrite": rebase,
        "spark.sql.session.timeZone": zone,
        **IN_DRIVER,
    }
    with applied(spark, settings):
        spark.range(3000).coalesce(1).selectExpr("id", *columns).write.parquet(path)
        frame = spark.read.parquet(path).where("c0 < TIMESTAMP '1970-01-05'")
        frame = frame.selectExpr("id", "unix_micros(c0) AS a", "unix_micros(c1) AS b")
        expected = sorted(frame.collect())
        fast = frame.transform(kq.kquery_plan, when="always", fallback="error")
        assert sorted(fast.collect()) == expected
    assert expected
    check_reader()
    assert open_file(parquet_source([path]).files[0]).int96 == {"c0", "c1"}


def test_decimals_have_all_numbers_of_bytes(tmp_path):
    opened = write(tmp_path / "f.parquet", table(0.1), **IN_OTHER_LAYOUTS)
    leaves = [opened.flat(f"m{digits}") for digits in DIGITS]
    assert {leaf.physical_type for leaf in leaves} == {"FIXED_LEN_BYTE_ARRAY"}
    assert [leaf.length for leaf in leaves] == sorted([*range(1, 17), 9])


@pytest.mark.parametrize("legacy", ["true", "false"])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_columns_that_spark_wrote_are_read_as_by_spark(spark, tmp_path, check_reader, legacy, version):
    path = str(tmp_path / "columns")
    numbers = {
        "flag": "id % 3 = 0",
        "byte": "CAST(id % 256 - 128 AS BYTE)",
        "short": "CAST(id * 77 % 65536 - 32768 AS SHORT)",
        "m7": "CAST((id % 50 - 25) / 4 AS DECIMAL(7, 2))",
        "m12": "CAST((id - 1500) * 1000003 AS DECIMAL(12, 2))",
        "m18": "CAST((id - 1500) * 100000300001 AS DECIMAL(18, 2))",
        "m38": "CAST((id - 1500) AS DECIMAL(38, 10)) * 1000000000000000000",
    }
    columns = [f"IF(id % 7 = 3, NULL, {number}) AS {name}" for name, number in numbers.items()]
    settings = {"spark.sql.parquet.writeLegacyFormat": legacy, **IN_DRIVER}
    with applied(spark, settings):
        writer = spark.range(3000).coalesce(1).selectExpr("id", *columns).write
        # version 2 uses delta encodings for columns without a dictionary
        writer.option("parquet.writer.version", version).parquet(path)
        for condition in ("flag AND byte > 3", "m7 = 1.25", "m38 < 0 AND short > 100", "id > 5"):
            assert_filtered_as_by_spark(spark, path, condition)
    check_reader()
    types = {name: open_file(parquet_source([path]).files[0]).flat(name).physical_type for name in numbers}
    assert types["m7"] == ("FIXED_LEN_BYTE_ARRAY" if legacy == "true" else "INT32")


@pytest.mark.parametrize("codec", ["lz4", "lz4raw" if SPARK_VERSION < (4, 0) else "lz4_raw"])
def test_both_formats_of_lz4_that_spark_writes_are_read(spark, tmp_path, kernels, codec):
    path = str(tmp_path / "lz4")
    rows = spark.range(3000).coalesce(1).selectExpr("id % 100 AS k", "repeat(id % 7, 9) AS s")
    rows.write.option("compression", codec).parquet(path)
    opened = open_file(parquet_source([path]).files[0])
    if codec == "lz4":  # blocks behind a header of Hadoop, which the loops do not read
        assert not opened.column_readers([0], ["k", "s"], kernels)
    else:
        assert_equal_to_pyarrow(opened, kernels, read={"k", "s"})
    context = kq.ExecutionContext()
    context.register_parquet("t", path)
    found = context.sql("SELECT s, sum(k) AS k FROM t WHERE k > 40 GROUP BY s").to_arrow()
    expected = spark.read.parquet(path).where("k > 40").groupBy("s").sum("k").collect()
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == sorted(map(tuple, expected))


@pytest.mark.parametrize(
    "layout", [ValueLayout(pa.bool_(), 1, BITS, 1), ValueLayout(pa.timestamp("us"), 12, INT96, 8)]
)
def test_a_dictionary_that_cannot_have_the_values_is_declined(tmp_path, kernels, layout):
    """A damaged footer may call a column of other values Boolean, and a damaged header may declare too many values."""
    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"a": pa.array(np.arange(20_000) % 100, pa.int32())}), path, version="1.0")
    opened = open_file(parquet_source([str(path)]).files[0])
    chunk = opened._flat_chunk(0, "a")
    assert chunk is not None
    start, size = chunk.byte_range
    data = np.frombuffer(path.read_bytes(), np.uint8)[start : start + size]
    assert ColumnReader([chunk], kernels, data).read() is not None
    damaged = ColumnReader([replace(chunk, dtype=layout.dtype, layout=layout)], kernels, data)
    assert damaged.read() is None
    assert damaged.dictionary_values() is None
