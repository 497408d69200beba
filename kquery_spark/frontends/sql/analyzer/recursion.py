"""WITH RECURSIVE: tables of WITH whose query is a UNION ALL that reads the table itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from kquery_spark.expr import walk
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation, Scope, ScopeColumn
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.frontends.sql.ast.node import Node
from kquery_spark.logical import (
    Aggregate,
    Filter,
    Generate,
    Join,
    JoinKind,
    LastRound,
    LogicalPlan,
    Projection,
    Recursion,
    RecursionLimits,
    Union,
    Window,
)
from kquery_spark.logical.recursion import unbound_rounds
from kquery_spark.logical.subqueries import Subquery
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.queries import QueryAnalyzer

#: The sides of a join all of whose rows are returned; only these sides may read the rows of the last round.
_READING_SIDES: Mapping[JoinKind, tuple[bool, ...]] = {
    JoinKind.INNER: (True, True),
    JoinKind.LEFT: (True, False),
    JoinKind.RIGHT: (False, True),
    JoinKind.SEMI: (True, False),
    JoinKind.ANTI: (True, False),
}


_NODES_WITH_PLACE_ERROR = (Filter, Join, Projection, Window)


@dataclass(frozen=True)
class RecursiveTable:
    """The meaning of a recursive table inside its own query: the rows of the previous round."""

    table: q.CommonTable
    key: str
    names: tuple[str, ...]
    fields: tuple[pa.Field, ...]

    def relation(self, queries: QueryAnalyzer) -> ResolvedRelation:
        """The rows of the previous round, with unique column names."""
        schema = pa.schema([field.with_name(queries.names.fresh(field.name)) for field in self.fields])
        plan = LastRound(self.key, schema)
        columns = zip(self.names, schema.names, strict=True)
        scope = Scope(tuple(ScopeColumn(n, plan.column(c), (self.table.name,)) for n, c in columns))
        return ResolvedRelation(plan, replace(scope, facts=queries.facts))


def is_recursive(queries: QueryAnalyzer, table: q.CommonTable) -> bool:
    """Return whether the table's query reads the table itself."""
    return any(_references(queries, table, table.query))


def _references(queries: QueryAnalyzer, table: q.CommonTable, node: Node) -> Iterator[r.Table]:
    """Return the references to the table below a node, except in queries with another table of that name."""
    fold = queries.facts.fold
    if isinstance(node, q.Query) and any(fold(own.name) == fold(table.name) for own in node.ctes):
        return
    if isinstance(node, r.Table) and len(node.name) == 1 and fold(node.name[0]) == fold(table.name):
        yield node
    for child in node.children():
        yield from _references(queries, table, child)


def recursive_relation(queries: QueryAnalyzer, table: q.CommonTable) -> ResolvedRelation:
    """Analyze a recursive table: returns the rows of all rounds."""
    union = _union(queries, table)
    anchor = queries.body(union.left, None)
    visible = anchor.scope.visible
    names = table.columns or tuple(c.name for c in visible)
    if len(names) != len(visible):
        queries.fail(
            f"[ASSIGNMENT_ARITY_MISMATCH] {table.name} has {len(visible)} column(s), not {len(names)}", table
        )
    key = queries.names.fresh(f"rounds_of_{table.name}")
    types = [pa.field(n, c.value.dtype) for n, c in zip(names, visible, strict=True)]
    step = _step(queries, union, RecursiveTable(table, key, tuple(names), tuple(types)))
    first, then = (
        queries.project_values(side, [c.value for c in side.scope.visible]) for side in (anchor, step)
    )
    rounds = queries.facts.recursion_rounds if table.max_rounds is None else table.max_rounds
    plan = Recursion(first, then, key, RecursionLimits(rounds, queries.facts.recursion_rows))
    columns = tuple(ScopeColumn(n, plan.column(c)) for n, c in zip(names, plan.schema.names, strict=True))
    return ResolvedRelation(plan, Scope(columns, queries.facts))


