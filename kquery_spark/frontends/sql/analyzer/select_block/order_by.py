"""ORDER BY of a SELECT: ordinals, ALL, selected columns and columns of the input."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.expr import SortKey
from kquery_spark.frontends.sql.analyzer.expressions.names import find_name
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation, Scope, ScopeColumn
from kquery_spark.frontends.sql.analyzer.select_block.context import SelectContext, SelectItem, is_all
from kquery_spark.frontends.sql.ast import expressions as ast


def sort_keys(
    context: SelectContext,
    order_by: Sequence[ast.SortItem],
    items: Sequence[SelectItem],
    relation: ResolvedRelation,
    selected: Scope,
) -> list[SortKey]:
    """Resolve the sort keys; names of selected columns take precedence, and with DISTINCT only these can be used."""
    if context.node.distinct:
        columns = Scope(tuple(_selected_column(i, relation.scope) for i in items), selected.facts)
        analyzer = context.expressions(columns, "ORDER BY")
    else:
        analyzer = context.expressions(relation.scope, "ORDER BY", allows_aggregates=True, preferred=selected)
    by_all = len(order_by) == 1 and is_all(order_by[0].expression)
    if by_all and find_name(analyzer, ("ALL",), None) is None:
        (item,) = order_by
        return [SortKey(i.expr, item.ascending, item.nulls_first) for i in items]
    keys = []
    for item in order_by:
        index = context.queries.ordinal(item.expression, len(items), "ORDER BY")
        expr = context.queries.sort_key(item.expression, analyzer) if index is None else items[index].expr
        keys.append(SortKey(expr, item.ascending, item.nulls_first))
    return keys


def _selected_column(item: SelectItem, scope: Scope) -> ScopeColumn:
    """A selected column in the scope of ORDER BY; it retains its qualifier if it is selected without an alias."""
    if item.node is None or isinstance(item.node, ast.Name):
        for column in scope.columns:
            if column.value == item.expr and column.name == item.name:
                return column
    return ScopeColumn(item.name, item.expr)
