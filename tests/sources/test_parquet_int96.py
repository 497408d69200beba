"""INT96 times at the ends of what files can hold: Spark's answer or an error, never another time."""

from __future__ import annotations

import struct
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.errors import FallbackWarning, SourceError
from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.sources.parquet import chunk_pages

DAY_0 = -210_866_803_200_000_000
MICROS = (
    -(2**63) + 1,
    -7 * 10**18,
    -2 * 10**18,
    -210_900_000_000_000_000,
    DAY_0,
    DAY_0 + 1,
    -210_866_716_800_000_000,
    -62_135_596_800_000_000,
    0,
    253_402_300_799_999_999,
    7 * 10**18,
    2**63 - 1,
)
DAY_1970, HALF_DAY = 2_440_588, 43_200 * 10**9
"""The Julian day number of 1970-01-01, and nanoseconds."""
NEGATIVE_NANOS = [(-HALF_DAY, DAY_1970), (-1, DAY_1970 - 9999), (-1999, 1), (-HALF_DAY, DAY_1970 + 30_000)]
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


@pytest.mark.parametrize("micros", MICROS)
def test_times_are_those_of_spark(spark: Any, written: Any, micros: int) -> None:
    path = written(micros, 1)
    frame = spark.read.parquet(path).selectExpr("unix_micros(t) AS u").groupBy("u").count()
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    assert sorted(fast.collect()) == sorted(frame.collect()) == sorted([(micros, 1), (1, 1)])


@pytest.mark.parametrize("compiled", [True, False])
def test_negative_nanoseconds_are_read_as_by_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernels: Any, compiled: bool
) -> None:
    monkeypatch.setattr(FILE_LOOPS, "kernels", lambda: kernels if compiled else None)
    path = file_of(tmp_path, NEGATIVE_NANOS)
    expected = sorted(row[0] for row in spark.read.parquet(path).selectExpr("unix_micros(t)").collect())
    assert micros_in_context(path) == expected
    assert -HALF_DAY // 1000 in expected


def test_times_beyond_64_bits_are_left_to_spark(spark: Any, tmp_path: Path) -> None:
    path = file_of(tmp_path, [(0, DAY_1970), (0, 2**31 - 1)])
    with pytest.raises(
        SourceError, match=rf"cannot read row group 0 of .*{DIRECTORY}.*: column t has INT96 times"
    ):
        micros_in_context(path)
    frame = spark.read.parquet(path).selectExpr("unix_micros(t) AS u").groupBy("u").count()
    fast = frame.transform(kquery_plan, when="always")
    with pytest.warns(FallbackWarning, match="column t has INT96 times that 64-bit microseconds cannot"):
        assert sorted(fast.collect()) == sorted(frame.collect())


@pytest.mark.parametrize("is_old", [True, False])
def test_single_pages_are_read_as_well(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_old: bool
) -> None:
    path = str(tmp_path / DIRECTORY)
    odd = "CASE WHEN id = 900 THEN timestamp_micros(-7000000000000000000L) ELSE timestamp_seconds(id) END"
    writer = (
        spark.range(1000).coalesce(1).selectExpr("id", f"{odd if is_old else 'timestamp_seconds(id)'} AS t")
    )
    writer = writer.write.option("parquet.page.row.count.limit", "100")
    writer.option("parquet.enable.dictionary", "false").parquet(path)
    monkeypatch.setattr(chunk_pages, "_MIN_PAGED_ROWS", 0)
    context = kq.ExecutionContext()
    context.register_parquet("f", path)
    other = context.sql("SELECT max(t) AS t FROM f WHERE id BETWEEN 5 AND 6").to_arrow()
    assert other["t"][0].as_py().second == 6
    rows = context.sql("SELECT unix_micros(t) AS t FROM f WHERE id BETWEEN 900 AND 901 ORDER BY t").to_arrow()
    assert rows["t"].to_pylist() == [-7 * 10**18 if is_old else 900 * 10**6, 901 * 10**6]
