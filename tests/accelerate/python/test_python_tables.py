"""Python table functions, which fall back to Spark while the engine runs the rest of the query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udtf

import kquery_spark as kq
from tests.accelerate.python.python_functions import check_answers
from tests.conftest import SPARK_VERSION

REASON = "a Python table function is not supported"
QUERIES = [
    "SELECT id, i, s FROM few, LATERAL f(byte % 4, string)",
    "SELECT p, count(*), max(s) FROM few, LATERAL f(byte % 4, id + 1) GROUP BY p",
    "SELECT few.id, i FROM few LEFT JOIN LATERAL f(byte % 4) ON i > 1",
    "SELECT s, count(*) FROM f(3, 'x') GROUP BY s",
    *(
        ["SELECT i, count(*) FROM f(TABLE(SELECT id FROM few) PARTITION BY id) GROUP BY i"]
        if SPARK_VERSION >= (4, 0)
        else []
    ),
]


class Repeat:
    """Numbers below the first argument, or the length of a row, beside the second argument as a string."""

    def eval(self, n: Any, x: object = 2) -> Iterator[tuple[int, str]]:
        for i in range((n if isinstance(n, int) else len(n)) if n else 0):
            yield i, repr(x)


@pytest.fixture(scope="module")
def few(rows: DataFrame) -> str:
    rows.where("id < 60").createOrReplaceTempView("few")
    return "few"


@pytest.mark.parametrize("arrow", [False, True])
@pytest.mark.parametrize("query", QUERIES)
def test_table_functions_fall_back(spark: SparkSession, few: str, query: str, arrow: bool) -> None:
    spark.udtf.register("f", udtf(Repeat, returnType="i int, s string", useArrow=arrow))
    frame = spark.sql(query)
    assert REASON in {reason for _, reason in kq.explain(frame).reasons}
    check_answers(frame)


def test_the_engine_runs_the_rest_of_the_query(spark: SparkSession, few: str) -> None:
    spark.udtf.register("f", udtf(Repeat, returnType="i int, s string", useArrow=False))
    frame = spark.sql("SELECT p, count(*) FROM few, LATERAL f(byte % 4) GROUP BY p")
    lines = str(kq.explain(frame)).splitlines()
    assert any(line.lstrip().startswith("* Aggregate") for line in lines), lines
    assert not any(line.lstrip().startswith("* BatchEvalPythonUDTF") for line in lines), lines
