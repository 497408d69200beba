"""Sorting whole results: as Spark orders them, and by the engine where one of its tasks is faster than all of Spark's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import kquery_spark as kq
from tests.conftest import settings

ROWS = 400_000


@pytest.fixture(scope="module")
def sorted_tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    folder: Path = tmp_path_factory.mktemp("sorting")
    random = np.random.default_rng(3)
    narrow = pa.table({"a": random.integers(0, 10**6, ROWS), "b": random.uniform(0, 1, ROWS)})
    text = pa.array([f"{i * 7919 % 400_009:06d} " + "and a long remark " * 8 for i in range(ROWS // 4)])
    wide = pa.table({"a": narrow["a"][: ROWS // 4], **{f"c{i}": text for i in range(4)}})
    few = [f"{'prefix ' * (i % 4)}{i * 7919 % 20_011}" for i in range(20_000)]
    odd = ["", "é", "e\u0301", "\uffff", "\U0001f600", "a\0", "a", "a\0b", "prefix ", None, None] * 20
    texts = pa.table({"s": [*few, *odd], "n": np.arange(len(few) + len(odd))})
    texts = texts.append_column("b", texts["s"].cast(pa.binary()))
    for name, table in {"narrow": narrow, "wide": wide, "texts": texts}.items():
        pq.write_table(table, folder / f"{name}.parquet")
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(f"sorting_{name}")
    return spark


@pytest.mark.parametrize(
    "order",
    ["s, n", "s DESC, n", "s DESC NULLS FIRST, n DESC", "s NULLS LAST, n", "b, n", "b DESC NULLS FIRST, n"],
)
def test_texts_that_are_mostly_different_come_in_sparks_order(
    sorted_tables: SparkSession, order: str
) -> None:
    report = kq.verify(sorted_tables.sql(f"SELECT * FROM sorting_texts ORDER BY {order}"))
    assert report.ok and report.accelerated, str(report)
    assert report.ordered_by


@pytest.mark.parametrize(
    ("table", "cores", "wins"), [("narrow", 2, True), ("narrow", 64, False), ("wide", 2, False)]
)
def test_one_task_sorts_where_it_beats_all_of_sparks(
    sorted_tables: SparkSession, table: str, cores: int, wins: bool
) -> None:
    with settings(sorted_tables, {"spark.kquery.parallelism": str(cores)}):
        explained = kq.explain(sorted_tables.sql(f"SELECT * FROM sorting_{table} ORDER BY a"))
    assert explained.accelerated is wins, str(explained)
    assert ("share the sort" in str(explained)) is not wins


def test_more_rows_than_the_setting_allows_are_left_to_spark(sorted_tables: SparkSession) -> None:
    query = sorted_tables.sql("SELECT * FROM sorting_narrow ORDER BY b")
    with settings(sorted_tables, {"spark.kquery.sortRows": "100000"}):
        explained = kq.explain(query)
        assert not explained.accelerated
        assert "Sorting about 400,000 rows is left to Spark" in str(explained)
    assert kq.explain(query).accelerated
