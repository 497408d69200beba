"""Converts a stage graph to a lazy Spark DataFrame: ``mapInArrow`` for each stage, a repartition for each exchange."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import PlanError
from kquery_spark.kernels.zones import adopted_tables_in
from kquery_spark.physical.operators.base import walk_operators
from kquery_spark.physical.operators.python_exec import PythonExec
from kquery_spark.runtime.spark.metering import SeveralMeters
from kquery_spark.runtime.spark.spill_total import SPILL_TOTAL
from kquery_spark.runtime.spark.ui_reporter import ui_reporter
from kquery_spark.runtime.spark.worker import RowEncoding, RowExchange, StageTask
from kquery_spark.runtime.task_meter import TaskMeter
from kquery_spark.sources.hadoop.hdfs import clusters_named_in
from kquery_spark.sources.object_stores.connections import stores_named_in
from kquery_spark.spark_bridge.frames.crossing_types import converted_columns, crossing_type
from kquery_spark.spark_bridge.plan.catalyst_plans import NO_BROADCASTS, STAGE_FUNCTION, StagePlanBuilder
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.stages.graph import Stage, StageGraph
from kquery_spark.stages.serialization import to_bytes

# A task may always write at least this many bytes, even if there are many tasks, because their sizes differ.
_MIN_TASK_LIMIT_BYTES = 2 << 20
_PAYLOAD = StructType(
    [
        StructField("stage", IntegerType()),
        StructField("partition", IntegerType()),
        StructField("payload", BinaryType()),
    ]
)


def to_dataframe(
    bridge: Bridge,
    graph: StageGraph,
    schema: StructType,
    config: EngineConfig,
    inputs: Mapping[str, DataFrame] | None = None,
    meter: TaskMeter | None = None,
    output: Any = None,
    broadcasts: Mapping[int, Any] = NO_BROADCASTS,
) -> DataFrame:
    """Return the result of the graph as a DataFrame with exactly ``schema`` (names, types, nullability). This runs no job.

    inputs: the DataFrames of the graph's Spark inputs, by key. meter: receives operator metrics. output: the Catalyst
    attributes of the plan that the result replaces, so that references to its columns stay valid. broadcasts: as in
    ``StagePlanBuilder``.
    """
    plans, meter = StagePlanBuilder(bridge, broadcasts), _task_meter(bridge, graph, config, meter)
    attributes = plans.attributes(schema) if output is None else output
    if _crosses_unchanged(schema) and not inputs:
        return plans.frame(_Builder(plans, graph, schema, config, {}, meter, attributes).plan(graph.result))
    # Spark finds the columns of a Python worker by name, so the names have to be unique on the way. Above a Spark input,
    # the attribute ids must be new, too, because the input's plan may have the ids of ``output``. A projection above
    # restores names and ids, and converts the types that cannot be sent to a worker.
    own = _with_own_names(schema)
    plan = _Builder(plans, graph, own, config, inputs or {}, meter, plans.attributes(own)).plan(graph.result)
    return plans.frame(plans.rename_columns(plan, attributes, converted_columns(schema)))


def _crosses_unchanged(schema: StructType) -> bool:
    """True if the columns can be sent to a Python worker unchanged: their names are unique, and no type needs conversion."""
    return len(set(schema.names)) == len(schema.names) and not converted_columns(schema)


def _with_own_names(schema: StructType) -> StructType:
    fields = enumerate(schema.fields)
    return StructType(
        [StructField(f"c{i}", crossing_type(f.dataType), f.nullable, f.metadata) for i, f in fields]
    )


def payload_frame(
    bridge: Bridge, graph: StageGraph, config: EngineConfig, broadcasts: Mapping[int, Any] = NO_BROADCASTS
) -> DataFrame:
    """Return the result as payload rows, in order.

    ``graph`` must not read Spark inputs. broadcasts: see ``StagePlanBuilder``.
    """
    plans, meter = StagePlanBuilder(bridge, broadcasts), _task_meter(bridge, graph, config)
    builder = _payload_builder(plans, graph, config, meter, RowEncoding.PAYLOADS)
    return plans.frame_of_large_rows(builder.plan(graph.result))


def input_frame(
    bridge: Bridge, graph: StageGraph, config: EngineConfig, limit: int, query: int | None = None
) -> DataFrame:
    """Return the payload rows that the last stage reads. The stages before it must not call users' Python functions.

    limit: the approximate number of bytes to compute; a task that writes much more than its share ends with a row tagged
    LIMIT_REACHED_TAG. query: the number under which Spark's UI shows the driver's part of the query, or None.
    """
    plans, meter = StagePlanBuilder(bridge), _task_meter(bridge, graph, config, query=query)
    builder = _payload_builder(plans, graph, config, meter, limit=limit)
    return plans.frame(builder.input_rows(graph.result))


def _task_meter(
    bridge: Bridge,
    graph: StageGraph,
    config: EngineConfig,
    meter: TaskMeter | None = None,
    query: int | None = None,
) -> TaskMeter | None:
    """Combine ``meter`` with the meters of the spill total and of Spark's UI; None if none of them is active."""
    reporter = ui_reporter(bridge, config)
    meters = (
        meter,
        SPILL_TOTAL.meter(bridge.spark.sparkContext),
        None if reporter is None else reporter.meter(graph, query),
    )
    active = tuple(each for each in meters if each is not None)
    return SeveralMeters(active) if len(active) > 1 else next(iter(active), None)


