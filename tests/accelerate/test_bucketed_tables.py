"""Bucketed tables of the session's catalog: the engine reads them as it reads other tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.accelerate.checks import check
from tests.conftest import settings


@pytest.fixture(scope="module")
def tables(spark: Any) -> Iterator[None]:
    rows = spark.range(500).selectExpr(
        "id", "if(id % 11 = 0, NULL, id % 7) AS k", "concat('s', id % 13) AS s"
    )
    rows.write.bucketBy(4, "k").sortBy("k").saveAsTable("bucketed")
    rows.where("id % 3 = 0").write.bucketBy(2, "k", "s").saveAsTable("bucketed_otherwise")
    yield
    for name in ("bucketed", "bucketed_otherwise"):
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, count(*), sum(id), min(s) FROM bucketed GROUP BY k",
        "SELECT a.k, b.s, count(*) FROM bucketed a JOIN bucketed_otherwise b ON a.k = b.k GROUP BY a.k, b.s",
        "SELECT count(*), max(id) FROM bucketed WHERE k = 3 OR k IS NULL",
    ],
)
def test_buckets_change_no_answer(spark: Any, tables: None, query: str) -> None:
    check(spark.sql(query), coverage=1.0)


def test_joins_of_buckets_without_broadcasts(spark: Any, tables: None) -> None:
    with settings(spark, {"spark.sql.autoBroadcastJoinThreshold": "-1"}):
        check(spark.sql("SELECT a.id, b.s FROM bucketed a JOIN bucketed b USING (k) WHERE k IN (2, 5)"))


def test_rows_that_were_appended_are_in_buckets_of_their_own(spark: Any, tables: None) -> None:
    spark.sql("INSERT INTO bucketed_otherwise SELECT id + 1000, 3, 'new' FROM range(5)")
    check(spark.sql("SELECT s, count(*) FROM bucketed_otherwise WHERE k = 3 GROUP BY s"), coverage=1.0)
