"""Queries whose conditions and join filters are evaluated on the dictionaries of columns return Spark's rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.kernels.compiled import FILE_LOOPS
from tests.sources.dictionary_files import table, write

pytestmark = pytest.mark.usefixtures("dictionaries_of_any_size")

CONDITIONS = [
    "i = 5",
    "i <> 5",
    "i IS NULL",
    "i IS NOT NULL AND d > 1",
    "i <=> NULL",
    "NOT (i > 100)",
    "coalesce(i, 0) = 0",
    "d = 0.0",
    "isnan(d)",
    "d >= 1.5 OR d IS NULL",
    "i IN (1, 2, NULL)",
    "i NOT IN (1, 2)",
    "i BETWEEN 10 AND 200 AND l > 50000000000000 AND day < date '1970-03-01'",
    "i > 10 OR l < 30",
    "i + l > 100000000000000 AND full < 200",
    "day >= date '1970-02-01' AND s LIKE '1%'",
    "ts > timestamp '1970-01-01 00:00:00' AND m > 20.00 AND m30 < 250",
    "nothing IS NULL AND one = 0",
    "one > 0",
    "try_divide(1000, full) > 10 AND i > 3",
    "id < 5000 AND id % 2 = 0 AND runs > 100",
    "full > -1",
    "month(day) = 2 AND i > 0",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_on_values_keep_sparks_rows(spark, tmp_path, condition):
    write(tmp_path / "f.parquet", table())
    spark.read.parquet(str(tmp_path / "f.parquet")).createOrReplaceTempView("dictionary_column")
    query = f"SELECT id, i, l, d, day, m FROM dictionary_column WHERE {condition}"
    report = kq.verify(spark.sql(query))
    assert report.ok, str(report)


@pytest.mark.parametrize(
    "condition", ["full > -1", "full > 400", "i IS NULL OR i >= 0", "one = 0", "full < 0 AND i > 2"]
)
def test_rows_are_counted_without_columns(spark, tmp_path, condition):
    write(tmp_path / "f.parquet", table())
    spark.read.parquet(str(tmp_path / "f.parquet")).createOrReplaceTempView("dictionary_column")
    report = kq.verify(spark.sql(f"SELECT count(*) AS n FROM dictionary_column WHERE {condition}"))
    assert report.ok, str(report)


def test_join_filters_ask_for_values(tmp_path, monkeypatch):
    rows = table(rows=20_000)
    write(tmp_path / "f.parquet", rows, row_group_size=5000)
    few = pa.table({"k": pa.array([3, 7, 7, 250, None], pa.int32()), "n": pa.array([1, 2, 3, 4, 5])})
    query = "SELECT id, n FROM t JOIN few ON i = k WHERE d IS NOT NULL ORDER BY id, n"

    def answer() -> pa.Table:
        context = kq.ExecutionContext()
        context.register_parquet("t", str(tmp_path / "f.parquet"))
        context.register_arrow("few", few)
        return context.sql(query).to_arrow()

    by_indices = answer()
    monkeypatch.setattr(FILE_LOOPS, "kernels", lambda *_: None)
    assert by_indices.equals(answer())
    assert by_indices.num_rows > 0


def test_a_setting_switches_dictionary_columns_off(tmp_path, monkeypatch):
    write(tmp_path / "f.parquet", table())
    asked: list[bool] = []
    real = FILE_LOOPS.kernels
    monkeypatch.setattr(FILE_LOOPS, "kernels", lambda *_: asked.append(True) or real())
    for setting, expected in (("true", True), ("false", False)):
        config = EngineConfig().with_settings({"spark.kquery.compiled": setting})
        context = kq.ExecutionContext(config=config)
        context.register_parquet("t", str(tmp_path / "f.parquet"))
        assert context.sql("SELECT count(*) AS n FROM t WHERE i = 5").to_arrow()["n"][0].as_py() > 0
        assert bool(asked) == expected
        asked.clear()
