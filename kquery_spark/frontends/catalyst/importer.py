"""Imports Spark's optimized plan: returns the engine's logical plan, or the reason why it cannot.

Unsupported parts fall back to Spark, by subtree. If a subtree below a supported node is unsupported, it becomes a hand-over:
Spark computes its rows and feeds them to the engine. If a node above is unsupported, the supported subtrees below it are
accelerated one by one. For example, of ``Aggregate(Join(Scan a, ScalaUDF(Scan b)))`` the engine runs the aggregate, the join
and the scan of a, and Spark computes the rows of the side with the Scala UDF.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import columns_of
from kquery_spark.frontends.catalyst.expressions import EXPRESSIONS
from kquery_spark.frontends.catalyst.expressions.aggregate_functions import CONDITIONS, REASONS
from kquery_spark.frontends.catalyst.file_columns import row_tracking_conflict
from kquery_spark.frontends.catalyst.nondeterminism import repeated_nondeterminism
from kquery_spark.frontends.catalyst.plans import PLANS, Context, Handover
from kquery_spark.frontends.catalyst.required_columns import RequiredColumns
from kquery_spark.frontends.catalyst.scope import exactly
from kquery_spark.frontends.catalyst.support import Level, Row
from kquery_spark.frontends.catalyst.versions import LOCAL_SETTINGS
from kquery_spark.functions.aggregate.windows import window_functions
from kquery_spark.functions.aggregate_registry import aggregate_functions
from kquery_spark.functions.registry import functions
from kquery_spark.logical import (
    Input,
    LogicalPlan,
    Union,
    transform_plan,
    walk_plan,
)
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.logical.recursion import unbound_rounds
from kquery_spark.sources.base import Source
from kquery_spark.spark_bridge.plan.plan_facts import Facts
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.python.functions import PythonFunctions
from kquery_spark.spark_bridge.relations.leaves import RelationReader
from kquery_spark.spark_bridge.session.settings import SessionSettings

# Catalyst classes that are imported as scans, projections, filters and unions: every output row comes from one input row.
ROW_WISE_CLASSES = frozenset(
    {
        *("LogicalRelation", "LocalRelation", "OneRowRelation", "Range"),
        *("Project", "Filter", "Union", "SubqueryAlias", "View", "ResolvedHint"),
    }
)


@dataclass(frozen=True)
class Imported:
    """The engine's plan for a Catalyst subtree.

    output: the plan's column names in the order of Spark's output, in which a name may be repeated. inputs: the subtrees
    that Spark computes for it. declined: the nodes that caused these, each with the reason. broadcasts: the JVM's broadcast
    variables by id, including all that its Python functions refer to.
    """

    plan: LogicalPlan
    output: tuple[str, ...]
    inputs: tuple[Handover, ...]
    declined: tuple[tuple[CatalystNode, str], ...]
    broadcasts: Mapping[int, Any] = field(compare=False, repr=False)


class Importer:
    """Imports subtrees of one optimized plan.

    sources: of relations, shared by imports of the same plan. functions: reads the plan's Python functions; if None, these
    fall back to Spark.
    """

    def __init__(
        self,
        facts: Facts,
        relations: RelationReader,
        settings: SessionSettings,
        sources: NodeMap[Source] | None = None,
        functions: PythonFunctions | None = None,
    ) -> None:
        self._functions = functions
        self._facts = facts
        self._relations = relations
        self._settings = settings
        self._sources: NodeMap[Source] = NodeMap() if sources is None else sources

    def declined_query(self, root: CatalystNode) -> tuple[CatalystNode, str] | None:
        """A node that forces Spark to run the whole query, and the reason; None if there is none."""
        return repeated_nondeterminism(root) or row_tracking_conflict(root, self._relations.tracks_rows)

    def import_plan(self, node: CatalystNode) -> Imported:
        """Import a subtree; raises Unsupported if the engine cannot run its root."""
        for name, value in self._settings.unexpected().items():
            if not name.startswith(LOCAL_SETTINGS):
                raise Unsupported(f"the engine does not follow the setting {name}={value}")
        columns_read = RequiredColumns.collect(node)
        context = Context(
            self._facts, self._relations, self._settings, self._sources, columns_read, self._functions
        )
        scope = context.subtree(node)
        plan = exactly(scope, dict.fromkeys(scope.names()))
        if context.rounds and unbound_rounds(plan):
            raise Unsupported("the working table of a recursive query is not supported outside of its step")
        plan, inputs = _narrowed(plan, context.inputs)
        broadcasts = {} if self._functions is None else self._functions.broadcasts
        return Imported(plan, scope.names(), inputs, tuple(context.declined), broadcasts)


def may_do_more_than_scan(node: CatalystNode) -> bool:
    """Return whether a subtree may do more than scan and filter rows, without reading its relations."""
    below = list(node.walk())
    expressions = (part for n in below for top in n.expressions() for part in top.walk_all())
    return not ROW_WISE_CLASSES.issuperset(n.cls for n in below) or any(part.is_plan for part in expressions)


def does_more_than_scan(plan: LogicalPlan) -> bool:
    """Return whether a plan does more than scan, filter and project rows."""
    return not all(node.is_row_wise for node in walk_plan(plan))


def support_table() -> list[Row]:
    """All known Catalyst classes with their support levels, for the documentation."""
    rows = [Row("plan", e.family, e.cls, e.level, e.note) for e in PLANS.entries.values()]
    rows += [Row("expression", e.family, e.cls, e.level, e.note) for e in EXPRESSIONS.entries.values()]
    own_entries = set(EXPRESSIONS.entries)
    for function in functions().values():
        level, note = Level.FULL, function.name
        if function.check_values is not None:
            level, note = Level.PARTIAL, f"{function.name}; some constant arguments fall back to Spark"
        rows += [
            Row("expression", "functions", cls, level, note)
            for cls in function.catalyst
            if cls not in own_entries
        ]
    for aggregate in aggregate_functions().values():
        rows += [
            Row("aggregate", "aggregates", cls, Level.FULL, aggregate.calls.name_of(aggregate.name))
            for cls in aggregate.catalyst
            if cls not in CONDITIONS
        ]
    rows += [Row("aggregate", "aggregates", cls, Level.NONE, reason) for cls, reason in REASONS.items()]
    rows += [Row("aggregate", "aggregates", cls, Level.PARTIAL, note) for cls, note in CONDITIONS.items()]
    rows += [
        Row("window function", "windows", cls, Level.FULL, window.name)
        for window in window_functions()
        for cls in window.catalyst
    ]
    return sorted(rows, key=lambda row: (row.kind, row.family, row.cls))


def _narrowed(plan: LogicalPlan, inputs: list[Handover]) -> tuple[LogicalPlan, tuple[Handover, ...]]:
    """Reduce the hand-overs of a plan to the columns that it reads."""
    if not inputs:
        return plan, ()
    used = _columns_read(plan)
    narrowed = {handover.key: _with_columns(handover, used) for handover in inputs}

    def narrow(node: LogicalPlan) -> LogicalPlan:
        return replace(node, columns=narrowed[node.key].schema) if isinstance(node, Input) else node

    return transform_plan(plan, narrow), tuple(narrowed.values())


def _columns_read(plan: LogicalPlan) -> set[str]:
    """The columns that the result, an expression, or a union of the plan reads."""
    used = set(plan.schema.names)
    for node in walk_plan(plan):
        used |= columns_of(*node.expressions)
        if isinstance(node, Union):
            used.update(name for child in node.inputs for name in child.schema.names)
    return used


def _with_columns(handover: Handover, used: set[str]) -> Handover:
    """Reduce a hand-over to the used columns, or to its first column if none is used."""
    places = [i for i, name in enumerate(handover.schema.names) if name in used] or [0]
    schema = pa.schema([handover.schema.field(i) for i in places])
    return replace(handover, schema=schema, positions=tuple(handover.positions[i] for i in places))
