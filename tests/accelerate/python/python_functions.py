"""What the tests of Python functions share: rows with a column of each type, functions, the comparison with Spark."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import pandas_udf, udf
from pyspark.sql.types import DoubleType

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.errors import FallbackWarning
from tests.conftest import SPARK_VERSION

ROWS = """
    SELECT id, CAST(id % 3 AS string) AS p, id % 4 = 1 AS bool, CAST(id % 120 AS tinyint) AS byte, CAST(id * 7 AS smallint) AS short,
      IF(id % 7 = 0, NULL, CAST(id * 1000003 AS int)) AS int, IF(id % 5 = 0, NULL, id * 1000000007) AS long,
      CASE WHEN id % 11 = 0 THEN NULL WHEN id % 11 = 1 THEN float('NaN') WHEN id % 11 = 2 THEN -0.0F ELSE CAST(id / 3 AS float) END AS float,
      CASE WHEN id % 11 = 0 THEN NULL WHEN id % 11 = 1 THEN double('NaN') WHEN id % 11 = 2 THEN -0.0D
           WHEN id % 11 = 3 THEN double('-Infinity') ELSE id / 3.0D END AS double,
      CASE WHEN id % 6 = 0 THEN NULL WHEN id % 6 = 1 THEN '' WHEN id % 6 = 2 THEN 'Äö😀' ELSE concat('s', id % 9) END AS string,
      IF(id % 6 = 0, NULL, CAST(concat('b', id % 9) AS binary)) AS binary,
      IF(id % 9 = 4, NULL, CAST(id * 1.25 - 100 AS decimal(9,2))) AS decimal, CAST(id * 1000000007.1234 AS decimal(30,4)) AS wide,
      IF(id % 8 = 0, NULL, date_add(date'1960-02-28', CAST(id * 97 AS int))) AS date,
      IF(id % 8 = 1, NULL, timestamp'1965-03-01 01:02:03.000456' + make_dt_interval(CAST(id * 31 AS int), 5, 7, 1.5)) AS timestamp,
      timestamp_ntz'1999-12-31 23:59:59.5' + make_dt_interval(CAST(id AS int), 1, 1, 0.25) AS timestamp_ntz
    FROM range(1200)
"""
TYPES = {
    "bool": "boolean", "byte": "tinyint", "short": "smallint", "int": "int", "long": "bigint", "float": "float", "double": "double",
    "string": "string", "binary": "binary", "decimal": "decimal(9,2)", "wide": "decimal(30,4)", "date": "date",
    "timestamp": "timestamp", "timestamp_ntz": "timestamp_ntz",
}  # fmt: skip
NESTED_ROWS = """
    SELECT id, p, CASE WHEN id % 7 = 0 THEN NULL WHEN id % 7 = 1 THEN CAST(array() AS array<int>) ELSE array(int, NULL, CAST(id AS int)) END AS ints,
      IF(id % 5 = 0, NULL, array(string, 'x', NULL)) AS strings, array(double, double('NaN'), -0.0D, NULL) AS doubles,
      IF(id % 5 = 1, NULL, array(timestamp, timestamp'2021-07-01 12:00:00')) AS times, array(date, NULL, date'1682-01-01') AS dates,
      IF(id % 5 = 2, NULL, array(array(long, 1L), NULL, CAST(array() AS array<bigint>))) AS deep,
      IF(id % 4 = 0, NULL, struct(int AS a, string AS b, float AS `c d`)) AS one, array(decimal, 1.25) AS decimals,
      IF(id % 6 = 5, NULL, array(struct(short AS a, timestamp AS t), NULL, struct(short AS a, CAST(NULL AS timestamp) AS t))) AS structs,
      CASE WHEN id % 6 = 0 THEN NULL WHEN id % 6 = 1 THEN CAST(map() AS map<string,int>) ELSE map(concat('k', id), int, 'y', NULL, p, 5) END AS counts,
      IF(id % 3 = 0, NULL, map(CAST(id AS int), array(string), -7, NULL, 3000000, array('z'))) AS lists,
      struct(map('a', double, 'b', NULL) AS m, struct(decimal AS d, IF(bool, NULL, struct(date AS e)) AS y) AS x) AS mixed,
      struct(timestamp_ntz AS n, binary AS b, date AS d) AS kinds, array(binary, NULL, X'00FF') AS bytes,
      IF(id % 9 = 4, NULL, timestamp - timestamp'1970-01-01') AS span, array(timestamp - timestamp'2020-01-01', NULL) AS spans
    FROM {rows}