def _union(queries: QueryAnalyzer, table: q.CommonTable) -> q.SetQuery:
    """The table's query; raises an error unless it is a UNION ALL whose second part reads the table once."""
    query, union = table.query, table.query.body
    plain = q.Query(query.body, query.ctes, recursive=query.recursive)
    if not isinstance(union, q.SetQuery) or union.op != "UNION" or query != plain:
        queries.fail(
            f"[INVALID_RECURSIVE_CTE] the query of {table.name}, which reads itself, must be a UNION ALL of an "
            "anchor query and a recursive query",
            table,
        )
    if not union.all:
        queries.fail(
            f"[UNION_NOT_SUPPORTED_IN_RECURSIVE_CTE] the query of {table.name} must be a UNION ALL", table
        )
    outside = (union.left, *(own.query for own in query.ctes))
    first = next((read for part in outside for read in _references(queries, table, part)), None)
    if first is not None:
        queries.fail(
            f"[INVALID_RECURSIVE_REFERENCE.PLACE] the anchor query of {table.name} cannot read {table.name}",
            first,
        )
    return union


def _step(queries: QueryAnalyzer, union: q.SetQuery, last: RecursiveTable) -> ResolvedRelation:
    """Analyze the query of the rounds after the first one."""
    step = queries.with_table(last.table.name, last, lambda: queries.body(union.right, None))
    columns = step.scope.visible
    if len(columns) != len(last.fields):
        queries.fail(
            f"[NUM_COLUMNS_MISMATCH] UNION needs as many columns on both sides: the first has {len(last.fields)}, the "
            f"second {len(columns)}",
            union,
        )
    for column, field in zip(columns, last.fields, strict=True):
        if column.value.dtype != field.type:
            queries.fail(
                f"the column {field.name} of {last.table.name} is {t.spark_name(field.type)} in the anchor query and "
                f"{t.spark_name(column.value.dtype)} in the recursive query; CAST one of them",
                union.right,
            )
    refusing = _find_refused_node(step.plan, last.key)
    if refusing is not None:
        # in Spark, LIMIT, DISTINCT and similar operators apply to the rows of one round
        is_wrong = (isinstance(refusing, Aggregate) and refusing.aggregates) or isinstance(
            refusing, _NODES_WITH_PLACE_ERROR
        )
        error = "[INVALID_RECURSIVE_REFERENCE.PLACE] " if is_wrong else ""
        queries.fail(
            f"{error}{last.table.name} cannot be read here: not in a subquery, nor below an aggregate, a window, a sort, a "
            "limit or on the outer side of a join",
            next(_references(queries, last.table, union.right)),
        )
    return step


def _find_refused_node(plan: LogicalPlan, key: str) -> LogicalPlan | None:
    """Return a node that reads rows of the last round but is not row-wise, which Spark refuses; None if there is none."""
    if key not in unbound_rounds(plan) or isinstance(plan, LastRound):
        return None
    in_children = [key in unbound_rounds(child) for child in plan.children]
    match plan:
        case Projection() | Filter() | Generate() | Union():
            takes = (True,) * len(plan.children)
        case Join():
            takes = _READING_SIDES.get(plan.kind, (False, False))
        case _:
            return plan
    in_subquery = any(
        isinstance(e, Subquery) and key in unbound_rounds(e.plan) for x in plan.expressions for e in walk(x)
    )
    if in_subquery or any(read and not taken for read, taken in zip(in_children, takes, strict=True)):
        return plan
    return next(
        (found for child in plan.children if (found := _find_refused_node(child, key)) is not None), None
    )


def with_enough_rows(plan: LogicalPlan, count: int) -> LogicalPlan:
    """Tell a recursion directly below a limit to stop once it has ``count`` rows, as Spark does."""
    match plan:
        case Projection():
            child = with_enough_rows(plan.child, count)
            return plan if child is plan.child else replace(plan, child=child)
        case Recursion():
            return replace(plan, limits=replace(plan.limits, enough_rows=count))
    return plan
