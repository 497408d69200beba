"""Planning a Spark DataFrame: import, optimize, place, cut into stages, and weigh whether that is worth it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from kquery_spark.compiler import CompiledQuery, Placement, compile_query
from kquery_spark.compiler.placement import IN_ANY_ORDER, IN_TASK_ORDER
from kquery_spark.config.cost import CostModel
from kquery_spark.config.engine import EngineConfig
from kquery_spark.config.processor import available_cores
from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.importer import Imported, Importer, does_work, may_work
from kquery_spark.frontends.catalyst.partition_dependence import partition_dependence
from kquery_spark.frontends.catalyst.plans.context import Declined
from kquery_spark.frontends.catalyst.splits import (
    SplitPlan,
    is_preaggregation,
    is_splittable,
    preaggregated,
    split_plan,
)
from kquery_spark.logical import Aggregate, EvalPython, Generate, Input, Join, LogicalPlan, walk_plan
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.logical.projection import with_output
from kquery_spark.optimizer.statistics import Estimator
from kquery_spark.runtime.spark.probe import worker_problem
from kquery_spark.sources.base import Source
from kquery_spark.spark_bridge.catalog_snapshot import CatalogSnapshot, SparkPlan, spark_plan
from kquery_spark.spark_bridge.failures import SPARK_ERRORS
from kquery_spark.spark_bridge.plan_facts import FactFetcher
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.spark_bridge.python_functions import PythonFunctions
from kquery_spark.spark_bridge.relations import RelationReader
from kquery_spark.spark_bridge.session import Bridge, bridge, check_frame
from kquery_spark.spark_bridge.session_settings import SessionSettings, session_settings

Position = tuple[int, ...]
_FEW_ROWS = 1_000_000
_THREADED_DECODE_BYTES = 3 << 20  # bytes to decode, which take one thread 30 ms and more
_MAX_REMEMBERED_PLANS = 1000
_LEAST_ROWS_A_GROUP = 8.0  # where rows are grouped only so that Spark computes something of fewer
_exceeding: dict[int, None] = {}  # hashes of plans


@dataclass(frozen=True)
class Part:
    """A maximal subtree of the query that the engine can run: what became of it at each step."""

    position: Position
    node: CatalystNode
    imported: Imported
    compiled: CompiledQuery

    @property
    def only_shared(self) -> bool:
        """Whether one task alone would get more rows of the sort than it may."""
        query = self.compiled
        return query.shares_sort and query.estimate.rows > query.config.sort_rows

    @property
    def in_any_order(self) -> Part | None:
        """The part with an ordered result in one task, as what Spark makes of it may not keep the order of several.

        None where that task would get more rows than it may.
        """
        if not self.compiled.shares_sort:
            return self
        if self.only_shared:
            return None
        return replace(self, compiled=self.compiled.placed(IN_ANY_ORDER))

    @cached_property
    def threaded(self) -> CompiledQuery | None:
        """The part cut for threads of the driver; None where it has too little work for them, or too much."""
        config = self.compiled.config
        threads = min(config.parallelism, available_cores())
        if threads < 2 or not _THREADED_DECODE_BYTES <= self.compiled.estimate.scanned < config.thread_bytes:
            return None
        query = self.compiled.placed(Placement(keeps_task_order=False, threads=threads))
        return query if len(query.graph.stages) > 1 and len(query.graph.result.tasks) == 1 else None

    @property
    def exceeds_driver(self) -> bool:
        """Whether an equal query over the same files turned out to be too much for the driver."""
        return bool(_exceeding) and hash(self.compiled.optimized) in _exceeding

    def remember_exceeds_driver(self) -> None:
        """Keep equal queries away from the driver, as actions of an enabled session plan theirs again each time."""
        _exceeding[hash(self.compiled.optimized)] = None
        if len(_exceeding) > _MAX_REMEMBERED_PLANS:
            _exceeding.pop(next(iter(_exceeding)), None)

    @cached_property
    def is_bounded(self) -> bool:
        """Whether the driver may run the last stage: no Generate, no function of the user's, few rows out of each join.

        A Python function of Spark's runs where Spark would run it, in a worker.
        """
        optimized = self.compiled.optimized
        nodes = list(walk_plan(optimized))
        estimator = Estimator()
        producers = (optimized, *(n for n in nodes if isinstance(n, Join)))
        return not any(isinstance(n, Generate | EvalPython) for n in nodes) and all(
            estimator.estimate(n).rows < _FEW_ROWS for n in producers
        )


@dataclass(frozen=True)
class PlannedQuery:
    """A Spark query as the engine sees it; ``root`` and ``plan`` are None when nothing could be read at all.

    ``snapshot``: when it was planned, if it reads tables of the catalog, which may change. ``worker_problem``: why Spark's
    Python workers cannot run the parts, of which there are none then.
    """

    frame: DataFrame
    bridge: Bridge
    config: EngineConfig
    cost: CostModel
    plan: Any
    facts: FactFetcher | None
    root: CatalystNode | None
    parts: tuple[Part, ...]
    reasons: tuple[tuple[str, str], ...]
    declined: tuple[tuple[CatalystNode, str], ...] = ()
    snapshot: CatalogSnapshot | None = None
    worker_problem: str | None = None

    def reason_of(self, node: CatalystNode) -> str | None:
        """Why a node of the plan stays with Spark, where it is itself the cause."""
        return next((reason for cause, reason in self.declined if cause is node), None)

    @property
    def whole(self) -> bool:
        """Whether the engine runs the query from its files to its result."""
        return len(self.parts) == 1 and self.parts[0].position == () and not self.parts[0].imported.inputs

    @cached_property
    def coverage(self) -> float:
        """Share of the optimized plan's nodes that the engine can run."""
        return coverage(self, self.parts)


