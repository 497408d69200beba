"""SELECT blocks: from FROM to ORDER BY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import AggregateCall, Column, Expr, Literal, Named, SortKey, columns_of
from kquery_spark.frontends.sql.analyzer.expressions import ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.expressions.names import find_name
from kquery_spark.frontends.sql.analyzer.expressions.output_names import output_name
from kquery_spark.frontends.sql.analyzer.generators import Generated, generator_of
from kquery_spark.frontends.sql.analyzer.grouping import Grouping, GroupingMark, contains
from kquery_spark.frontends.sql.analyzer.grouping_sets import expanded, grouping_sets
from kquery_spark.frontends.sql.analyzer.outer_row import OuterRow
from kquery_spark.frontends.sql.analyzer.scope import Relation, Scope, ScopeColumn
from kquery_spark.frontends.sql.analyzer.windows import WindowMark, Windows
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.logical import Aggregate, Filter, LogicalPlan, Projection, Sort
from kquery_spark.logical.subqueries import ScalarSubquery

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.queries import QueryAnalyzer


@dataclass(frozen=True)
class Item:
    """One column of the select list."""

    name: str
    expr: Expr
    node: ast.Expression | None


class SelectAnalyzer:
    """Resolves one SELECT; ``order_by`` is the query's, which may read columns that are not selected."""

    def __init__(self, queries: QueryAnalyzer, node: q.Select, outer: OuterRow | None) -> None:
        self._queries = queries
        self._node = node
        self._outer = outer
        self._names = queries.names
        self._plans: tuple[LogicalPlan, ...] = ()

    def analyze(
        self, order_by: Sequence[ast.SortItem] = (), windows: Sequence[q.NamedWindow] = ()
    ) -> Relation:
        """The plan and what its columns are called."""
        node = self._node
        relation = self._queries.relations.relation(node.relation, self._outer)
        for view in node.lateral_views:
            relation = self._queries.generators.lateral_view(relation, view, self._outer)
        self._plans = (relation.plan,)
        named = self._named_windows((*node.windows, *windows))
        if node.where is not None:
            where = self._expressions(relation.scope, "WHERE", named).condition(node.where, "WHERE")
            relation = replace(relation, plan=Filter(relation.plan, where))
        return self.project(relation, order_by, named)

    def project(
        self, relation: Relation, order_by: Sequence[ast.SortItem], named: Mapping[str, ast.WindowSpec]
    ) -> Relation:
        """Everything after WHERE."""
        node = self._node
        relation, items = self._items(relation, named)
        shown = Scope(tuple(ScopeColumn(i.name, i.expr) for i in items), relation.scope.facts)
        having = self._having(relation, shown, named)
        qualify = self._qualify(relation, items, shown, named)
        keys = self._order(order_by, items, relation, shown, named)
        sort_exprs = [k.expr for k in keys]
        every = [i.expr for i in items] + sort_exprs + [e for e in (having, qualify) if e is not None]
        plan = relation.plan
        aggregated = node.group_by is not None or any(contains(e, _is_aggregate) for e in every)
        if not aggregated and node.having is not None:
            aggregated = True
        if aggregated:
            plan, every = self._aggregate(relation, items, every, named)
        having = every[len(items) + len(keys)] if having is not None else None
        if having is not None:
            plan = Filter(plan, having)
        windows = Windows(self._names)
        every = [windows.rewrite(e) for e in every]
        plan = windows.plan(plan)
        if qualify is not None:
            plan = Filter(plan, every[-1])
        exprs = every[: len(items)]
        sort_keys = [replace(k, expr=e) for k, e in zip(keys, every[len(items) :], strict=False)]
        return self._finish(plan, items, exprs, sort_keys, order_by)

    # --- the select list -----------------------------------------------------------------------------

    def _expressions(
        self, scope: Scope, place: str, named: Mapping[str, ast.WindowSpec] | None = None, **flags: object
    ) -> ExpressionAnalyzer:
        analyzer = self._queries.expressions(scope, self._outer, place, *self._plans)
        return replace(analyzer, named_windows=named or {}, **flags)  # type: ignore[arg-type]

    def _items(self, relation: Relation, named: Mapping[str, ast.WindowSpec]) -> tuple[Relation, list[Item]]:
        aliases: dict[str, Expr | None] = {}
        items: list[Item] = []
        fold = relation.scope.facts.fold
        for node in self._node.items:
            if isinstance(node, ast.Star):
                items += self._star(node, relation)
                continue
            generated = generator_of(node)
            if generated is not None:
                relation, made = self._generate(relation, generated, items)
                items += made
                continue
            analyzer = self._expressions(
                relation.scope,
                "the select list",
                named,
                allows_aggregates=True,
                allows_windows=True,
                aliases=aliases,
            )
            expr = analyzer.expr(node)
            items.append(Item(output_name(node, analyzer), expr, node))
            if isinstance(node, ast.Aliased):
                key = fold(node.alias)
                aliases[key] = None if key in aliases else expr
        return relation, items

    def _generate(
        self, relation: Relation, generated: Generated, before: list[Item]
    ) -> tuple[Relation, list[Item]]:
        relation, columns = self._queries.generators.generate(relation, generated, self._outer)
        return relation, [Item(c.name, c.value, None) for c in columns]

    def _star(self, node: ast.Star, relation: Relation) -> list[Item]:
        columns = relation.scope.star(node.qualifier)
        if not columns and node.qualifier:
            return self._struct_star(node, relation)
        fold = relation.scope.facts.fold
        for parts in node.excluded:
            if not any(_named(c, parts, fold) for c in columns):
                self._queries.fail(
                    f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] EXCEPT names {'.'.join(parts)}; "
                    f"the columns are {relation.scope.candidates()}",
                    node,
                )
        if node.pos >= 0:
            self._check_excluded(node, columns)
        kept = [c for c in columns if not any(_named(c, parts, fold) for parts in node.excluded)]
        return [Item(c.name, c.value, None) for c in kept]

    def _check_excluded(self, node: ast.Star, columns: Sequence[ScopeColumn]) -> None:
        """In SQL each name of EXCEPT means one column, and each another; drop() of the API is not as strict."""
        fold = self._queries.facts.fold
        meant = []
        for parts in node.excluded:
            hits = list(dict.fromkeys(c.value for c in columns if _named(c, parts, fold)))
            if len(hits) > 1:
                self._queries.fail(f"[AMBIGUOUS_REFERENCE] Reference {'.'.join(parts)} is ambiguous", node)
            meant += hits
        if len(set(meant)) < len(meant):
            self._queries.fail("[EXCEPT_OVERLAPPING_COLUMNS] EXCEPT names a column twice", node)

    def _struct_star(self, node: ast.Star, relation: Relation) -> list[Item]:
        analyzer = self._expressions(relation.scope, "the select list")
        found = relation.scope.find(node.qualifier, self._queries.sql, node.pos)
        if found is None or node.excluded:
            self._queries.fail(
                f"[CANNOT_RESOLVE_STAR_EXPAND] there is nothing called {'.'.join(node.qualifier)} to expand; "
                f"the columns are {relation.scope.candidates()}",
                node,
            )
        value = found.value
        with analyzer.at(node):
            for name in found.fields:
                value = analyzer.field(value, name)
            if not pa.types.is_struct(value.dtype):
                raise PlanError("[CANNOT_RESOLVE_STAR_EXPAND] only structs can be expanded")
            return [Item(f.name, analyzer.field(value, f.name), None) for f in value.dtype]

    def _named_windows(self, nodes: Sequence[q.NamedWindow]) -> dict[str, ast.WindowSpec]:
        written: dict[str, ast.Window] = {}
        for node in nodes:
            if node.name in written:
                self._queries.fail(
                    f"[INVALID_SQL_SYNTAX.REPETITIVE_WINDOW_DEFINITION] {node.name} is defined twice", node
                )
            written[node.name] = node.window
        specs: dict[str, ast.WindowSpec] = {}
        for name, window in written.items():
            meant = written.get(window.name) if isinstance(window, ast.WindowName) else window
            if not isinstance(meant, ast.WindowSpec):
                error = "UNRESOLVED_WINDOW_REFERENCE" if meant is None else "INVALID_WINDOW_REFERENCE"
                self._queries.fail(f"[INVALID_SQL_SYNTAX.{error}] {name} stands for no window's text", window)
            specs[name] = meant
        return specs

    # --- filters and keys ----------------------------------------------------------------------------

    def _having(self, relation: Relation, shown: Scope, named: Mapping[str, ast.WindowSpec]) -> Expr | None:
        if self._node.having is None:
            return None
        analyzer = self._expressions(relation.scope, "HAVING", named, allows_aggregates=True, preferred=shown)
        return analyzer.condition(self._node.having, "HAVING")

    def _qualify(
        self,
        relation: Relation,
        items: Sequence[Item],
        shown: Scope,
        named: Mapping[str, ast.WindowSpec],
    ) -> Expr | None:
        node = self._node.qualify
        if node is None:
            return None
        analyzer = self._expressions(relation.scope, "QUALIFY", named, allows_windows=True, preferred=shown)
        made = analyzer.condition(node, "QUALIFY")
        if not any(contains(e, _is_window) for e in (made, *(i.expr for i in items))):
            self._queries.fail(
                "[QUALIFY_REQUIRES_WINDOW_FUNCTION] there is no window function, neither here nor in the select list",
                node,
            )
        return made

    def _order(
        self,
        order_by: Sequence[ast.SortItem],
        items: Sequence[Item],
        relation: Relation,
        shown: Scope,
        named: Mapping[str, ast.WindowSpec],
    ) -> list[SortKey]:
        if self._node.distinct:
            shown = Scope(tuple(self._selected(i, relation.scope) for i in items), shown.facts)
            analyzer = self._expressions(shown, "ORDER BY", named)
        else:
            analyzer = self._expressions(
                relation.scope, "ORDER BY", named, allows_aggregates=True, preferred=shown
            )
        by_all = len(order_by) == 1 and _is_all(order_by[0].expression)
        if by_all and find_name(analyzer, ("ALL",), None) is None:
            one = order_by[0]
            return [SortKey(i.expr, one.ascending, one.nulls_first) for i in items]
        keys = []
        for item in order_by:
            index = self.ordinal(item.expression, len(items), "ORDER BY")
            expr = self._queries.sort_key(item.expression, analyzer) if index is None else items[index].expr
            keys.append(SortKey(expr, item.ascending, item.nulls_first))
        return keys

    @staticmethod
    def _selected(item: Item, scope: Scope) -> ScopeColumn:
        """A selected column with the qualifier that it still has when it is selected as it is."""
        if item.node is None or isinstance(item.node, ast.Name):
            for column in scope.columns:
                if column.value == item.expr and column.name == item.name:
                    return column
        return ScopeColumn(item.name, item.expr)

    def ordinal(self, node: ast.Expression, count: int, place: str) -> int | None:
        """The column an integer in ORDER BY or GROUP BY means; None for other expressions."""
        if not isinstance(node, ast.IntegerLiteral):
            return None
        if not 1 <= node.value <= count:
            word = place.replace(" ", "_")
            self._queries.fail(
                f"[{word}_POS_OUT_OF_RANGE] {place} {node.value} is not in the select list of {count} column(s)",
                node,
            )
        return node.value - 1

    # --- grouping ------------------------------------------------------------------------------------

    def _aggregate(
        self,
        relation: Relation,
        items: Sequence[Item],
        every: list[Expr],
        named: Mapping[str, ast.WindowSpec],
    ) -> tuple[LogicalPlan, list[Expr]]:
        grouping = Grouping(self._names, grouped=bool(self._node.group_by and self._node.group_by.elements))
        plan = relation.plan
        group_by = self._node.group_by
        if group_by is not None:
            resolve = self._group_resolver(relation, items, named)
            if len(group_by.elements) == 1 and _is_all(group_by.elements[0]):
                found = relation.scope.find(("ALL",), self._queries.sql, None)
                if found is None:
                    for item in items:
                        if not contains(item.expr, _is_aggregate) and not isinstance(item.expr, Literal):
                            grouping.add_key(item.expr)
                    group_by = None
        if group_by is not None:
            sets = grouping_sets(group_by, resolve)
            if sets is None:
                for element in group_by.elements:
                    assert isinstance(element, ast.Expression)
                    expr = resolve(element)
                    if not isinstance(expr, Literal):
                        grouping.add_key(expr)
            else:
                plan = expanded(plan, sets, grouping, self._names)
        at = [i.node for i in items]
        done = []
        for i, expr in enumerate(every):
            if i >= len(at):
                done.append(self._above(grouping, expr, relation))
                continue
            with self._expressions(relation.scope, "").at(at[i] or self._node):
                made = grouping.rewrite(expr)
                if contains(made, _is_correlated):
                    raise PlanError(
                        "[SCALAR_SUBQUERY_IS_IN_GROUP_BY_OR_AGGREGATE_FUNCTION] a correlated subquery as a value must be "
                        "one of the keys of GROUP BY or inside an aggregate function"
                    )
                done.append(made)
        return grouping.plan(plan), done

    def _above(self, grouping: Grouping, expr: Expr, relation: Relation) -> Expr:
        """A condition or sort key over the grouped rows, where other columns are simply not there."""
        try:
            return grouping.rewrite(expr)
        except PlanError as error:
            message = str(error).replace("MISSING_AGGREGATION", "UNRESOLVED_COLUMN.WITH_SUGGESTION")
            self._queries.fail(
                message.replace("MISSING_GROUP_BY", "UNRESOLVED_COLUMN.WITH_SUGGESTION"), self._node
            )

    def _group_resolver(self, relation: Relation, items: Sequence[Item], named: Mapping[str, ast.WindowSpec]):  # type: ignore[no-untyped-def]
        fold = relation.scope.facts.fold
        aliases: dict[str, Expr | None] = {}
        for item in items:
            key = fold(item.name)
            if isinstance(item.node, ast.Aliased):
                aliases[key] = None if key in aliases and aliases[key] != item.expr else item.expr
        analyzer = self._expressions(
            relation.scope, "GROUP BY", named, aliases=aliases, allows_aggregates=True
        )

        def resolve(node: ast.Expression) -> Expr:
            index = self.ordinal(node, len(items), "GROUP BY")
            expr = analyzer.expr(node) if index is None else items[index].expr
            if contains(expr, _is_aggregate):
                error = "GROUP_BY_AGGREGATE" if index is None else "GROUP_BY_POS_AGGREGATE"
                self._queries.fail(f"[{error}] an aggregate function cannot be a key of GROUP BY", node)
            if contains(expr, _is_correlated):
                raise Unsupported("A correlated subquery as a key of GROUP BY is not supported.")
            return expr

        return resolve

    # --- the result ----------------------------------------------------------------------------------

    def _finish(
        self,
        plan: LogicalPlan,
        items: Sequence[Item],
        exprs: Sequence[Expr],
        keys: Sequence[SortKey],
        order_by: Sequence[ast.SortItem],
    ) -> Relation:
        outputs: list[Named] = []
        taken: set[str] = set()
        for item, expr in zip(items, exprs, strict=True):
            reuse = isinstance(expr, Column) and expr.name not in taken
            name = expr.name if reuse and isinstance(expr, Column) else self._names.fresh(item.name)
            taken.add(name)
            outputs.append(Named(expr, name))
        if self._node.distinct:
            result: LogicalPlan = _distinct(Projection(plan, tuple(outputs)))
        else:
            result = plan
        by_expr = {n.expr: n.column for n in reversed(outputs)}
        produced = {n.name for n in outputs}
        hidden: list[Named] = []
        sort_keys: list[SortKey] = []
        for key, written in zip(
            keys, order_by if len(order_by) == len(keys) else [None] * len(keys), strict=True
        ):
            over_output = _replaced(key.expr, by_expr)
            if columns_of(over_output) <= produced and over_output_is(over_output, produced, by_expr):
                sort_keys.append(replace(key, expr=over_output))
                continue
            if self._node.distinct:
                self._queries.fail(
                    "[UNRESOLVED_COLUMN.WITH_SUGGESTION] ORDER BY after DISTINCT can only use selected columns",
                    written,
                )
            extra = Named(key.expr, self._names.fresh("sort_key"))
            hidden.append(extra)
            sort_keys.append(replace(key, expr=extra.column))
        if not self._node.distinct and not _is_output(outputs, hidden, plan):
            result = Projection(plan, (*outputs, *hidden))
        if sort_keys:
            result = Sort(result, tuple(sort_keys))
        if hidden:
            result = Projection(result, tuple(Named(result.column(n.name), n.name) for n in outputs))
        columns = tuple(
            ScopeColumn(i.name, result.column(n.name)) for i, n in zip(items, outputs, strict=True)
        )
        return Relation(result, Scope(columns, self._queries.facts))


