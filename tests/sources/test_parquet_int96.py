"""INT96 times at the ends of what Spark can write: Spark's answer or an error, never another time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.errors import FallbackWarning, SourceError
from kquery_spark.sources.parquet import chunk_pages

READ = (-210_866_716_800_000_000, -62_135_596_800_000_000, 0, 253_402_300_799_999_999, 7 * 10**18)
MISREAD = (-(2**63) + 1, -7 * 10**18, -2 * 10**18, -210_900_000_000_000_000, 2**63 - 1)
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


@pytest.mark.parametrize("micros", READ)
def test_times_that_arrow_reads_are_sparks(spark: Any, written: Any, micros: int) -> None:
    path = written(micros, 1)
    frame = spark.read.parquet(path).selectExpr("unix_micros(t) AS u").groupBy("u").count()
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    assert sorted(fast.collect()) == sorted(frame.collect()) == sorted([(micros, 1), (1, 1)])


@pytest.mark.parametrize("micros", MISREAD)
def test_times_that_arrow_misreads_are_left_to_spark(spark: Any, written: Any, micros: int) -> None:
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


def test_single_pages_are_looked_at_as_well(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / DIRECTORY)
    odd = "CASE WHEN id = 900 THEN timestamp_micros(-7000000000000000000L) ELSE timestamp_seconds(id) END"
    writer = spark.range(1000).coalesce(1).selectExpr("id", f"{odd} AS t").write
    writer.option("parquet.page.row.count.limit", "100").option("parquet.enable.dictionary", "false").parquet(
        path
    )
    monkeypatch.setattr(chunk_pages, "_MIN_PAGED_ROWS", 0)
    context = kq.ExecutionContext()
    context.register_parquet("f", path)
    other = context.sql("SELECT max(t) AS t FROM f WHERE id BETWEEN 5 AND 6").to_arrow()
    assert other["t"][0].as_py().second == 6
    with pytest.raises(SourceError, match="column t has INT96 times"):
        context.sql("SELECT max(t) AS t FROM f WHERE id BETWEEN 900 AND 901").to_arrow()
