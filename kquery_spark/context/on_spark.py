"""Connects an ExecutionContext to Spark: session settings, plans as Spark DataFrames, and open plans over DataFrames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame as SparkFrame
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from typing_extensions import override

from kquery_spark.compiler import Placement, compile_query
from kquery_spark.compiler.placement import IN_ANY_ORDER, IN_TASK_ORDER
from kquery_spark.config.engine import EngineConfig
from kquery_spark.context.open_plans import OPEN_INPUT
from kquery_spark.context.session import limited_depth
from kquery_spark.context.session_checks import check_files, check_session, checked_constants
from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.expr import Named
from kquery_spark.frontends.catalyst.spark_query import SparkQuery
from kquery_spark.frontends.dataframe.open_plan import OpenPlan
from kquery_spark.frontends.sql.analyzer import Analyzed, SessionFacts, analyze
from kquery_spark.frontends.sql.analyzer.catalog import Catalog
from kquery_spark.logical import Input, LogicalPlan, Projection, Recursion, Scan, transform_plan, walk_plan
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.logical.projection import with_output
from kquery_spark.runtime.spark.executor import Payloads, SparkExecutor
from kquery_spark.runtime.spark.frames import payload_frame, to_dataframe
from kquery_spark.runtime.spark.probe import worker_problem, workers_have_hdfs_client
from kquery_spark.sources.file_format import Format
from kquery_spark.sources.memory import MemorySource
from kquery_spark.sources.object_stores.connections import bucket_of
from kquery_spark.spark_bridge.frames.pyspark_names import create_frame, spark_schema_of
from kquery_spark.spark_bridge.hadoop.object_stores import SPARKS_SCHEMES
from kquery_spark.spark_bridge.hadoop.paths import HadoopPaths
from kquery_spark.spark_bridge.plan.catalyst_plans import NO_BROADCASTS
from kquery_spark.spark_bridge.relations.catalog_snapshot import spark_plan
from kquery_spark.spark_bridge.session.bridge import Bridge, get_bridge
from kquery_spark.spark_bridge.session.hybrid_zones import HybridZones
from kquery_spark.spark_bridge.session.setting_values import is_true
from kquery_spark.spark_bridge.session.settings import SessionSettings, session_settings
from kquery_spark.stages import StageGraph
from kquery_spark.types.spark_json import arrow_schema

FileSettings = Mapping[str, str | None] | None
"""``SessionSettings.for_files`` when a context registered its first files; None if it has no files."""

_MAX_ROWS_IN_ROUNDS = 10_000  # rows of an in-memory table that a recursive query reads from the plan itself


def session_facts(spark: SparkSession) -> tuple[SessionFacts, EngineConfig]:
    """Return the session's settings that decide the meaning of queries, and the engine's settings."""
    bridge = get_bridge(spark)
    settings = session_settings(bridge.conf, bridge.jvm)
    return _facts_of_settings(settings), bridge.config()


def _facts_of_settings(settings: SessionSettings) -> SessionFacts:
    return SessionFacts(
        settings.time_zone,
        settings.ansi,
        settings.case_sensitive,
        last_key_wins=settings.last_key_wins,
        recursion_rounds=settings.recursion_levels,
        recursion_rows=settings.recursion_rows,
    )


def connect_as_spark(spark: SparkSession, paths: Sequence[str]) -> None:
    """Configure this process to access the buckets and clusters of paths like Spark; raises SourceError if it cannot.

    Spark supports ``s3://`` only if a setting enables it. Without the setting, such paths use the default credentials.
    """
    bridge = get_bridge(spark)
    hadoop = HadoopPaths(bridge.hadoop_configuration, bridge.jvm, partial(workers_have_hdfs_client, bridge))
    try:
        for path in paths:
            scheme = path.partition("://")[0]
            if scheme == "hdfs" or (scheme in SPARKS_SCHEMES and bucket_of(path) is not None):
                hadoop.engine_path(path)
    except Unsupported as error:
        raise SourceError(f"{error.reason}; give storage_options") from None


@dataclass(frozen=True)
class _CompiledQuery:
    """A compiled query: its stages, the result's schema, and its input DataFrames by the key of their ``Input`` nodes."""

    bridge: Bridge
    config: EngineConfig
    graph: StageGraph
    schema: StructType
    inputs: dict[str, SparkFrame]
    broadcasts: Mapping[int, Any]

    def frame(self) -> SparkFrame:
        """Return the lazy DataFrame of the result."""
        return to_dataframe(
            self.bridge, self.graph, self.schema, self.config, self.inputs, broadcasts=self.broadcasts
        )

    def payload_frame(self) -> SparkFrame:
        """Return the DataFrame of the result as payload rows."""
        return payload_frame(self.bridge, self.graph, self.config, self.broadcasts)