def _payload_builder(
    plans: StagePlanBuilder,
    graph: StageGraph,
    config: EngineConfig,
    meter: TaskMeter | None,
    encoding: RowEncoding = RowEncoding.COLUMNS,
    limit: int | None = None,
) -> _Builder:
    return _Builder(plans, graph, _PAYLOAD, config, {}, meter, plans.attributes(_PAYLOAD), encoding, limit)


class _Builder:
    """Builds the Catalyst plan of a stage graph: ``mapInArrow`` for a stage, a repartition for an exchange.

    ``schema`` and ``output`` are the columns and the attributes of the last stage's rows, which have this ``encoding``.
    """

    def __init__(
        self,
        plans: StagePlanBuilder,
        graph: StageGraph,
        schema: StructType,
        config: EngineConfig,
        inputs: Mapping[str, DataFrame],
        meter: TaskMeter | None,
        output: Any,
        encoding: RowEncoding = RowEncoding.COLUMNS,
        limit: int | None = None,
    ) -> None:
        self._plans = plans
        self._graph = graph
        self._schema = schema
        self._settings = to_bytes(config)
        self._inputs = inputs
        self._meter = meter
        self._output = output
        self._encoding = encoding
        self._limit = limit
        self._built: dict[str, Any] = {}
        self._numbers = {s.stage_id: i for i, s in enumerate(graph.stages)}

    def plan(self, stage: Stage) -> Any:
        """Return the plan of a stage's output rows: payload rows, or result rows for the last stage.

        Two stages that read the same stage share its plan, so that Spark can reuse the shuffle.
        """
        plan = self._built.get(stage.stage_id)
        if plan is None:
            plan = self._built[stage.stage_id] = self._plan(stage)
        return plan

    def _plan(self, stage: Stage) -> Any:
        """Build the plan of a stage: ``mapInArrow`` over its input. Only the last stage returns result rows."""
        last = stage.output is None
        sources = {i: self._numbers[i] for i in stage.inputs if i in self._numbers}
        rows = RowExchange(
            self._numbers[stage.stage_id],
            sources,
            self._schema.names if last else None,
            self._encoding if last else RowEncoding.PAYLOADS,
            self._limit_of(stage),
            self._plans.hash_partitioned,
        )
        data = to_bytes(stage)
        task = StageTask(
            data,
            self._settings,
            rows,
            self._meter,
            self._plans.container,
            stores_named_in(data),
            clusters_named_in(data),
            adopted_tables_in(data),
        )
        schema, output = (
            (self._schema, self._output) if last else (_PAYLOAD, self._plans.attributes(_PAYLOAD))
        )
        child = self._input(stage)
        calls = [node.calls for node, _ in walk_operators(stage.plan) if isinstance(node, PythonExec)]
        broadcasts = dict.fromkeys(variable for call in calls for variable in call.broadcasts)
        name = f"{STAGE_FUNCTION}{stage.stage_id}"
        return self._plans.map_in_arrow(child, task, schema, output, name, bool(calls), broadcasts)

    def _limit_of(self, stage: Stage) -> int | None:
        """Return the bytes that each task of a stage may write; None unless only the last stage reads them."""
        readers = [s for s in self._graph.stages if stage.stage_id in s.inputs]
        if self._limit is None or readers != [self._graph.result]:
            return None
        return max(self._limit // len(stage.tasks), _MIN_TASK_LIMIT_BYTES)

    def _input(self, stage: Stage) -> Any:
        """Build the plan of a stage's input rows: task numbers, repartitioned payload rows, or the rows of a Spark input."""
        if stage.is_map:
            return self._plans.numbers(len(stage.tasks))
        producers = [self._graph.stage(i) for i in stage.inputs]
        stages = [s for s in producers if s is not None]
        if not stages:
            if len(stage.inputs) != 1:
                raise PlanError(
                    f"{stage.stage_id} reads several Spark inputs at once: {', '.join(stage.inputs)}"
                )
            return self._spark_input(self._inputs[stage.inputs[0]])
        if len(stages) < len(stage.inputs):
            raise PlanError(f"{stage.stage_id} mixes Spark rows with stages: {', '.join(stage.inputs)}")
        return self._plans.repartition(
            self.input_rows(stage), len(stage.tasks), _PAYLOAD.names.index("partition")
        )

    def _spark_input(self, frame: DataFrame) -> Any:
        """Return the plan of a Spark input, with names and types that can be sent to a Python worker."""
        plan, schema = self._plans.plan_of(frame), frame.schema
        if _crosses_unchanged(schema):
            return plan
        attributes = self._plans.attributes(_with_own_names(schema))
        return self._plans.rename_columns(plan, attributes, converted_columns(schema))

    def input_rows(self, stage: Stage) -> Any:
        """Return the plan of the payload rows that a stage reads from other stages."""
        stages = [self._graph.stage(i) for i in stage.inputs]
        return self._plans.union([self.plan(s) for s in stages if s is not None])