def coverage(planned: PlannedQuery, parts: Iterable[Part]) -> float:
    """Share of the optimized plan's nodes that run in the engine where it runs these parts."""
    if planned.root is None:
        return 0.0
    total = sum(1 for _ in _plan_nodes(planned.root))
    inside = 0
    for part in parts:
        outside = {id(n) for h in part.imported.inputs for n in _plan_nodes(h.node)}
        inside += sum(1 for n in _plan_nodes(part.node) if id(n) not in outside)
    return inside / total


def plan_frame(frame: DataFrame, query: SparkPlan | None = None) -> PlannedQuery:
    """Plan a DataFrame for the engine; never raises for what Spark can run: it says why instead.

    query: Spark's plan of it, where that is known.
    """
    check_frame(frame, "kquery_spark")
    link = bridge(frame.sparkSession)
    config, costs = link.config_and_costs()
    if frame.isStreaming:
        return _nothing(frame, link, config, "Streaming queries are left to Spark.")
    try:
        query = query or spark_plan(frame, link)
    except SPARK_ERRORS as error:  # Spark meets it again, and gives it, when the query is run
        first = str(error).strip().partition("\n")[0]
        return _nothing(frame, link, config, f"Spark cannot plan this query itself: {first}")
    settings = session_settings(link.conf, link.jvm)
    plan = query.optimized
    facts = FactFetcher(link.jvm, plan)
    try:
        root = facts.parse()
    except Unsupported as error:
        return _nothing(frame, link, config, error.reason)
    planned = _planned_best(SplitPlan(plan, facts, root), link, settings, config)
    parts, declined = planned.parts, planned.declined
    problem = worker_problem(link) if parts and config.enabled else None
    if problem is not None:
        return replace(_nothing(frame, link, config, problem), worker_problem=problem)
    reasons = tuple(dict.fromkeys((node.cls, reason) for node, reason in declined))
    snapshot = _end_planning(query) if parts else None
    return PlannedQuery(
        frame,
        link,
        config,
        costs,
        planned.split.plan,
        planned.split.facts,
        planned.split.root,
        tuple(parts),
        reasons,
        tuple(declined),
        snapshot,
    )


@dataclass(frozen=True)
class _Planned:
    """A plan of Spark's, as it is or with nodes split, and what becomes of it."""

    split: SplitPlan
    parts: list[Part]
    declined: list[tuple[CatalystNode, str]]

    @property
    def preaggregates_well(self) -> bool:
        """Whether all rows that are grouped for Spark's sake are grouped in the engine, into few groups."""
        well = {part.node for part in self.parts if _rows_a_group(part) >= _LEAST_ROWS_A_GROUP}
        return all(node in well for node in self.split.root.walk() if is_preaggregation(node))


def _planned_best(plan: SplitPlan, link: Bridge, settings: SessionSettings, config: EngineConfig) -> _Planned:
    """The plan, with each node split in two that stays with Spark for some of its expressions."""
    sources: NodeMap[Source] = NodeMap()

    def planned(plan: SplitPlan) -> _Planned:
        relations = RelationReader(plan.facts, link.jvm, settings.time_zone, link.hadoop_configuration)
        importer = Importer(plan.facts, relations, settings, sources, PythonFunctions(plan.facts, link))
        return _Planned(plan, *_parts(plan.root, importer, config))

    best = planned(plan)
    if not config.enabled or not any(is_splittable(node) for node, _ in best.declined):
        return best
    try:
        split = split_plan(plan, link.jvm, settings)
        if split is not plan:
            best = planned(split)
        grouped = preaggregated(split, link.jvm, settings)
        if grouped is not split and (other := planned(grouped)).preaggregates_well:
            best = other
    except Unsupported:  # the plan has parts that cannot be looked up, so it stays as it is
        pass
    return best


def _rows_a_group(part: Part) -> float:
    """About how many rows the highest Aggregate of a part makes a row of."""
    aggregates = (n for n in walk_plan(part.compiled.optimized) if isinstance(n, Aggregate))
    top, estimate = next(aggregates, None), Estimator().estimate
    return 0.0 if top is None else estimate(top.child).rows / max(estimate(top).rows, 1.0)


