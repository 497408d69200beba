"""Analyzes whole queries: WITH, set operations, ORDER BY over them, LIMIT and OFFSET.

``QueryAnalyzer`` holds the state that all parts of a query share; ``RelationAnalyzer`` (FROM), ``SelectAnalyzer`` (SELECT
blocks) and ``ExpressionAnalyzer`` do the rest. A table of WITH is analyzed again at each use, so that the columns of each
use have their own names. While its query is analyzed, only the tables that it could read at its definition are visible.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import pyarrow as pa

from kquery_spark.errors import PlanError, SqlError, Unsupported
from kquery_spark.expr import Cast, Column, Expr, Named, SortKey
from kquery_spark.expr import walk as walk_expr
from kquery_spark.expr.properties import is_deterministic
from kquery_spark.frontends.sql.analyzer.catalog import Analyzed, Catalog, SessionFacts
from kquery_spark.frontends.sql.analyzer.constants import constant_of
from kquery_spark.frontends.sql.analyzer.conversions import Conversions
from kquery_spark.frontends.sql.analyzer.expressions import ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import AnalyzedSubquery
from kquery_spark.frontends.sql.analyzer.generators import GeneratorAnalyzer
from kquery_spark.frontends.sql.analyzer.outer_row import OuterRow
from kquery_spark.frontends.sql.analyzer.output_columns import column_names, output_plan
from kquery_spark.frontends.sql.analyzer.recursion import (
    RecursiveTable,
    is_recursive,
    recursive_relation,
    with_enough_rows,
)
from kquery_spark.frontends.sql.analyzer.relations import RelationAnalyzer
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation, Scope, ScopeColumn
from kquery_spark.frontends.sql.analyzer.select_block import SelectAnalyzer
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.frontends.sql.ast.node import Node, walk
from kquery_spark.frontends.unique_names import UniqueNames, unique_names
from kquery_spark.logical import Limit, LogicalPlan, Projection, SetOperation, Sort, Union
from kquery_spark.logical.aggregate import distinct_rows
from kquery_spark.logical.set_operation import SetKind
from kquery_spark.logical.subqueries import ScalarSubquery, expressions_with_subqueries
from kquery_spark.types import names as t

# Tables of WITH by folded name: a common table, or the meaning of a recursive table inside of its own query.
_CommonTables = Mapping[str, "_CommonTable | RecursiveTable"]


@dataclass(frozen=True)
class _CommonTable:
    """A table of WITH. visible: the tables that its query can read. may_recur: whether it can read itself."""

    table: q.CommonTable
    visible: _CommonTables
    may_recur: bool


_MAX_USES_OF_CTES = 2000
"""The maximum number of uses. Each use copies the query of the table. So with 20 tables that each use the previous one
twice, there would be a million queries."""


class QueryAnalyzer:
    """Analyzes one query, and has the state that its parts share: the catalog, unique names, and the tables of WITH."""

    def __init__(self, sql: str, catalog: Catalog, facts: SessionFacts) -> None:
        self.sql = sql
        self.catalog = catalog
        # The clock is read once per query, so that all calls of current_timestamp() return the same value.
        now = int(dt.datetime.now(dt.timezone.utc).timestamp() * 1_000_000)
        self.facts = facts = facts if facts.now_micros is not None else replace(facts, now_micros=now)
        self.convert = Conversions(facts)
        self.names = UniqueNames()
        self.relations = RelationAnalyzer(self)
        self.generators = GeneratorAnalyzer(self)
        self._ctes: _CommonTables = {}
        self._uses_of_ctes = 0
        self._used_ctes: set[int] = set()  # ids of the tables of WITH that were used
        self._subqueries: dict[int, AnalyzedSubquery] = {}

    def fail(self, message: str, node: Node | None = None) -> NoReturn:
        """Raise at a node."""
        raise SqlError(message, self.sql, None if node is None or node.pos < 0 else node.pos)

    def expressions(
        self, scope: Scope, outer: OuterRow | None, clause: str, *plans: LogicalPlan
    ) -> ExpressionAnalyzer:
        """An analyzer of expressions in a clause, over the columns of some plans."""
        return ExpressionAnalyzer(
            self.sql,
            self.facts,
            self.names,
            scope,
            self.query,
            outer,
            clause=clause,
            plans=plans,
            subqueries=self._subqueries,
        )

    def common_table(self, name: str) -> ResolvedRelation | None:
        """Return a table of WITH, analyzed again for each use so that its columns have unique names."""
        entry = self._ctes.get(self.facts.fold(name))
        if entry is None:
            return None
        self._uses_of_ctes += 1
        if self._uses_of_ctes > _MAX_USES_OF_CTES:
            raise Unsupported(
                f"more than {_MAX_USES_OF_CTES} uses of tables of WITH, counting each copy, are not supported"
            )
        if isinstance(entry, RecursiveTable):
            return entry.relation(self)
        table = entry.table
        saved, self._ctes = self._ctes, entry.visible
        try:
            if entry.may_recur and is_recursive(self, table):
                relation = self._recursive(table)
                self._check_uses(table, relation)
                return ResolvedRelation(relation.plan, relation.scope.renamed((table.name,)))
            relation = self.query(table.query, None)
        finally:
            self._ctes = saved
        self._check_uses(table, relation)
        if table.columns and len(table.columns) != len(relation.scope.visible):
            self.fail(
                f"[ASSIGNMENT_ARITY_MISMATCH] {table.name} has {len(relation.scope.visible)} column(s), "
                f"not {len(table.columns)}",
                table,
            )
        return ResolvedRelation(relation.plan, relation.scope.renamed((table.name,), table.columns or None))

    def _check_uses(self, table: q.CommonTable, relation: ResolvedRelation) -> None:
        """Decline a second use of a nondeterministic table of WITH.

        Spark computes the rows once for all uses. Here, each use is a copy, so the rows would differ.
        """
        if id(table) not in self._used_ctes:
            self._used_ctes.add(id(table))
        elif not all(map(is_deterministic, expressions_with_subqueries(relation.plan))):
            raise Unsupported(f"several uses of {table.name}, which is not deterministic, are not supported")

    def _recursive(self, table: q.CommonTable) -> ResolvedRelation:
        """Return a table of WITH RECURSIVE that reads itself; its query may have a WITH clause, too."""
        saved, self._ctes = self._ctes, self._with_tables(table.query)
        try:
            return recursive_relation(self, table)
        finally:
            self._ctes = saved

    def with_table(
        self, name: str, table: RecursiveTable, analyze: Callable[[], ResolvedRelation]
    ) -> ResolvedRelation:
        """Call ``analyze`` while the name of a recursive table means the rows of its last round; return its result."""
        saved, self._ctes = self._ctes, {**self._ctes, self.facts.fold(name): table}
        try:
            return analyze()
        finally:
            self._ctes = saved

    def _with_tables(self, node: q.Query) -> _CommonTables:
        """Return the tables of WITH that a query can read: those of enclosing queries and its own."""
        ctes, seen = self._ctes, set[str]()
        for table in node.ctes:
            key = self.facts.fold(table.name)
            if key in seen:
                self.fail(f"[DUPLICATED_CTE_NAMES] {table.name} is defined twice", table)
            seen.add(key)
            ctes = {**ctes, key: _CommonTable(table, ctes, node.recursive)}
        return ctes

    def query(self, node: q.Query, outer: OuterRow | None) -> ResolvedRelation:
        """Analyze a query: WITH, its body, ORDER BY, LIMIT and OFFSET."""
        saved, self._ctes = self._ctes, self._with_tables(node)
        try:
            if isinstance(node.body, q.Select):
                relation = SelectAnalyzer(self, node.body, outer).analyze(node.order_by, node.windows)
            else:
                relation = self.sort(self.body(node.body, outer), node.order_by, outer)
            return self._limit(relation, node)
        finally:
            self._ctes = saved

    def body(self, node: q.QueryBody, outer: OuterRow | None) -> ResolvedRelation:
        """Analyze the body of a query, without its WITH, ORDER BY, LIMIT and OFFSET."""
        match node:
            case q.Select():
                return SelectAnalyzer(self, node, outer).analyze()
            case q.Query():
                return self.query(node, outer)
            case r.Values():
                relation = self.relations.relation(node, outer)
                return ResolvedRelation(relation.plan, relation.scope.renamed(()))
        left, right = self.body(node.left, outer), self.body(node.right, outer)
        return self.set_operation(left, right, node.op.upper(), node.all, node)

    def set_operation(
        self, left: ResolvedRelation, right: ResolvedRelation, op: str, keep_all: bool, node: Node | None
    ) -> ResolvedRelation:
        """UNION, INTERSECT or EXCEPT of two relations, their columns widened to common types."""
        a, b = left.scope.visible, right.scope.visible
        if len(a) != len(b):
            self.fail(
                f"[NUM_COLUMNS_MISMATCH] {op} needs as many columns on both sides: "
                f"the first has {len(a)}, the second {len(b)}",
                node,
            )
        pairs = self._common_types(a, b, op, node)
        first = self.project_values(left, [pair[0] for pair in pairs])
        second = self.project_values(right, [pair[1] for pair in pairs])
        plan: LogicalPlan
        if op == "UNION":
            plan = Union((first, second))
            if not keep_all:
                plan = distinct_rows(plan)
        else:
            kind = SetKind.INTERSECT if op == "INTERSECT" else SetKind.EXCEPT
            plan = SetOperation(first, second, kind, keep_all)
            plan = self._as_nullable_as(plan, [c.value.dtype for c in a])
        columns = tuple(
            ScopeColumn(c.name, plan.column(n)) for c, n in zip(a, plan.schema.names, strict=True)
        )
        return ResolvedRelation(plan, Scope(columns, self.facts))

    def _common_types(
        self, left: Sequence[ScopeColumn], right: Sequence[ScopeColumn], op: str, node: Node | None
    ) -> list[list[Expr]]:
        """Cast the columns of both sides, pair by pair, to their common types."""
        pairs = []
        for position, (a, b) in enumerate(zip(left, right, strict=True), 1):
            try:
                pairs.append(self.convert.common([a.value, b.value], op))
            except PlanError:
                self.fail(
                    f"[INCOMPATIBLE_COLUMN_TYPE] column {position} of {op} is {t.spark_name(a.value.dtype)} on one "
                    f"side and {t.spark_name(b.value.dtype)} on the other",
                    node,
                )
        return pairs

    def _as_nullable_as(self, plan: LogicalPlan, left_types: Sequence[pa.DataType]) -> LogicalPlan:
        """Restore the nullability of the left side: EXCEPT and the like return only rows of the left side."""
        exprs = []
        for name, dtype in zip(plan.schema.names, left_types, strict=True):
            column = plan.column(name)
            if column.dtype == dtype or column.dtype != t.nullable_within(dtype):
                exprs.append(Named(column, name))
            else:
                exprs.append(Named(Cast(column, dtype), self.names.fresh(name)))
        changed = any(isinstance(e.expr, Cast) for e in exprs)
        return Projection(plan, tuple(exprs)) if changed else plan

    def project_values(self, relation: ResolvedRelation, values: Sequence[Expr]) -> LogicalPlan:
        """Project the relation's plan to these values."""
        plan = relation.plan
        if column_names(values) == plan.schema.names:
            return plan
        used_names: set[str] = set()
        exprs = []
        for column, value in zip(relation.scope.visible, values, strict=True):
            keeps_name = isinstance(value, Column) and value.name not in used_names
            name = value.name if keeps_name and isinstance(value, Column) else self.names.fresh(column.name)
            used_names.add(name)
            exprs.append(Named(value, name))
        return Projection(plan, tuple(exprs))

    def sort(
        self, relation: ResolvedRelation, order_by: Sequence[ast.SortItem], outer: OuterRow | None
    ) -> ResolvedRelation:
        """ORDER BY over a relation's own columns."""
        if not order_by:
            return relation
        analyzer = self.expressions(relation.scope, outer, "ORDER BY", relation.plan)
        visible = relation.scope.visible
        keys = []
        for item in order_by:
            node = item.expression
            position = self.ordinal(node, len(visible), "ORDER BY")
            expr = self.sort_key(node, analyzer) if position is None else visible[position].value
            keys.append(SortKey(expr, item.ascending, item.nulls_first))
        return ResolvedRelation(Sort(relation.plan, tuple(keys)), relation.scope)

    def ordinal(self, node: ast.Expression, count: int, clause: str) -> int | None:
        """The column index to which an int in ORDER BY or GROUP BY, such as 1 but not 1L, refers; None for others."""
        if not isinstance(node, ast.IntegerLiteral) or node.type != "int":
            return None
        if not 1 <= node.value <= count:
            word = clause.replace(" ", "_")
            self.fail(
                f"[{word}_POS_OUT_OF_RANGE] {clause} {node.value} is not in the select list of {count} column(s)",
                node,
            )
        return node.value - 1

    def sort_key(self, node: ast.Expression, analyzer: ExpressionAnalyzer) -> Expr:
        """Analyze a key of ORDER BY; of subqueries, Spark allows only scalar ones that do not read the outer row."""
        node_types = {type(n) for n, _ in walk(node)}
        if node_types & {ast.Exists, ast.InSubquery}:
            self.fail(
                "[UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.UNSUPPORTED_IN_EXISTS_SUBQUERY] IN and EXISTS with a subquery "
                "cannot be sorted by; select them under a name",
                node,
            )
        key = analyzer.expr(node)
        if ast.ScalarSubquery in node_types and any(
            isinstance(e, ScalarSubquery) and e.outer for e in walk_expr(key)
        ):
            self.fail(
                "[UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.UNSUPPORTED_CORRELATED_SCALAR_SUBQUERY] a correlated subquery "
                "cannot be sorted by; select it under a name",
                node,
            )
        return key

    def _limit(self, relation: ResolvedRelation, node: q.Query) -> ResolvedRelation:
        count = None if node.limit is None else self.row_count(node.limit, "LIMIT")
        offset = 0 if node.offset is None else self.row_count(node.offset, "OFFSET")
        if count is None and not offset:
            return relation
        plan = relation.plan if count is None else with_enough_rows(relation.plan, count + offset)
        return ResolvedRelation(Limit(plan, count, offset), relation.scope)

    def row_count(self, node: ast.Expression, word: str) -> int:
        """The constant number of rows that LIMIT and the like take."""
        if any(isinstance(n, ast.Name | ast.Star) for n, _ in walk(node)):
            self.fail(f"[INVALID_LIMIT_LIKE_EXPRESSION.IS_UNFOLDABLE] {word} must be constant", node)
        value = constant_of(self.expressions(Scope((), self.facts), None, word).expr(node))
        if value is None:
            self.fail(f"[INVALID_LIMIT_LIKE_EXPRESSION.IS_UNFOLDABLE] {word} must be constant", node)
        if value.dtype != t.INT or value.value is None:
            self.fail(f"[INVALID_LIMIT_LIKE_EXPRESSION.DATA_TYPE] {word} must be an int", node)
        if value.value < 0:
            self.fail(f"[INVALID_LIMIT_LIKE_EXPRESSION.IS_NEGATIVE] {word} must not be negative", node)
        return int(value.value)

    def analyzed(self, relation: ResolvedRelation) -> Analyzed:
        """Return the plan of the visible columns, with the user's names if these are unique."""
        visible = relation.scope.visible
        names = tuple(c.name for c in visible)
        return Analyzed(output_plan(relation.plan, [c.value for c in visible], unique_names(names)), names)


def analyze(query: q.Query, sql: str, catalog: Catalog, facts: SessionFacts | None = None) -> Analyzed:
    """Analyze a parsed query. Raises SqlError with a position in ``sql``."""
    analyzer = QueryAnalyzer(sql, catalog, facts or SessionFacts())
    try:
        return analyzer.analyzed(analyzer.query(query, None))
    except SqlError:
        raise
    except PlanError as error:
        raise SqlError(str(error), sql) from error
