"""A stage graph as a lazy Spark DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import PlanError
from kquery_spark.kernels.zones import adopted_in
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.physical.operators import PhysicalPlan
from kquery_spark.physical.operators.python_exec import PythonExec
from kquery_spark.runtime.spark.metering import SeveralMeters
from kquery_spark.runtime.spark.spill_total import SPILL_TOTAL
from kquery_spark.runtime.spark.ui_reporter import ui_reporter
from kquery_spark.runtime.spark.worker import RowEncoding, RowExchange, StageTask
from kquery_spark.runtime.task_meter import TaskMeter
from kquery_spark.sources.hadoop.hdfs import clusters_named_in
from kquery_spark.sources.object_stores.connections import stores_named_in
from kquery_spark.spark_bridge.frames.crossing_types import converted_columns, crossing_type
from kquery_spark.spark_bridge.plan.catalyst_plans import NO_BROADCASTS, STAGE_FUNCTION, SparkPlans
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.stages.graph import Stage, StageGraph
from kquery_spark.stages.serialization import to_bytes

_MIN_TASK_LIMIT_BYTES = 2 << 20  # of what one of many tasks may write, as they may differ
_PAYLOAD = StructType(
    [
        StructField("stage", IntegerType()),
        StructField("partition", IntegerType()),
        StructField("payload", BinaryType()),
    ]
)


def to_dataframe(
    link: Bridge,
    graph: StageGraph,
    schema: StructType,
    config: EngineConfig,
    inputs: Mapping[str, DataFrame] | None = None,
    meter: TaskMeter | None = None,
    output: Any = None,
    broadcasts: Mapping[int, Any] = NO_BROADCASTS,
) -> DataFrame:
    """The result of the graph with exactly ``schema`` (names, types, nullability); no job is run here.

    ``inputs`` are the DataFrames that hand-over leaves read, by key; ``meter`` counts what operators do; ``output`` are the
    attributes of the plan whose place the result takes, so that what refers to its columns finds them. broadcasts: as in
    ``SparkPlans``.
    """
    plans, meter = SparkPlans(link, broadcasts), _task_meter(link, graph, config, meter)
    attributes = plans.attributes(schema) if output is None else output
    if _crosses_unchanged(schema) and not inputs:
        return plans.frame(_Builder(plans, graph, schema, config, {}, meter, attributes).plan(graph.result))
    # Spark finds the columns of a Python worker by their names, so each needs one of its own on the way, and an id of its
    # own above a hand-over, whose plan may have the ids of ``output``; types that do not cross are converted there, too
    own = _with_own_names(schema)
    plan = _Builder(plans, graph, own, config, inputs or {}, meter, plans.attributes(own)).plan(graph.result)
    return plans.frame(plans.renamed(plan, attributes, converted_columns(schema)))


def _crosses_unchanged(schema: StructType) -> bool:
    """Whether the columns can go to a Python worker as they are: no two have one name, and none needs a conversion."""
    return len(set(schema.names)) == len(schema.names) and not converted_columns(schema)


def _python_calls(plan: PhysicalPlan) -> Iterator[PythonCalls]:
    """The calls of Python functions of Spark's users that a stage makes."""
    if isinstance(plan, PythonExec):
        yield plan.calls
    for child in plan.children:
        yield from _python_calls(child)


def _with_own_names(schema: StructType) -> StructType:
    fields = enumerate(schema.fields)
    return StructType(
        [StructField(f"c{i}", crossing_type(f.dataType), f.nullable, f.metadata) for i, f in fields]
    )


def payload_frame(
    link: Bridge, graph: StageGraph, config: EngineConfig, broadcasts: Mapping[int, Any] = NO_BROADCASTS
) -> DataFrame:
    """The result as payload rows, in order; ``graph`` reads no rows of Spark's. broadcasts: as in ``SparkPlans``."""
    plans, meter = SparkPlans(link, broadcasts), _task_meter(link, graph, config)
    builder = _payload_builder(plans, graph, config, meter, RowEncoding.PAYLOADS)
    return plans.frame_of_large_rows(builder.plan(graph.result))


