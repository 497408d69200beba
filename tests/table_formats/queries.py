"""What the tests of all table formats ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.accelerate.checks import check

ROWS = (
    "SELECT id, id % 7 AS k, if(id % 11 = 0, NULL, concat('s', id % 13)) AS s, id / 3 AS d FROM range(2000)"
)
GROUPED = "SELECT k, count(*), count(s), min(s), max(id), sum(id) FROM {t} GROUP BY k"


def whole(spark: Any, sql: str) -> None:
    """The engine runs the query as a whole and gives Spark's rows."""
    check(spark.sql(sql), coverage=1.0)


def check_appends(read: Callable[[], Any], append: Callable[[], Any]) -> None:
    """Actions of a DataFrame of groups by ``k`` see the rows that Spark's see, whenever rows are appended."""

    def read_counts(frame: Any) -> list[int]:
        return [
            frame.count(),
            sum(row["count"] for row in frame.collect()),
            int(frame.toPandas()["count"].sum()),
            sum(row["count"] for row in frame.take(100)),
        ]

    for act_first in (True, False):
        plain = read().groupBy("k").count()
        accelerated = read().groupBy("k").count().transform(kquery_plan, when="always", fallback="error")
        if act_first:
            assert read_counts(accelerated) == read_counts(plain)
        append()
        assert read_counts(accelerated) == read_counts(plain)


def check_cache(spark: Any, table: str, reason: str) -> None:
    """Spark reads the rows of a table's full cache, for a reason that begins so."""
    frame = spark.table(table).cache()
    try:
        frame.count()
        query = frame.groupBy("k").count()
        (given,) = [why for _, why in kq.explain(query).reasons]
        assert given.startswith(reason)
        check(query)
    finally:
        frame.unpersist(blocking=True)
