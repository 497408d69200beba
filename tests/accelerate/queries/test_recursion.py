"""Recursive queries under the limits of a session, where Spark's errors are Spark's and its rows are the engine's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

import kquery_spark as kq
from kquery_spark.errors import KQueryError, Unsupported
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS, error_class
from tests.conftest import settings

pytestmark = pytest.mark.filterwarnings("ignore::kquery_spark.FallbackWarning")

NUMBERS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r"
LEVELS, ROWS = "spark.sql.cteRecursionLevelLimit", "spark.sql.cteRecursionRowLimit"


def outcome(rows: Callable[[], DataFrame]) -> object:
    """The rows, or the class of the error."""
    try:
        return sorted(row.n for row in rows().collect())
    except (*SPARK_ERRORS, KQueryError) as error:
        return error_class(error)


@pytest.mark.parametrize(
    ("limits", "query"),
    [
        *(({ROWS: count}, NUMBERS) for count in ("4", "5", "6", "-1")),
        *(({LEVELS: count}, NUMBERS) for count in ("4", "5", "-1")),
        ({ROWS: "3"}, f"{NUMBERS} LIMIT 4"),
        ({LEVELS: "3"}, f"{NUMBERS} LIMIT 3"),
    ],
    ids=str,
)
def test_the_limits_are_those_of_the_session(limits: dict[str, str], query: str, spark: SparkSession) -> None:
    if spark.version < "4.1":
        pytest.skip("recursive queries came with Spark 4.1")
    with settings(spark, limits):
        frame = spark.sql(query)
        fast = kq.kquery_plan(frame, when="always", fallback="error")
        assert outcome(lambda: fast) == outcome(lambda: frame)
        of_context = outcome(lambda: kq.ExecutionContext(spark).sql(query).to_spark())
        assert of_context == outcome(lambda: frame)


def test_a_limit_without_a_limit_of_rows_stays_with_spark(spark: SparkSession) -> None:
    if spark.version < "4.1":
        pytest.skip("recursive queries came with Spark 4.1")
    with settings(spark, {ROWS: "-1"}), pytest.raises(Unsupported, match="without a limit of its rows"):
        kq.kquery_plan(spark.sql(f"{NUMBERS} LIMIT 2"), when="always", fallback="error")
