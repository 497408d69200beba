"""The engine does not fold what Spark's optimizer must not fold: an error of a row stays one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kquery_spark import kquery_plan
from kquery_spark.spark_bridge.session.failures import error_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULES = "org.apache.spark.sql.catalyst.optimizer."
EXCLUDED = "spark.sql.optimizer.excludedRules"


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("INTERVAL '1' HOUR / id + CAST(NULL AS INTERVAL DAY TO SECOND)", "INTERVAL_DIVIDED_BY_ZERO"),
        ("CASE WHEN CAST(string(id) AS BOOLEAN) THEN CAST(NULL AS DATE) END", "CAST_INVALID_INPUT"),
        ("exists(array(id), x -> 1 / x > CAST(NULL AS DOUBLE))", "DIVIDE_BY_ZERO"),
    ],
)
def test_errors_beside_a_null_are_raised(spark: SparkSession, tmp_path: Path, sql: str, error: str) -> None:
    spark.sql("SELECT CAST(id * 7 AS INT) AS id FROM range(2)").write.parquet(str(tmp_path / "t"))
    spark.conf.set(EXCLUDED, f"{RULES}ConstantFolding,{RULES}NullPropagation")
    try:
        frame = spark.read.parquet(str(tmp_path / "t")).selectExpr(f"{sql} AS x")
        for one in (frame, frame.transform(kquery_plan, when="always", fallback="error")):
            with pytest.raises(Exception) as raised:
                one.collect()
            assert error_class(raised.value) == error
    finally:
        spark.conf.unset(EXCLUDED)