def over_output_is(expr: Expr, produced: set[str], by_expr: Mapping[Expr, Expr]) -> bool:
    """Whether every column of the expression is the output's own, not an input column of the same name."""
    if isinstance(expr, Column):
        return any(c == expr for c in by_expr.values())
    return all(over_output_is(c, produced, by_expr) for c in expr.children)


def _replaced(expr: Expr, values: Mapping[Expr, Expr]) -> Expr:
    """Selected expressions inside ``expr`` become the columns they were selected as."""
    if isinstance(expr, Literal):
        return expr
    found = values.get(expr)
    if found is not None:
        return found
    if not expr.children:
        return expr
    return expr.with_children([_replaced(c, values) for c in expr.children])


def _is_output(outputs: Sequence[Named], hidden: Sequence[Named], plan: LogicalPlan) -> bool:
    """Whether the select list is just what GROUP BY gives, so that nothing remains to be projected."""
    if hidden or not isinstance(plan, Aggregate):
        return False
    return [n.name for n in outputs] == plan.schema.names and all(n.expr == n.column for n in outputs)


def _distinct(plan: LogicalPlan) -> LogicalPlan:
    return Aggregate(plan, tuple(Named(plan.column(n), n) for n in plan.schema.names), ())


def _is_aggregate(expr: Expr) -> bool:
    return isinstance(expr, AggregateCall | GroupingMark)


def _is_window(expr: Expr) -> bool:
    return isinstance(expr, WindowMark)


def _is_correlated(expr: Expr) -> bool:
    return isinstance(expr, ScalarSubquery) and bool(expr.outer)


def _is_all(node: object) -> bool:
    return isinstance(node, ast.Name) and len(node.parts) == 1 and node.parts[0].upper() == "ALL"


def _named(column: ScopeColumn, parts: tuple[str, ...], fold) -> bool:  # type: ignore[no-untyped-def]
    path = (*column.qualifier, column.name)[-len(parts) :]
    return tuple(map(fold, path)) == tuple(map(fold, parts))