def _check_context(spark: SparkSession, analyzed: Analyzed, facts: SessionFacts, files: FileSettings) -> None:
    """Raise Unsupported if the session would answer a query of an ExecutionContext differently.

    facts: the settings when the context was created. They must not change, because the types of its tables depend on them.
    files: the settings for files when the context registered its first files; the sources depend on them, too.
    """
    bridge = get_bridge(spark)
    settings = session_settings(bridge.conf, bridge.jvm)
    if _facts_of_settings(settings) != facts:
        raise Unsupported(
            "the settings of the Spark session (such as its time zone or ANSI mode) changed after the ExecutionContext "
            "was created; create a new one"
        )
    _check_file_settings(settings, files)
    check_session(bridge, settings, analyzed.plan)


def _check_file_settings(settings: SessionSettings, files: FileSettings) -> None:
    """Raise Unsupported if a setting for files has changed since the context opened its first files.

    files: the settings at that time; None if the context has not opened any files.
    """
    if files is None:
        return
    for name, value in settings.for_files.items():
        if files[name] != value:
            raise Unsupported(f"{name} changed after files were registered; create a new ExecutionContext")


def checked_analysis(spark: SparkSession) -> AbstractContextManager[None]:
    """Return a context manager in which analysis declines constants that the session would evaluate differently."""
    bridge = get_bridge(spark)
    return checked_constants(lambda: session_settings(bridge.conf, bridge.jvm))


def files_session(
    spark: SparkSession, file_format: Format, files: FileSettings, are_paths: bool
) -> tuple[SessionSettings, HybridZones]:
    """Return the settings and the time zones with which the session reads files of a format.

    files, are_paths: as in ``_check_file_settings`` and ``check_files``. Raises Unsupported if the engine does not support
    one of the settings, or if one has changed since the context opened its first files.
    """
    bridge = get_bridge(spark)
    settings = session_settings(bridge.conf, bridge.jvm)
    _check_file_settings(settings, files)
    check_files(bridge, settings, file_format, are_paths)
    return settings, bridge.zones


def plan_frame_on_spark(
    spark: SparkSession, analyzed: Analyzed, config: EngineConfig, facts: SessionFacts, files: FileSettings
) -> SparkFrame:
    """Return a resolved query as a lazy Spark DataFrame."""
    _check_context(spark, analyzed, facts, files)
    return _compiled(spark, analyzed, config, IN_ANY_ORDER).frame()


def spark_executor(
    spark: SparkSession, analyzed: Analyzed, config: EngineConfig, facts: SessionFacts, files: FileSettings
) -> SparkExecutor:
    """Return an executor that runs a resolved query in Spark's tasks.

    The rows are collected as payloads, unless the query reads in-memory tables of the driver or requires Arrow's large
    types.
    """
    _check_context(spark, analyzed, facts, files)
    query = _compiled(spark, analyzed, config, IN_TASK_ORDER)
    large = is_true(spark.conf.get("spark.sql.execution.arrow.useLargeVarTypes", "false"))
    payloads = None
    if len(query.schema) and not query.inputs and not large:
        payloads = Payloads(query.payload_frame, query.graph.result.plan.schema, query.schema)
    return SparkExecutor(payloads, query.frame)


