"""Plans put together from Spark's own nodes are those that the public DataFrame methods make."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from kquery_spark import kquery_plan
from kquery_spark.runtime.spark.worker import RowExchange, StageTask
from kquery_spark.sources.object_stores.s3 import S3Store
from kquery_spark.spark_bridge.plan import catalyst_plans as plans_module
from kquery_spark.spark_bridge.plan.catalyst_plans import StagePlanBuilder
from kquery_spark.spark_bridge.session.bridge import get_bridge
from kquery_spark.spark_bridge.session.interpreter import interpreter_of
from tests.conftest import SPARK_VERSION
from tests.support.s3 import SECRET

PAYLOAD = StructType(
    [
        StructField("stage", IntegerType()),
        StructField("partition", IntegerType()),
        StructField("payload", BinaryType()),
    ]
)
RESULT = StructType(
    [
        StructField("key", LongType(), False),
        StructField("text", StringType(), True, {"comment": "kept"}),
    ]
)
TASK = StageTask(b"stage", b"config", RowExchange(1, {"stage-1": 0}, ["key", "text"]))


@pytest.fixture
def plans(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> StagePlanBuilder:
    """Plans in a session whose public methods take the engine's interpreter, too."""
    context = spark.sparkContext
    interpreter = interpreter_of(context)
    monkeypatch.setattr(context, "pythonExec", interpreter.executable)
    monkeypatch.setattr(context, "environment", interpreter.environment_with(context.environment))
    return StagePlanBuilder(get_bridge(spark))


def mapped(plans: StagePlanBuilder, child: Any, schema: StructType) -> Any:
    name = type(TASK).__name__  # which PySpark gives it, too
    return plans.map_in_arrow(child, TASK, schema, plans.attributes(schema), name)


def assert_same(made: DataFrame, public: DataFrame) -> None:
    assert made.schema == public.schema
    assert [f.metadata for f in made.schema] == [f.metadata for f in public.schema]
    assert made.sameSemantics(public)
    physical = [f._jdf.queryExecution().executedPlan() for f in (made, public)]
    assert physical[0].sameResult(physical[1])


def test_one_stage_is_mapInArrow_over_a_range(spark: SparkSession, plans: StagePlanBuilder) -> None:
    made = plans.frame(mapped(plans, plans.numbers(3), RESULT))
    assert_same(made, spark.range(0, 3, 1, 3).mapInArrow(TASK, RESULT))


@pytest.mark.skipif(SPARK_VERSION < (4, 1), reason="repartitionById is of 4.1")
def test_two_inputs_are_a_union_repartitioned_by_id(spark: SparkSession, plans: StagePlanBuilder) -> None:
    inputs = [mapped(plans, plans.numbers(n), PAYLOAD) for n in (3, 2, 1)]
    made = plans.frame(mapped(plans, plans.repartition(plans.union(inputs), 4, 1), RESULT))
    first, second, third = (spark.range(0, n, 1, n).mapInArrow(TASK, PAYLOAD) for n in (3, 2, 1))
    rows = first.union(second).union(third).repartitionById(4, "partition")
    assert_same(made, rows.mapInArrow(TASK, RESULT))


def test_rows_of_spark_are_handed_over_as_they_are(spark: SparkSession, plans: StagePlanBuilder) -> None:
    rows = spark.range(5).selectExpr("id", "id * 2 AS twice")
    made = plans.frame(mapped(plans, plans.plan_of(rows), RESULT))
    assert_same(made, rows.mapInArrow(TASK, RESULT))


def test_one_shuffle_serves_two_stages_that_read_the_same(
    spark: SparkSession, plans: StagePlanBuilder
) -> None:
    read = mapped(plans, plans.numbers(3), PAYLOAD)
    both = [mapped(plans, plans.repartition(read, 2, 1), PAYLOAD) for _ in range(2)]
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        made = plans.frame(mapped(plans, plans.repartition(plans.union(both), 2, 1), RESULT))
        text = made._jdf.queryExecution().executedPlan().toString()
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    assert text.count("ReusedExchange") == 1


def test_a_result_can_be_joined_with_itself(spark: SparkSession, plans: StagePlanBuilder) -> None:
    made = plans.frame(mapped(plans, plans.numbers(1), RESULT))
    joined = made.alias("a").join(made.alias("b"), "key")
    assert joined.columns == ["key", "text", "text"]


def test_a_stage_too_long_for_a_task_is_broadcast_without_credentials(
    spark: SparkSession, plans: StagePlanBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans_module, "_MAX_COMMAND_BYTES", 10)
    written: list[bytes] = []
    share = spark.sparkContext.broadcast

    def broadcast(value: bytes) -> Any:
        written.append(value)
        return share(value)

    monkeypatch.setattr(spark.sparkContext, "broadcast", broadcast)
    store = S3Store("bucket", (("secret_key", SECRET),))
    task = replace(TASK, stage=b"a long stage", stores=(store,))
    made = plans.map_in_arrow(plans.numbers(1), task, RESULT, plans.attributes(RESULT), "task")
    assert written == [b"a long stage"], "Spark writes what it broadcasts to files"
    function = made.functionExpr().func()
    command = bytes(int(byte) % 256 for byte in function.command().mkString(",").split(","))
    assert SECRET.encode() in command and b"a long stage" not in command
    assert function.broadcastVars().size() == 1
    assert not list(spark.sparkContext._pickled_broadcast_vars)


def test_a_broadcast_of_a_stage_is_released_with_its_plan(
    spark: SparkSession, plans: StagePlanBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans_module, "_MAX_COMMAND_BYTES", 10)
    made: list[weakref.ref[Any]] = []
    share = spark.sparkContext.broadcast

    def broadcast(value: bytes) -> Any:
        shared = share(value)
        made.append(weakref.ref(shared._jbroadcast))
        return shared

    monkeypatch.setattr(spark.sparkContext, "broadcast", broadcast)
    mapped(plans, plans.numbers(1), RESULT)
    gc.collect()
    assert [reference() for reference in made] == [None]


def test_a_broadcast_stage_runs(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans_module, "_MAX_COMMAND_BYTES", 10)
    fast = spark.range(0, 100, 1, 2).selectExpr("id % 7 AS k").groupBy("k").count()
    rows = fast.transform(kquery_plan, when="always", fallback="error").collect()
    assert sorted(map(tuple, rows)) == [(k, 15 if k < 2 else 14) for k in range(7)]


def test_files_added_later_reach_the_workers(
    spark: SparkSession, plans: StagePlanBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapped(plans, plans.numbers(1), RESULT)
    monkeypatch.setattr(spark.sparkContext, "_python_includes", ["later.zip"])
    made = plans.frame(mapped(plans, plans.numbers(1), RESULT))
    function = made._jdf.queryExecution().analyzed().functionExpr().func()
    assert list(function.pythonIncludes()) == ["later.zip"]
