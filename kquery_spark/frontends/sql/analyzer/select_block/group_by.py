"""GROUP BY and aggregates: the keys, the Aggregate node, and the expressions above it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Expr
from kquery_spark.frontends.sql.analyzer.grouping import Grouping, contains
from kquery_spark.frontends.sql.analyzer.grouping_sets import expanded, grouping_sets
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation
from kquery_spark.frontends.sql.analyzer.select_block.context import (
    SelectContext,
    SelectItem,
    is_aggregate,
    is_all,
    is_correlated,
)
from kquery_spark.frontends.sql.analyzer.select_block.expressions import BlockExpressions
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.logical import LogicalPlan


def aggregate(
    context: SelectContext, relation: ResolvedRelation, items: Sequence[SelectItem], exprs: BlockExpressions
) -> tuple[LogicalPlan, BlockExpressions]:
    """Build the Aggregate over the relation, and rewrite the block's expressions to read its output."""
    group_by = context.node.group_by
    grouping = Grouping(context.queries.names, grouped=bool(group_by and group_by.elements))
    child = _add_keys(context, relation, items, grouping)
    selected = tuple(
        _over_groups(context, grouping, relation, item, expr)
        for item, expr in zip(items, exprs.items, strict=True)
    )
    grouped = BlockExpressions(selected, exprs.sort_keys, exprs.having, exprs.qualify).map_others(
        lambda expr: _condition_over_groups(context, grouping, expr)
    )
    return grouping.plan(child, context.session), grouped


def _add_keys(
    context: SelectContext, relation: ResolvedRelation, items: Sequence[SelectItem], grouping: Grouping
) -> LogicalPlan:
    """Add the keys of GROUP BY; returns the child of the Aggregate, which is an Expand if there are grouping sets."""
    group_by = context.node.group_by
    if group_by is None:
        return relation.plan
    by_all = len(group_by.elements) == 1 and is_all(group_by.elements[0])
    if by_all and relation.scope.find(("ALL",), context.queries.sql, None) is None:
        grouping.add_keys([item.expr for item in items if not contains(item.expr, is_aggregate)])
        return relation.plan
    resolve = _key_resolver(context, relation, items)
    keys_and_sets = grouping_sets(group_by, resolve)
    if keys_and_sets is not None:
        return expanded(relation.plan, *keys_and_sets, grouping, context.queries.names)
    keys = []
    for element in group_by.elements:
        assert isinstance(element, ast.Expression)
        keys.append(resolve(element))
    grouping.add_keys(keys)
    return relation.plan


def _key_resolver(
    context: SelectContext, relation: ResolvedRelation, items: Sequence[SelectItem]
) -> Callable[[ast.Expression], Expr]:
    fold = relation.scope.facts.fold
    aliases: dict[str, Expr | None] = {}
    for item in items:
        key = fold(item.name)
        if isinstance(item.node, ast.Aliased):
            aliases[key] = None if key in aliases and aliases[key] != item.expr else item.expr
    analyzer = context.expressions(relation.scope, "GROUP BY", aliases=aliases, allows_aggregates=True)

    def resolve(node: ast.Expression) -> Expr:
        index = context.queries.ordinal(node, len(items), "GROUP BY")
        expr = analyzer.expr(node) if index is None else items[index].expr
        if contains(expr, is_aggregate):
            error = "GROUP_BY_AGGREGATE" if index is None else "GROUP_BY_POS_AGGREGATE"
            context.queries.fail(f"[{error}] an aggregate function cannot be a key of GROUP BY", node)
        if contains(expr, is_correlated):
            raise Unsupported("a correlated subquery as a key of GROUP BY is not supported")
        return expr

    return resolve


def _over_groups(
    context: SelectContext, grouping: Grouping, relation: ResolvedRelation, item: SelectItem, expr: Expr
) -> Expr:
    """Rewrite a select item to read the grouped rows."""
    with context.expressions(relation.scope, "").at(item.node or context.node):
        rewritten = grouping.rewrite(expr)
        if contains(rewritten, is_correlated):
            raise PlanError(
                "[SCALAR_SUBQUERY_IS_IN_GROUP_BY_OR_AGGREGATE_FUNCTION] a correlated subquery as a value must be "
                "one of the keys of GROUP BY or inside an aggregate function"
            )
        return rewritten


def _condition_over_groups(context: SelectContext, grouping: Grouping, expr: Expr) -> Expr:
    """Rewrite a condition or sort key to read the grouped rows, in which other columns do not exist."""
    try:
        return grouping.rewrite(expr)
    except PlanError as error:
        message = str(error).replace("MISSING_AGGREGATION", "UNRESOLVED_COLUMN.WITH_SUGGESTION")
        context.queries.fail(
            message.replace("MISSING_GROUP_BY", "UNRESOLVED_COLUMN.WITH_SUGGESTION"), context.node
        )
