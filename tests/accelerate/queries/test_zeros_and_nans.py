"""-0.0 and NaNs of other bits in sets, lists of constants, DISTINCT aggregates: Spark's answers to the last bit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kquery_spark import ExecutionContext, kquery_plan
from kquery_spark.expr import Column, Expr, Literal
from kquery_spark.frontends.catalyst.versions import changed_calls
from kquery_spark.spark_bridge.session.settings import EXPECTED, SessionSettings
from tests.conftest import SPARK_BEFORE_4_3

OTHER_NAN = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
VALUES = [-0.0, 0.0, -0.0, 1.0, math.nan, OTHER_NAN, None, -0.0, 2.5, math.inf]
GROUPS = [1, 1, 2, 2, 3, 3, 4, 2, 5, 5]
LISTS = [[-0.0, 1.0], [OTHER_NAN], None, [0.0, -0.0], [], [None], [math.nan, -0.0], [-0.0], [2.5], [1.0]]

QUERIES = (
    "SELECT i, x IN (CAST('-0.0' AS {0}), CAST('NaN' AS {0})) y FROM zeros",
    "SELECT i, x NOT IN (CAST('NaN' AS {0}), CAST(1 AS {0})) y FROM zeros",
    "SELECT i, x IN (CAST('NaN' AS {0}), NULL) y FROM zeros",
    "SELECT i, array_contains(a, x) y, array_contains(a, CAST('-0.0' AS {0})) z FROM zeros",
    "SELECT i, x = -x y, x <=> CAST('NaN' AS {0}) z, nullif(x, CAST(0 AS {0})) n FROM zeros",
    "SELECT i, hash(x) h, xxhash64(x) y, hash(a) z FROM zeros",
    "SELECT i, greatest(x, CAST(0 AS {0})) y, least(x, CAST('NaN' AS {0})) z, array_max(a) m FROM zeros",
    "SELECT g, collect_set(x) y FROM zeros GROUP BY g",
    "SELECT collect_set(x) y FROM zeros",
    "SELECT collect_set(x) y FROM zeros WHERE i = 7",
    "SELECT i, collect_set(x) OVER (PARTITION BY g) y FROM zeros",
    "SELECT g, array_agg(DISTINCT x) y, count(*) n FROM zeros GROUP BY g",
    "SELECT g, percentile(DISTINCT x, 0.3) y FROM zeros GROUP BY g",
    "SELECT g, collect_list(DISTINCT x) y, collect_list(DISTINCT i) z FROM zeros GROUP BY g",
    "SELECT count(DISTINCT x) y, approx_count_distinct(x) z, sum(DISTINCT x) s FROM zeros",
    "SELECT x, count(*) n FROM zeros GROUP BY x",
    "SELECT a, count(*) n FROM zeros GROUP BY a",
    "SELECT DISTINCT x FROM zeros",
    "SELECT x FROM zeros INTERSECT SELECT -x FROM zeros",
    "SELECT x FROM zeros EXCEPT SELECT CAST(0 AS {0})",
    "SELECT l.i, r.i AS j FROM zeros l JOIN zeros r ON l.x = r.x",
    "SELECT i, count(*) OVER (PARTITION BY x) n, rank() OVER (ORDER BY x) r FROM zeros",
)


@pytest.fixture(scope="module", params=["double", "float"])
def zeros(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: Any
) -> Iterator[tuple[str, Path]]:
    directory = tmp_path_factory.mktemp("zeros")
    dtype = pa.float64() if request.param == "double" else pa.float32()
    columns = {"x": pa.array(VALUES, dtype), "a": pa.array(LISTS, pa.list_(dtype))}
    table = pa.table({"i": range(10), "g": GROUPS, **columns})
    pq.write_table(table.slice(0, 5), directory / "a.parquet")
    pq.write_table(table.slice(5), directory / "b.parquet")
    spark.read.parquet(str(directory)).createOrReplaceTempView("zeros")
    yield request.param, directory
    spark.catalog.dropTempView("zeros")


def _shown(value: Any) -> str:
    """A value that shows the sign of zeros; sets and lists in one order."""
    if isinstance(value, list):
        return str(sorted(map(_shown, value)))
    return "NaN" if isinstance(value, float) and math.isnan(value) else repr(value)


def _rows(table: pa.Table) -> list[list[str]]:
    return sorted([_shown(v) for v in row.values()] for row in table.to_pylist())


@pytest.mark.parametrize("query", QUERIES)
def test_the_same_zeros_and_nans_as_spark(query: str, spark: SparkSession, zeros: tuple[str, Path]) -> None:
    if SPARK_BEFORE_4_3 and "collect_set" in query:
        pytest.skip("Spark 4.2 keeps the sign of zeros in sets")
    dtype, directory = zeros
    text = query.format(dtype)
    frame = spark.sql(text)
    want = _rows(frame.toArrow())
    assert _rows(frame.transform(kquery_plan, when="always", fallback="error").toArrow()) == want
    context = ExecutionContext()
    context.register_parquet("zeros", str(directory))
    assert _rows(context.sql(text).to_arrow()) == want


def test_what_older_releases_of_spark_answer_otherwise_is_theirs() -> None:
    assert not changed_calls(_settings_of("4.3.0"))
    changed = changed_calls(_settings_of("3.5.9"))

    def stays(function: str, *args: Expr) -> bool:
        return any(call.applies_to(args, raises_errors=True) for call in changed[function])

    text = Column("s", pa.string())
    for replacement, expected in (
        (Literal("x", pa.string()), False),
        (Literal(None, pa.string()), False),
        (Literal("x\0", pa.string()), True),
        (text, True),
    ):
        assert stays("translate", text, text, replacement) is expected
    assert stays("collect_set", Column("x", pa.float32()))
    assert not stays("collect_set", text)


def _settings_of(version: str) -> SessionSettings:
    """Settings of a session of that Spark, as the engine expects them."""
    return SessionSettings(version, True, "UTC", False, "_corrupt_record", dict(EXPECTED))