def input_frame(
    link: Bridge, graph: StageGraph, config: EngineConfig, limit: int, query: int | None = None
) -> DataFrame:
    """The payload rows that the last stage reads, of all the stages before it, which call no functions of Spark's users.

    limit: about how many bytes of them to make; a task with much more than its share ends with a row tagged TOO_MUCH.
    query: the number under which Spark's UI shows the driver's part, or None.
    """
    plans, meter = SparkPlans(link), _task_meter(link, graph, config, query=query)
    builder = _payload_builder(plans, graph, config, meter, limit=limit)
    return plans.frame(builder.input_rows(graph.result))


def _task_meter(
    link: Bridge,
    graph: StageGraph,
    config: EngineConfig,
    given: TaskMeter | None = None,
    query: int | None = None,
) -> TaskMeter | None:
    """The meters of all who want to know what the tasks do."""
    reporter = ui_reporter(link, config)
    meters = (
        given,
        SPILL_TOTAL.meter(link.spark.sparkContext),
        None if reporter is None else reporter.meter(graph, query),
    )
    wanted = tuple(meter for meter in meters if meter is not None)
    return SeveralMeters(wanted) if len(wanted) > 1 else next(iter(wanted), None)


def _payload_builder(
    plans: SparkPlans,
    graph: StageGraph,
    config: EngineConfig,
    meter: TaskMeter | None,
    encoding: RowEncoding = RowEncoding.COLUMNS,
    limit: int | None = None,
) -> _Builder:
    return _Builder(plans, graph, _PAYLOAD, config, {}, meter, plans.attributes(_PAYLOAD), encoding, limit)


class _Builder:
    """Builds the Catalyst plan of a stage graph: ``mapInArrow`` for a stage, a repartition for an exchange.

    ``schema``, ``output``: columns and attributes of the last stage's rows in this ``encoding``.
    """

    def __init__(
        self,
        plans: SparkPlans,
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
        """The plan of a stage's output rows: payloads, or results for the last stage.

        Two stages that read the same ones share a plan, in which Spark sees that one shuffle serves both.
        """
        plan = self._built.get(stage.stage_id)
        if plan is None:
            plan = self._built[stage.stage_id] = self._plan(stage)
        return plan

    def _plan(self, stage: Stage) -> Any:
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
            adopted_in(data),
        )
        schema, output = (
            (self._schema, self._output) if last else (_PAYLOAD, self._plans.attributes(_PAYLOAD))
        )
        child, calls = self._input(stage), list(_python_calls(stage.plan))
        broadcasts = dict.fromkeys(variable for call in calls for variable in call.broadcasts)
        name = f"{STAGE_FUNCTION}{stage.stage_id}"
        return self._plans.mapped(child, task, schema, output, name, bool(calls), broadcasts)

    def _limit_of(self, stage: Stage) -> int | None:
        """Bytes that each task of a stage may write, where only the last stage reads them."""
        readers = [s for s in self._graph.stages if stage.stage_id in s.inputs]
        if self._limit is None or readers != [self._graph.result]:
            return None
        return max(self._limit // len(stage.tasks), _MIN_TASK_LIMIT_BYTES)

    def _input(self, stage: Stage) -> Any:
        if stage.is_map:
            return self._plans.numbers(len(stage.tasks))
        producers = [self._graph.stage(i) for i in stage.inputs]
        stages = [s for s in producers if s is not None]
        if not stages:
            if len(stage.inputs) != 1:
                raise PlanError(
                    f"{stage.stage_id} reads several Spark inputs at once: {', '.join(stage.inputs)}"
                )
            return self._handed_over(self._inputs[stage.inputs[0]])
        if len(stages) < len(stage.inputs):
            raise PlanError(f"{stage.stage_id} mixes Spark rows with stages: {', '.join(stage.inputs)}")
        return self._plans.repartitioned(
            self.input_rows(stage), len(stage.tasks), _PAYLOAD.names.index("partition")
        )

    def _handed_over(self, frame: DataFrame) -> Any:
        """The plan of rows that Spark hands over, in the form in which a Python worker takes them."""
        plan, schema = self._plans.of(frame), frame.schema
        if _crosses_unchanged(schema):
            return plan
        attributes = self._plans.attributes(_with_own_names(schema))
        return self._plans.renamed(plan, attributes, converted_columns(schema))

    def input_rows(self, stage: Stage) -> Any:
        """The plan of the payload rows that a stage of stages reads."""
        stages = [self._graph.stage(i) for i in stage.inputs]
        return self._plans.union([self.plan(s) for s in stages if s is not None])
