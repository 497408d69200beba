from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kquery_spark.frontends.catalyst.facts import FactFetcher
from kquery_spark.frontends.catalyst.jvm import Jvm


@pytest.fixture(scope="session")
def jvm(spark: Any) -> Jvm:
    return Jvm(spark.sparkContext._gateway)


@pytest.fixture(scope="session")
def fetch(spark: Any, jvm: Jvm) -> Callable[[Any], FactFetcher]:
    """Facts of the optimized plan of a query or a DataFrame."""

    def facts(query: Any) -> FactFetcher:
        frame = spark.sql(query) if isinstance(query, str) else query
        return FactFetcher(jvm, frame._jdf.queryExecution().optimizedPlan())

    return facts


@pytest.fixture(scope="session")
def numbers(spark: Any) -> str:
    """A view with a column of each common type, whose rows the optimizer cannot know."""
    frame = spark.range(100).selectExpr(
        "id",
        "cast(id as int) i",
        "cast(id as double) d",
        "cast(id as decimal(7,2)) m",
        "cast(id as string) s",
        "date_add(date'2020-01-01', cast(id as int)) day",
        "array(id) ids",
    )
    frame.localCheckpoint().createOrReplaceTempView("numbers")
    return "numbers"
