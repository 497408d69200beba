"""The parts of a context that need Spark: its settings, its DataFrames of our plans, open plans applied to DataFrames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame as SparkFrame
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kquery_spark.compiler import compile_query
from kquery_spark.compiler.placement import IN_ANY_ORDER, IN_TASK_ORDER
from kquery_spark.config.engine import EngineConfig
from kquery_spark.context.open_plans import OPEN_INPUT
from kquery_spark.errors import Unsupported
from kquery_spark.expr import Named
from kquery_spark.frontends.catalyst.importer import Importer
from kquery_spark.frontends.dataframe.open_plan import OpenPlan
from kquery_spark.frontends.sql.analyzer import Analyzed, SessionFacts, analyze
from kquery_spark.logical import Input, LogicalPlan, Projection, Scan, transform_plan
from kquery_spark.logical.projection import with_output
from kquery_spark.runtime.spark.arrow_result import ArrowResult
from kquery_spark.runtime.spark.frames import shipped, to_dataframe
from kquery_spark.runtime.spark.probe import worker_problem
from kquery_spark.sources.memory import MemorySource
from kquery_spark.spark_bridge.bypass import bypass
from kquery_spark.spark_bridge.plan_facts import FactFetcher
from kquery_spark.spark_bridge.relations import RelationReader
from kquery_spark.spark_bridge.session import bridge
from kquery_spark.spark_bridge.session_settings import session_settings
from kquery_spark.spark_bridge.spark_types import arrow_schema
from kquery_spark.stages import StageGraph


def session_facts(spark: SparkSession) -> tuple[SessionFacts, EngineConfig]:
    """What of the session's settings decides the meaning of queries, and the engine's settings."""
    link = bridge(spark)
    settings = session_settings(link.conf, link.jvm)
    return SessionFacts(settings.time_zone, settings.ansi, settings.case_sensitive), link.config()


@dataclass(frozen=True)
class _OnSpark:
    """The stages of a query of ours, the result's schema, and DataFrames of the tables that are in the driver, by key."""

    graph: StageGraph
    schema: StructType
    frames: dict[str, SparkFrame]


def plan_frame_on_spark(
    spark: SparkSession,
    analyzed: Analyzed,
    config: EngineConfig,
    inputs: dict[str, SparkFrame] | None = None,
) -> SparkFrame:
    """A resolved query of ours as a lazy Spark DataFrame."""
    return _framed(spark, _on_spark(spark, analyzed, config, inputs), config)


def run_on_spark(spark: SparkSession, analyzed: Analyzed, config: EngineConfig) -> pa.Table:
    """All rows of a resolved query of ours, in the Arrow types of Spark's ``toArrow``.

    They come as Arrow, but for what reads tables of the driver.
    """
    query = _on_spark(spark, analyzed, config, shared_sort=True)
    large = spark.conf.get("spark.sql.execution.arrow.useLargeVarTypes", "false") == "true"
    if len(query.schema) and not query.frames and not large:
        build = partial(shipped, bridge(spark), query.graph, config)
        table = ArrowResult(build, query.graph.result.plan.schema, query.schema).table()
        if table is not None:
            return table
    with bypass():
        found: pa.Table = _framed(spark, query, config).toArrow()
    return found


def _on_spark(
    spark: SparkSession,
    analyzed: Analyzed,
    config: EngineConfig,
    inputs: dict[str, SparkFrame] | None = None,
    shared_sort: bool = False,
) -> _OnSpark:
    """The query's stages; shared_sort: for an action that keeps the rows of tasks in their order."""
    problem = worker_problem(bridge(spark))
    if problem is not None:
        raise Unsupported(problem)
    frames = dict(inputs or {})

    def handed_over(node: LogicalPlan) -> LogicalPlan:
        if isinstance(node, Scan) and isinstance(node.source, MemorySource):
            source = node.source
            frames.setdefault(
                source.token, spark.createDataFrame(source.table, from_arrow_schema(source.schema))
            )
            return Input(node.table, source.schema, source.token)
        return node

    plan = transform_plan(analyzed.plan, handed_over)
    graph = compile_query(plan, config, IN_TASK_ORDER if shared_sort else IN_ANY_ORDER).graph
    fields = [f.with_name(n) for f, n in zip(analyzed.plan.schema, analyzed.names, strict=True)]
    return _OnSpark(graph, from_arrow_schema(pa.schema(fields)), frames)


def _framed(spark: SparkSession, query: _OnSpark, config: EngineConfig) -> SparkFrame:
    return to_dataframe(bridge(spark), query.graph, query.schema, config, query.frames)


def apply_open_plan(plan: OpenPlan, frame: SparkFrame, text: str = "") -> SparkFrame:
    """A plan with an open input applied to a Spark DataFrame; Spark's own part of it is imported where it can be."""
    spark = frame.sparkSession
    link = bridge(spark)
    settings = session_settings(link.conf, link.jvm)
    facts = SessionFacts(settings.time_zone, settings.ansi, settings.case_sensitive)
    below, inputs = _imported(frame)
    analyzed = analyze(plan.query, text, _OneTable(below, facts), facts)
    return plan_frame_on_spark(spark, analyzed, link.config(), inputs)


def _imported(frame: SparkFrame) -> tuple[LogicalPlan, dict[str, SparkFrame]]:
    """The DataFrame's plan in the engine, or a hand-over of its rows."""
    link = bridge(frame.sparkSession)
    settings = session_settings(link.conf, link.jvm)
    facts = FactFetcher(link.jvm, link.optimized(frame))
    importer = Importer(facts, RelationReader(facts, link.jvm, settings.time_zone), settings)
    try:
        imported = importer.import_plan(facts.parse())
        plan = with_output(imported.plan, imported.output)
        frames = {
            h.key: link.frame(link.columns(facts.jvm_object(h.node), h.positions)) for h in imported.inputs
        }
        return renamed(plan, frame.columns), frames
    except Unsupported:
        schema = arrow_schema(frame.schema.jsonValue(), settings.time_zone)
        return Input(OPEN_INPUT, schema, OPEN_INPUT), {OPEN_INPUT: frame}


def renamed(plan: LogicalPlan, names: list[str]) -> LogicalPlan:
    """The plan under Spark's column names."""
    if plan.schema.names == names:
        return plan
    pairs = zip(plan.schema.names, names, strict=True)
    return Projection(plan, tuple(Named(plan.column(a), b) for a, b in pairs))


class _OneTable:
    def __init__(self, plan: LogicalPlan, facts: SessionFacts) -> None:
        self._plan = plan
        self._facts = facts

    def table(self, name: tuple[str, ...]) -> LogicalPlan | None:
        """See Catalog."""
        return self._plan if len(name) == 1 and self._facts.fold(name[0]) == OPEN_INPUT else None

    def table_names(self) -> list[str]:
        """See Catalog."""
        return [OPEN_INPUT]
