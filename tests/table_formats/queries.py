"""What the tests of all table formats ask."""

from __future__ import annotations

from typing import Any

from tests.accelerate.checks import check

ROWS = (
    "SELECT id, id % 7 AS k, if(id % 11 = 0, NULL, concat('s', id % 13)) AS s, id / 3 AS d FROM range(2000)"
)
GROUPED = "SELECT k, count(*), count(s), min(s), max(id), sum(id) FROM {t} GROUP BY k"


def whole(spark: Any, sql: str) -> None:
    """The engine runs the query as a whole and gives Spark's rows."""
    check(spark.sql(sql), coverage=1.0)