def _compiled(
    spark: SparkSession,
    analyzed: Analyzed,
    config: EngineConfig,
    placement: Placement,
    inputs: Mapping[str, SparkFrame] | None = None,
    broadcasts: Mapping[int, Any] = NO_BROADCASTS,
) -> _CompiledQuery:
    """Compile a query to stages; raises Unsupported if Spark's workers cannot run them.

    Spark distributes the in-memory tables of the driver: each becomes an ``Input`` over a DataFrame of its rows.
    """
    bridge = get_bridge(spark)
    problem = worker_problem(bridge)
    if problem is not None:
        raise Unsupported(problem)
    frames = dict(inputs or {})
    # Each round of a recursive query reads its tables again. So small tables stay in the plan that is sent to the task.
    loops = (node for node in walk_plan(analyzed.plan) if isinstance(node, Recursion))
    in_rounds: NodeMap[Recursion] = NodeMap()
    for loop in loops:
        for node in walk_plan(loop):
            in_rounds[node] = loop

    def handed_over(node: LogicalPlan) -> LogicalPlan:
        if isinstance(node, Scan) and isinstance(node.source, MemorySource):
            if node in in_rounds and node.source.table.num_rows <= _MAX_ROWS_IN_ROUNDS:
                return node
            source = node.source
            frames.setdefault(source.token, create_frame(spark, source.table, spark_schema_of(source.schema)))
            return Input(node.table, source.schema, source.token)
        return node

    graph = compile_query(transform_plan(analyzed.plan, handed_over), config, placement).graph
    return _CompiledQuery(bridge, config, graph, spark_schema_of(analyzed.schema), frames, broadcasts)


def apply_open_plan(plan: OpenPlan, frame: SparkFrame, text: str = "") -> SparkFrame:
    """Apply an open plan to a Spark DataFrame. If possible, the engine runs the query of the DataFrame, too."""
    repeated = [name for name, count in Counter(frame.columns).items() if count > 1]
    if repeated:
        raise Unsupported(
            f"a plan over a DataFrame with several columns named {repeated[0]} is not supported; rename them"
        )
    bridge = get_bridge(frame.sparkSession)
    settings = session_settings(bridge.conf, bridge.jvm)
    facts, config = _facts_of_settings(settings), bridge.config()
    try:
        rows = _imported(frame, bridge, config)
    except Unsupported:
        schema = arrow_schema(frame.schema.jsonValue(), settings.time_zone)
        rows = _OpenInput(Input(OPEN_INPUT, schema, OPEN_INPUT), {OPEN_INPUT: frame}, NO_BROADCASTS)
    with limited_depth():
        with checked_constants(lambda: settings):
            analyzed = analyze(plan.query, text, _OneTable(rows.plan, facts), facts)
        check_session(bridge, settings, analyzed.plan)
        return _compiled(bridge.spark, analyzed, config, IN_ANY_ORDER, rows.frames, rows.broadcasts).frame()


@dataclass(frozen=True)
class _OpenInput:
    """The rows that an open plan reads: the engine's plan of a DataFrame's query, or an ``Input`` of Spark's rows.

    frames: the DataFrames of the plan's inputs, by key. broadcasts: the JVM's broadcast variables of its Python functions.
    """

    plan: LogicalPlan
    frames: dict[str, SparkFrame]
    broadcasts: Mapping[int, Any]


def _imported(frame: SparkFrame, bridge: Bridge, config: EngineConfig) -> _OpenInput:
    """Import the whole query of a DataFrame. Raises Unsupported if Spark has to compute its rows.

    It also raises Unsupported if the query reads catalog, Delta, or Iceberg tables, or calls ``current_timestamp()`` or a
    similar function. The result of an open plan is a plain lazy DataFrame, and before an action runs, INSERT or REFRESH may
    change which files it has to read, and the time changes.
    """
    plan = spark_plan(frame, bridge)
    if plan.snapshot is not None:
        raise Unsupported("the tables or the current time may change before the rows are computed")
    query = SparkQuery.parse(plan, bridge, config, partial(workers_have_hdfs_client, bridge))
    imported = query.import_whole()
    object_of = query.tree.facts.jvm_object
    frames = {h.key: bridge.frame(bridge.columns(object_of(h.node), h.positions)) for h in imported.inputs}
    plan_of_rows = renamed(with_output(imported.plan, imported.output), frame.columns)
    return _OpenInput(plan_of_rows, frames, imported.broadcasts)


def renamed(plan: LogicalPlan, names: list[str]) -> LogicalPlan:
    """Return the plan with its columns renamed to Spark's column names."""
    if plan.schema.names == names:
        return plan
    pairs = zip(plan.schema.names, names, strict=True)
    return Projection(plan, tuple(Named(plan.column(a), b) for a, b in pairs))


class _OneTable(Catalog):
    def __init__(self, plan: LogicalPlan, facts: SessionFacts) -> None:
        self._plan = plan
        self._facts = facts

    @override
    def table(self, name: tuple[str, ...]) -> LogicalPlan | None:
        return self._plan if len(name) == 1 and self._facts.fold(name[0]) == OPEN_INPUT else None

    @override
    def table_names(self) -> list[str]:
        return [OPEN_INPUT]
