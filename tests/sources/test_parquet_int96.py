"""INT96 times at the ends of what files can hold: Spark's answer or an error, never another time."""

from __future__ import annotations

import struct
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.errors import FallbackWarning, SourceError
from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.sources.parquet import chunk_pages
from kquery_spark.sources.parquet.open_files import open_file
from kquery_spark.sources.parquet.path_source import parquet_source

READ = (-210_866_716_800_000_000, -62_135_596_800_000_000, 0, 253_402_300_799_999_999, 7 * 10**18)
MISREAD = (-(2**63) + 1, -7 * 10**18, -2 * 10**18, -210_900_000_000_000_000, 2**63 - 1)
DAY_1970, HALF_DAY = 2_440_588, 43_200 * 10**9
"""The Julian day number of 1970-01-01, and half a day in nanoseconds."""
NEGATIVE_NANOS = [
    (0, 0),
    (-HALF_DAY, DAY_1970),
    (-1, DAY_1970 - 9999),
    (-1999, 1),
    (-HALF_DAY, DAY_1970 + 30_000),
]
DIRECTORY = "int96"


@pytest.fixture
def written(spark: Any, tmp_path: Path) -> Any:
    """Writes times, as microseconds, the way Spark does by default; gives the directory."""

    def write(*micros: int) -> str:
        path = str(tmp_path / DIRECTORY)
        rows = ", ".join(f"(timestamp_micros({m}L), {n})" for n, m in enumerate(micros))
        spark.sql(f"SELECT * FROM VALUES {rows} AS v(t, k)").coalesce(1).write.parquet(path)
        return path

    return write


def file_of(directory: Path, stored: list[tuple[int, int]]) -> str:
    """A file of INT96 times with these nanoseconds and Julian days."""
    path = directory / f"{DIRECTORY}.parquet"
    days = [datetime(2000, 1, 1 + i) for i in range(len(stored))]
    times = pa.table({"t": pa.array(days, pa.timestamp("us"))})
    pq.write_table(
        times, path, use_deprecated_int96_timestamps=True, use_dictionary=False, compression="none"
    )
    data = path.read_bytes()
    for i, (nanos, day) in enumerate(stored):
        data = data.replace(struct.pack("<qi", 0, DAY_1970 + 10_957 + i), struct.pack("<qi", nanos, day))
    path.write_bytes(data)
    return str(path)


def micros_in_context(path: str) -> list[int]:
    context = kq.ExecutionContext()
    context.register_parquet("f", path)
    found: list[int] = context.sql("SELECT unix_micros(t) AS u FROM f").to_arrow()["u"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize("micros", READ)
def test_times_that_arrow_reads_are_sparks(spark: Any, written: Any, micros: int) -> None:
    path = written(micros, 1)
    frame = spark.read.parquet(path).selectExpr("unix_micros(t) AS u").groupBy("u").count()
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    assert sorted(fast.collect()) == sorted(frame.collect()) == sorted([(micros, 1), (1, 1)])


@pytest.mark.parametrize("micros", MISREAD)
def test_times_that_arrow_misreads_fall_back_to_spark(spark: Any, written: Any, micros: int) -> None:
    path = written(micros, 1)
    frame = spark.read.parquet(path).selectExpr("unix_micros(t) AS u").groupBy("u").count()
    fast = frame.transform(kquery_plan, when="always")
    with pytest.warns(
        FallbackWarning, match="column t has INT96 times before 4713 BC or past the year 285,000"
    ):
        assert sorted(fast.collect()) == sorted([(micros, 1), (1, 1)])
    context = kq.ExecutionContext()
    context.register_parquet("f", path)
    with pytest.raises(
        SourceError, match=rf"cannot read row group 0 of .*{DIRECTORY}.*: column t has INT96 times"
    ):
        context.sql("SELECT max(t) AS t FROM f").to_arrow()
    assert context.sql("SELECT sum(k) AS k FROM f").to_arrow().to_pydict() == {"k": [1]}


@pytest.mark.parametrize("compiled", [True, False])
def test_negative_nanoseconds_are_read_as_by_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernels: Any, compiled: bool
) -> None:
    monkeypatch.setattr(FILE_LOOPS, "kernels", lambda *_: kernels if compiled else None)
    path = file_of(tmp_path, NEGATIVE_NANOS)
    expected = sorted(row[0] for row in spark.read.parquet(path).selectExpr("unix_micros(t)").collect())
    assert micros_in_context(path) == expected
    assert -HALF_DAY // 1000 in expected


def test_times_of_other_writers_beyond_64_bits_fall_back_to_spark(spark: Any, tmp_path: Path) -> None:
    path = file_of(tmp_path, [(0, DAY_1970), (0, 2**31 - 1)])
    with pytest.raises(
        SourceError, match=rf"cannot read row group 0 of .*{DIRECTORY}.*: column t has INT96 times"
    ):
        micros_in_context(path)
    frame = spark.read.parquet(path).selectExpr("unix_micros(t) AS u").groupBy("u").count()
    fast = frame.transform(kquery_plan, when="always")
    with pytest.warns(FallbackWarning, match="column t has INT96 times that 64-bit microseconds cannot"):
        assert sorted(fast.collect()) == sorted(frame.collect())


@pytest.mark.usefixtures("pages_of_small_chunks")
def test_single_pages_are_checked_too(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / DIRECTORY)
    odd = "CASE WHEN id = 900 THEN timestamp_micros(-7000000000000000000L) ELSE timestamp_seconds(id) END"
    writer = spark.range(1000).coalesce(1).selectExpr("id", f"{odd} AS t").write
    writer.option("parquet.page.row.count.limit", "100").option("parquet.enable.dictionary", "false").parquet(
        path
    )
    context = kq.ExecutionContext()
    context.register_parquet("f", path)
    other = context.sql("SELECT max(t) AS t FROM f WHERE id BETWEEN 5 AND 6").to_arrow()
    assert other["t"][0].as_py().second == 6
    with pytest.raises(SourceError, match="column t has INT96 times"):
        context.sql("SELECT max(t) AS t FROM f WHERE id BETWEEN 900 AND 901").to_arrow()


@pytest.mark.usefixtures("pages_of_small_chunks")
def test_single_pages_of_other_writers_are_read_as_by_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(tmp_path, NEGATIVE_NANOS)
    (file,) = parquet_source([path]).files
    opened = open_file(file)
    pages = opened.pages.with_rows(0, "t", np.arange(2))
    assert pages is None  # all rows are in one page
    monkeypatch.setattr(chunk_pages, "_MAX_PAGE_ROW_SHARE", 1.0)
    pages = opened.pages.with_rows(0, "t", np.arange(2))
    assert pages is not None
    expected = [row[0] for row in spark.read.parquet(path).selectExpr("unix_micros(t)").collect()]
    assert opened.read_pages(0, [pages])[0].cast(pa.int64()).to_pylist() == expected
