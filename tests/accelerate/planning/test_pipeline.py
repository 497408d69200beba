"""The steps of planning: each is called once, in order, and Delta's tables are read again where Spark reads them too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kquery_spark import kquery_plan
from kquery_spark.accelerate.planning import pipeline
from kquery_spark.accelerate.planning.pipeline import plan_frame
from kquery_spark.spark_bridge.relations.delta_snapshots import DeltaSnapshots

STEPS = ("read_plan", "cannot_gain", "import_plan", "choose_parts", "compile_parts", "decide", "assemble")
WHOLE = "SELECT n_regionkey AS k, count(*) AS n FROM nation GROUP BY n_regionkey"
IN_PART = f"SELECT k, n, java_method('java.lang.Math', 'abs', int(k)) AS a FROM ({WHOLE})"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the steps that are called."""
    names: list[str] = []

    def record(name: str) -> None:
        step = getattr(pipeline, name)

        def recorded(*args: Any, **kwargs: Any) -> Any:
            names.append(name)
            return step(*args, **kwargs)

        monkeypatch.setattr(pipeline, name, recorded)

    for name in STEPS:
        record(name)
    return names


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("query", [WHOLE, IN_PART])
def test_each_step_is_called_once_and_in_order(spark: Any, calls: list[str], query: str) -> None:
    kquery_plan(spark.sql(query))
    assert calls == [*STEPS]


@pytest.mark.usefixtures("tables")
def test_a_fast_reject_ends_planning(spark: Any, calls: list[str]) -> None:
    frame = spark.range(3)
    assert kquery_plan(frame) is frame
    assert calls == ["read_plan", "cannot_gain"]


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(("query", "expected"), [(WHOLE, [False]), (IN_PART, [False, True])])
def test_delta_tables_are_read_again_for_a_query_that_spark_runs_in_part(
    spark: Any, monkeypatch: pytest.MonkeyPatch, query: str, expected: list[bool]
) -> None:
    prepared = []
    read_plan = pipeline.read_plan

    def with_snapshots(frame: Any, *, delta_prepares: bool = False) -> Any:
        prepared.append(delta_prepares)
        optimized = read_plan(frame)
        snapshots = None if delta_prepares else DeltaSnapshots(optimized.bridge.jvm, "UTC")
        assert optimized.plan is not None
        return replace(optimized, plan=replace(optimized.plan, delta_snapshots=snapshots))

    monkeypatch.setattr(pipeline, "read_plan", with_snapshots)
    assert plan_frame(spark.sql(query)).parts
    assert prepared == expected