"""
"""Over ``ROWS``; how the columns are nested says ``NESTED``."""
NESTED = {
    "ints": "array<int>", "strings": "array<string>", "doubles": "array<double>", "times": "array<timestamp>", "dates": "array<date>",
    "deep": "array<array<bigint>>", "one": "struct<a:int,b:string,`c d`:float>", "decimals": "array<decimal(9,2)>",
    "structs": "array<struct<a:smallint,t:timestamp>>", "counts": "map<string,int>", "lists": "map<int,array<string>>",
    "mixed": "struct<m:map<string,double>,x:struct<d:decimal(9,2),y:struct<e:date>>>",
    "kinds": "struct<n:timestamp_ntz,b:binary,d:date>", "bytes": "array<binary>",
    "span": "interval day to second", "spans": "array<interval day to second>",
}  # fmt: skip
WITHOUT_MAPS = {name: dtype for name, dtype in NESTED.items() if "map" not in dtype}
"""The columns that the engine passes to functions that Spark pickles values for."""
BATCHES_OF_50 = {"spark.sql.execution.arrow.maxRecordsPerBatch": "50"}
with_arrow_udf = pytest.mark.skipif(SPARK_VERSION < (4, 1), reason="arrow_udf is of 4.1")
with_names = pytest.mark.skipif(SPARK_VERSION < (4, 0), reason="names of arguments are of 4.0")
with_tables = pytest.mark.skipif(SPARK_VERSION < (4, 0), reason="applyInArrow is of 4.0")


def shown(rows: list[Any]) -> list[str]:
    return sorted(map(repr, rows))


def check(query: DataFrame, whole: bool = True) -> None:
    """The engine runs the query, all of it if ``whole``, and its answer equals that of Spark, without an attempt that failed."""
    fast = query.transform(kquery_plan, when="always")
    explained = kq.explain(query)
    assert explained.coverage == 1.0 if whole else explained.coverage < 1.0, str(explained)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        ours = fast.collect()
    assert fast.schema == query.schema
    assert "EvalPython" not in str(fast._jdf.queryExecution().executedPlan()) or not whole
    assert shown(ours) == shown(query.collect())


def check_answers(query: DataFrame) -> None:
    """Spark and the engine give the same rows, or errors of one class; Spark may run the query again."""
    answers: list[object] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for frame in (query, query.transform(kquery_plan, when="always")):
            try:
                answers.append(shown(frame.collect()))
            except Exception as error:
                answers.append(type(error))
    assert answers[0] == answers[1]


def plain(function: Callable[..., Any], returns: str) -> Any:
    """``@udf`` without Arrow."""
    return udf(function, returns, useArrow=False) if SPARK_VERSION >= (3, 5) else udf(function, returns)


def arrow(function: Callable[..., Any], returns: str) -> Any:
    return udf(function, returns, useArrow=True)


def arrow_udf(function: Callable[..., Any], returns: str) -> Any:
    from pyspark.sql.functions import arrow_udf

    return arrow_udf(function, returns)


@pandas_udf(DoubleType())
def mean(x: pd.Series) -> float:
    return x.mean()


@pandas_udf(DoubleType())
def weighted(x: pd.Series, weight: pd.Series) -> float:
    return float((x * weight).sum() / max(len(x), 1))


def total(x: pa.Array) -> int:
    return pc.sum(x).as_py()
