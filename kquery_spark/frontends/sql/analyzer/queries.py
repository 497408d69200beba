"""Whole queries: WITH, set operations, ORDER BY over them, LIMIT and OFFSET."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

import pyarrow as pa

from kquery_spark.errors import PlanError, SqlError
from kquery_spark.expr import Cast, Column, Expr, Named, SortKey
from kquery_spark.expr import walk as walk_expr
from kquery_spark.frontends.sql.analyzer.catalog import Analyzed, Catalog, SessionFacts
from kquery_spark.frontends.sql.analyzer.constants import constant_of
from kquery_spark.frontends.sql.analyzer.expressions import ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.generators import GeneratorAnalyzer
from kquery_spark.frontends.sql.analyzer.outer_row import OuterRow
from kquery_spark.frontends.sql.analyzer.relations import RelationAnalyzer
from kquery_spark.frontends.sql.analyzer.scope import Names, Relation, Scope, ScopeColumn
from kquery_spark.frontends.sql.analyzer.select import SelectAnalyzer
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.frontends.sql.ast.node import Node, walk
from kquery_spark.logical import Aggregate, Limit, LogicalPlan, Projection, SetOperation, Sort, Union
from kquery_spark.logical.set_operation import SetKind
from kquery_spark.logical.subqueries import ScalarSubquery
from kquery_spark.types import names as t

_Env = Mapping[str, tuple[q.CommonTable, "_Env"]]


class QueryAnalyzer:
    """Everything that one query's analysis shares."""

    def __init__(self, sql: str, catalog: Catalog, facts: SessionFacts) -> None:
        self.sql = sql
        self.catalog = catalog
        self.facts = facts
        self.names = Names()
        self.relations = RelationAnalyzer(self)
        self.generators = GeneratorAnalyzer(self)
        self._ctes: _Env = {}

    def fail(self, message: str, node: Node | None = None) -> NoReturn:
        """Raise at a node."""
        raise SqlError(message, self.sql, None if node is None or node.pos < 0 else node.pos)

    def expressions(
        self, scope: Scope, outer: OuterRow | None, clause: str, *plans: LogicalPlan
    ) -> ExpressionAnalyzer:
        """An analyzer of expressions in a clause, over the columns of some plans."""
        return ExpressionAnalyzer(
            self.sql, self.facts, self.names, scope, self.query, outer, clause=clause, plans=plans
        )

    def common_table(self, name: str) -> Relation | None:
        """A table of WITH; resolved anew at each use, so that its columns get names of their own."""
        found = self._ctes.get(self.facts.fold(name))
        if found is None:
            return None
        table, env = found
        saved, self._ctes = self._ctes, env
        try:
            relation = self.query(table.query, None)
        finally:
            self._ctes = saved
        if table.columns and len(table.columns) != len(relation.scope.visible):
            self.fail(
                f"[ASSIGNMENT_ARITY_MISMATCH] {table.name} has {len(relation.scope.visible)} column(s), "
                f"not {len(table.columns)}",
                table,
            )
        return Relation(relation.plan, relation.scope.renamed((table.name,), table.columns or None))

    def query(self, node: q.Query, outer: OuterRow | None) -> Relation:
        """A query with everything around its body."""
        saved = self._ctes
        seen: set[str] = set()
        for table in node.ctes:
            key = self.facts.fold(table.name)
            if key in seen:
                self.fail(f"[DUPLICATED_CTE_NAMES] {table.name} is defined twice", table)
            seen.add(key)
            self._ctes = {**self._ctes, key: (table, self._ctes)}
        try:
            if isinstance(node.body, q.Select):
                relation = SelectAnalyzer(self, node.body, outer).analyze(node.order_by, node.windows)
            else:
                relation = self.sort(self._body(node.body, outer), node.order_by, outer)
            return self._limit(relation, node)
        finally:
            self._ctes = saved

    def _body(self, node: q.QueryBody, outer: OuterRow | None) -> Relation:
        match node:
            case q.Select():
                return SelectAnalyzer(self, node, outer).analyze()
            case q.Query():
                return self.query(node, outer)
            case r.Values():
                relation = self.relations.relation(node, outer)
                return Relation(relation.plan, relation.scope.renamed(()))
        left, right = self._body(node.left, outer), self._body(node.right, outer)
        return self.set_operation(left, right, node.op.upper(), node.all, node)

    def set_operation(
        self, left: Relation, right: Relation, op: str, keep_all: bool, node: Node | None
    ) -> Relation:
        """UNION, INTERSECT or EXCEPT of two relations, their columns widened to common types."""
        a, b = left.scope.visible, right.scope.visible
        if len(a) != len(b):
            self.fail(
                f"[NUM_COLUMNS_MISMATCH] {op} needs as many columns on both sides: "
                f"the first has {len(a)}, the second {len(b)}",
                node,
            )
        convert = self.expressions(left.scope, None, op).convert
        pairs = []
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            try:
                pairs.append(convert.common([x.value, y.value], op))
            except PlanError:
                self.fail(
                    f"[INCOMPATIBLE_COLUMN_TYPE] column {i + 1} of {op} is {t.spark_name(x.value.dtype)} on one side "
                    f"and {t.spark_name(y.value.dtype)} on the other",
                    node,
                )
        first = self._reshaped(left, [p[0] for p in pairs])
        second = self._reshaped(right, [p[1] for p in pairs])
        plan: LogicalPlan
        if op == "UNION":
            plan = Union((first, second))
        else:
            kind = SetKind.INTERSECT if op == "INTERSECT" else SetKind.EXCEPT
            plan = SetOperation(first, second, kind, keep_all)
        if op == "UNION" and not keep_all:
            plan = Aggregate(plan, tuple(Named(plan.column(n), n) for n in plan.schema.names), ())
        if op != "UNION":
            plan = self._as_nullable_as(plan, [c.value.dtype for c in a])
        columns = tuple(
            ScopeColumn(c.name, plan.column(n)) for c, n in zip(a, plan.schema.names, strict=True)
        )
        return Relation(plan, Scope(columns, self.facts))

    def _as_nullable_as(self, plan: LogicalPlan, wanted: Sequence[pa.DataType]) -> LogicalPlan:
        """The rows of the left side alone: what holds no NULL inside on it holds none in the result."""
        exprs = []
        for name, dtype in zip(plan.schema.names, wanted, strict=True):
            column = plan.column(name)
            if column.dtype == dtype or column.dtype != t.nullable_within(dtype):
                exprs.append(Named(column, name))
            else:
                exprs.append(Named(Cast(column, dtype), self.names.fresh(name)))
        changed = any(isinstance(e.expr, Cast) for e in exprs)
        return Projection(plan, tuple(exprs)) if changed else plan

    def _reshaped(self, relation: Relation, values: Sequence[Expr]) -> LogicalPlan:
        plan = relation.plan
        if [v.name if isinstance(v, Column) else None for v in values] == plan.schema.names:
            return plan
        taken: set[str] = set()
        exprs = []
        for column, value in zip(relation.scope.visible, values, strict=True):
            plain = isinstance(value, Column) and value.name not in taken
            name = value.name if plain and isinstance(value, Column) else self.names.fresh(column.name)
            taken.add(name)
            exprs.append(Named(value, name))
        return Projection(plan, tuple(exprs))

    def sort(self, relation: Relation, order_by: Sequence[ast.SortItem], outer: OuterRow | None) -> Relation:
        """ORDER BY over a relation's own columns."""
        if not order_by:
            return relation
        analyzer = self.expressions(relation.scope, outer, "ORDER BY", relation.plan)
        visible = relation.scope.visible
        keys = []
        for item in order_by:
            node = item.expression
            if isinstance(node, ast.IntegerLiteral):
                if not 1 <= node.value <= len(visible):
                    self.fail(
                        f"[ORDER_BY_POS_OUT_OF_RANGE] ORDER BY {node.value} is not in the select list of "
                        f"{len(visible)} column(s)",
                        node,
                    )
                expr = visible[node.value - 1].value
            else:
                expr = self.sort_key(node, analyzer)
            keys.append(SortKey(expr, item.ascending, item.nulls_first))
        return Relation(Sort(relation.plan, tuple(keys)), relation.scope)

    def sort_key(self, node: ast.Expression, analyzer: ExpressionAnalyzer) -> Expr:
        """What ORDER BY sorts by; of subqueries Spark takes values that read nothing of the row."""
        found = {type(n) for n, _ in walk(node)}
        if found & {ast.Exists, ast.InSubquery}:
            self.fail(
                "[UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.UNSUPPORTED_IN_EXISTS_SUBQUERY] IN and EXISTS with a subquery "
                "cannot be sorted by; select them under a name",
                node,
            )
        made = analyzer.expr(node)
        if ast.ScalarSubquery in found and any(
            isinstance(e, ScalarSubquery) and e.outer for e in walk_expr(made)
        ):
            self.fail(
                "[UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.UNSUPPORTED_CORRELATED_SCALAR_SUBQUERY] a correlated subquery "
                "cannot be sorted by; select it under a name",
                node,
            )
        return made

    def _limit(self, relation: Relation, node: q.Query) -> Relation:
        count = None if node.limit is None else self._row_count(node.limit, "LIMIT")
        offset = 0 if node.offset is None else self._row_count(node.offset, "OFFSET")
        if count is None and not offset:
            return relation
        return Relation(Limit(relation.plan, count, offset), relation.scope)

    def _row_count(self, node: ast.Expression, word: str) -> int:
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

    def analyzed(self, relation: Relation) -> Analyzed:
        """The plan of just the visible columns, called as the user sees them where those names are unique."""
        visible = relation.scope.visible
        names = tuple(c.name for c in visible)
        if len(set(names)) == len(names):
            wanted = list(names)
        else:
            wanted, taken = [], set(names)
            for i, name in enumerate(names):
                first = names.index(name) == i
                count = 2
                new = name if first else f"{name}_{count}"
                while not first and new in taken:
                    count += 1
                    new = f"{name}_{count}"
                taken.add(new)
                wanted.append(new)
        plan = relation.plan
        values = [c.value for c in visible]
        if [v.name if isinstance(v, Column) else None for v in values] == plan.schema.names == wanted:
            return Analyzed(plan, names)
        if isinstance(plan, Aggregate) and values == [plan.column(n) for n in plan.schema.names]:
            named = [Named(n.expr, w) for n, w in zip((*plan.keys, *plan.aggregates), wanted, strict=True)]
            count = len(plan.keys)
            return Analyzed(Aggregate(plan.child, tuple(named[:count]), tuple(named[count:])), names)
        if isinstance(plan, Projection) and all(isinstance(v, Column) for v in values):
            by_name = {e.name: e.expr for e in plan.exprs}
            exprs = tuple(
                Named(by_name[v.name], w)
                for v, w in zip(values, wanted, strict=True)
                if isinstance(v, Column)
            )
            return Analyzed(Projection(plan.child, exprs), names)
        return Analyzed(
            Projection(plan, tuple(Named(v, w) for v, w in zip(values, wanted, strict=True))), names
        )


def analyze(query: q.Query, sql: str, catalog: Catalog, facts: SessionFacts | None = None) -> Analyzed:
    """The logical plan of a parsed query. Raises SqlError with a position in ``sql``."""
    analyzer = QueryAnalyzer(sql, catalog, facts or SessionFacts())
    try:
        return analyzer.analyzed(analyzer.query(query, None))
    except SqlError:
        raise
    except PlanError as error:
        raise SqlError(str(error), sql) from error