def _end_planning(query: SparkPlan) -> CatalogSnapshot | None:
    """When the query was planned, where it reads tables that may change from now on."""
    if query.snapshot is not None:
        query.snapshot.end_planning()
    return query.snapshot


def _parts(
    root: CatalystNode, importer: Importer, config: EngineConfig
) -> tuple[list[Part], list[tuple[CatalystNode, str]]]:
    """The maximal subtrees the engine can run, and why each node above or between them stays with Spark.

    Below a node that stays, only a subtree that does more than pass rows on is worth its own way through the engine, and
    none where the node sees in which partitions its rows are.
    """
    parts: list[Part] = []
    reasons: list[tuple[CatalystNode, str]] = []
    stack: list[tuple[CatalystNode, Position]] = [(root, ())]
    while stack:
        node, at = stack.pop()
        if node is not root and not may_work(node):
            continue
        dependence = partition_dependence(node)
        if dependence is not None:
            reasons.append((node, dependence))
            continue
        try:
            imported = importer.import_plan(node)
            if node is not root and not does_work(imported.plan):
                continue
            part = _plan_part(at, node, imported, config)
        except Unsupported as declined:
            at_fault = declined.node if isinstance(declined, Declined) else node
            reasons.append((at_fault, declined.reason))
            stack += _children(node, at)[::-1]
            continue
        parts.append(part)
        below, dependent = _below_handovers(part)
        reasons += [*imported.declined, *dependent]
        stack += below
    return parts, reasons


def _children(node: CatalystNode, at: Position) -> list[tuple[CatalystNode, Position]]:
    return [(child, (*at, i)) for i, child in enumerate(node.children)]


def _below_handovers(
    part: Part,
) -> tuple[list[tuple[CatalystNode, Position]], list[tuple[CatalystNode, str]]]:
    """What to plan below the nodes whose rows Spark hands over to a part, and why other such plans stay with Spark."""
    below: list[tuple[CatalystNode, Position]] = []
    reasons: list[tuple[CatalystNode, str]] = []
    for handover in part.imported.inputs:
        dependence = partition_dependence(handover.node)
        if dependence is not None:
            reasons.append((handover.node, dependence))
            continue
        where = position_below(part.node, part.position, handover.node)
        if where is not None:
            below += _children(handover.node, where)
    return below, reasons


def position_below(node: CatalystNode, at: Position, target: CatalystNode) -> Position | None:
    """Position of a node below ``node``; None for one in the plan of a subquery."""
    return next((p for n, p in _positions(node, at) if n is target), None)


def _nothing(frame: DataFrame, link: Bridge, config: EngineConfig, reason: str) -> PlannedQuery:
    return PlannedQuery(frame, link, config, CostModel(), None, None, None, (), (("Query", reason),))


def _plan_part(position: Position, node: CatalystNode, imported: Imported, config: EngineConfig) -> Part:
    placement = IN_TASK_ORDER if position == () else IN_ANY_ORDER
    query = compile_query(with_output(imported.plan, imported.output), config, placement, check=False)
    _check_names(query.optimized)
    tasks, rows = len(query.graph.result.tasks), query.estimate.rows
    if query.is_ordered and rows > config.sort_rows * tasks:
        where = "one task" if tasks == 1 else f"{tasks} tasks"
        raise Unsupported(
            f"Sorting about {rows:,.0f} rows in {where} is left to Spark (spark.kquery.sortRows)."
        )
    return Part(position, node, imported, query)


def _check_names(plan: LogicalPlan) -> None:
    """Raise Unsupported when rows with a struct that repeats a name would change sides: Java's Arrow reads one field."""
    crossing = (plan, *(n for n in walk_plan(plan) if isinstance(n, Input)))
    for field in (field for node in crossing for field in node.schema):
        if (name := _repeated_name(field.type)) is not None:
            raise Unsupported(
                f"Column {field.name} has a struct with two fields named {name}, which do not cross between Spark and Arrow."
            )


def _repeated_name(dtype: pa.DataType) -> str | None:
    """A name that two fields of a struct in the type have."""
    fields = [dtype.field(i) for i in range(dtype.num_fields)]
    names = [f.name for f in fields]
    own = [name for i, name in enumerate(names) if name in names[:i]]
    below = (_repeated_name(f.type) for f in fields)
    return own[0] if own else next((name for name in below if name is not None), None)


def _positions(node: CatalystNode, at: Position) -> Iterator[tuple[CatalystNode, Position]]:
    yield node, at
    for i, child in enumerate(node.children):
        yield from _positions(child, (*at, i))


def _plan_nodes(node: CatalystNode) -> Iterator[CatalystNode]:
    """The plan nodes of a subtree with those of its subqueries."""
    return (n for n in node.walk_all() if n.is_plan)
