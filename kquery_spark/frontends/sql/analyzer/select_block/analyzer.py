"""SELECT blocks: FROM, WHERE, the select list, HAVING, QUALIFY and ORDER BY, in the order in which they see names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kquery_spark.expr import Expr
from kquery_spark.frontends.sql.analyzer.grouping import contains
from kquery_spark.frontends.sql.analyzer.outer_row import OuterRow
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation, Scope, ScopeColumn
from kquery_spark.frontends.sql.analyzer.select_block.context import SelectContext, SelectItem, is_aggregate
from kquery_spark.frontends.sql.analyzer.select_block.expressions import BlockExpressions
from kquery_spark.frontends.sql.analyzer.select_block.group_by import aggregate
from kquery_spark.frontends.sql.analyzer.select_block.order_by import sort_keys
from kquery_spark.frontends.sql.analyzer.select_block.output import output_relation
from kquery_spark.frontends.sql.analyzer.select_block.select_list import select_items
from kquery_spark.frontends.sql.analyzer.select_block.time_windows import with_time_window
from kquery_spark.frontends.sql.analyzer.windows import WindowMark, Windows
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast import windows as window_ast
from kquery_spark.logical import Filter

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.queries import QueryAnalyzer


class SelectAnalyzer:
    """Resolves one SELECT."""

    def __init__(self, queries: QueryAnalyzer, node: q.Select, outer: OuterRow | None) -> None:
        self._queries = queries
        self._node = node
        self._context = SelectContext(queries, node, outer)

    def analyze(
        self, order_by: Sequence[ast.SortItem] = (), windows: Sequence[q.NamedWindow] = ()
    ) -> ResolvedRelation:
        """Analyze the block. order_by: the query's sort items, which may read columns that are not selected."""
        node, outer = self._node, self._context.outer
        relation = self._queries.relations.relation(node.relation, outer)
        for view in node.lateral_views:
            relation = self._queries.generators.lateral_view(relation, view, outer)
        named_windows = self._named_windows((*node.windows, *windows))
        self._context = replace(self._context, plans=(relation.plan,), named_windows=named_windows)
        if node.where is not None:
            where = self._context.expressions(relation.scope, "WHERE").condition(node.where, "WHERE")
            relation = replace(relation, plan=Filter(relation.plan, where))
        return self._project(relation, order_by)

    def _project(self, relation: ResolvedRelation, order_by: Sequence[ast.SortItem]) -> ResolvedRelation:
        """Analyze all clauses after WHERE."""
        self._context, relation = with_time_window(self._context, relation, order_by)
        relation, items = select_items(self._context, relation)
        selected = Scope(tuple(ScopeColumn(i.name, i.expr) for i in items), relation.scope.facts)
        having = self._having(relation, selected)
        qualify = self._qualify(relation, items, selected)
        keys = sort_keys(self._context, order_by, items, relation, selected)
        exprs = BlockExpressions(tuple(i.expr for i in items), tuple(k.expr for k in keys), having, qualify)
        plan = relation.plan
        if self._is_aggregated(exprs):
            plan, exprs = aggregate(self._context, relation, items, exprs)
        if exprs.having is not None:
            plan = Filter(plan, exprs.having)
        windows = Windows(self._queries.names)
        exprs = exprs.map(windows.rewrite)
        plan = windows.plan(plan)
        if exprs.qualify is not None:
            plan = Filter(plan, exprs.qualify)
        keys = [replace(k, expr=e) for k, e in zip(keys, exprs.sort_keys, strict=True)]
        return output_relation(self._context, plan, items, exprs.items, keys, order_by)

    def _is_aggregated(self, exprs: BlockExpressions) -> bool:
        node = self._node
        clauses = node.group_by is not None or node.having is not None
        return clauses or any(contains(e, is_aggregate) for e in exprs)

    def _named_windows(self, nodes: Sequence[q.NamedWindow]) -> dict[str, window_ast.WindowSpec]:
        """The windows of the WINDOW clause by name; a window may refer to another one by name."""
        written: dict[str, window_ast.Window] = {}
        for node in nodes:
            if node.name in written:
                self._queries.fail(
                    f"[INVALID_SQL_SYNTAX.REPETITIVE_WINDOW_DEFINITION] {node.name} is defined twice", node
                )
            written[node.name] = node.window
        specs: dict[str, window_ast.WindowSpec] = {}
        for name, window in written.items():
            spec = written.get(window.name) if isinstance(window, window_ast.WindowName) else window
            if not isinstance(spec, window_ast.WindowSpec):
                error = "UNRESOLVED_WINDOW_REFERENCE" if spec is None else "INVALID_WINDOW_REFERENCE"
                self._queries.fail(
                    f"[INVALID_SQL_SYNTAX.{error}] {name} must refer to a window with a specification", window
                )
            specs[name] = spec
        return specs

    def _having(self, relation: ResolvedRelation, selected: Scope) -> Expr | None:
        node = self._node.having
        if node is None:
            return None
        analyzer = self._context.expressions(
            relation.scope, "HAVING", allows_aggregates=True, preferred=selected
        )
        return analyzer.condition(node, "HAVING")

    def _qualify(
        self, relation: ResolvedRelation, items: Sequence[SelectItem], selected: Scope
    ) -> Expr | None:
        node = self._node.qualify
        if node is None:
            return None
        analyzer = self._context.expressions(
            relation.scope, "QUALIFY", allows_windows=True, preferred=selected
        )
        condition = analyzer.condition(node, "QUALIFY")
        if not any(contains(e, _is_window) for e in (condition, *(i.expr for i in items))):
            self._queries.fail(
                "[QUALIFY_REQUIRES_WINDOW_FUNCTION] QUALIFY needs a window function, here or in the select list",
                node,
            )
        return condition


def _is_window(expr: Expr) -> bool:
    return isinstance(expr, WindowMark)
