"""The output of a SELECT: its projection, DISTINCT, and the sort with keys that are not selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kquery_spark.expr import Column, Expr, Literal, Named, SortKey, columns_of
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation, Scope, ScopeColumn
from kquery_spark.frontends.sql.analyzer.select_block.context import SelectContext, SelectItem
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.unique_names import UniqueNames
from kquery_spark.logical import Aggregate, LogicalPlan, Projection, Sort
from kquery_spark.logical.aggregate import distinct_rows


def output_relation(
    context: SelectContext,
    plan: LogicalPlan,
    items: Sequence[SelectItem],
    exprs: Sequence[Expr],
    keys: Sequence[SortKey],
    order_by: Sequence[ast.SortItem],
) -> ResolvedRelation:
    """Project the selected columns and sort; sort keys that are not selected are added as columns and removed afterwards."""
    distinct = context.node.distinct
    outputs = _named_outputs(context.queries.names, items, exprs)
    over_output, hidden = _keys_over_output(context, outputs, keys, order_by)
    if distinct:
        plan = distinct_rows(Projection(plan, tuple(outputs)))
    elif hidden or not _is_aggregate_output(outputs, plan):
        plan = Projection(plan, (*outputs, *hidden))
    if over_output:
        plan = Sort(plan, tuple(over_output))
    if hidden:
        plan = Projection(plan, tuple(Named(plan.column(n.name), n.name) for n in outputs))
    columns = tuple(ScopeColumn(i.name, plan.column(n.name)) for i, n in zip(items, outputs, strict=True))
    return ResolvedRelation(plan, Scope(columns, context.queries.facts))


def _named_outputs(names: UniqueNames, items: Sequence[SelectItem], exprs: Sequence[Expr]) -> list[Named]:
    """The select list with unique names; a column retains its name if that is unique."""
    outputs: list[Named] = []
    used_names: set[str] = set()
    for item, expr in zip(items, exprs, strict=True):
        keeps_name = isinstance(expr, Column) and expr.name not in used_names
        name = expr.name if keeps_name and isinstance(expr, Column) else names.fresh(item.name)
        used_names.add(name)
        outputs.append(Named(expr, name))
    return outputs


def _keys_over_output(
    context: SelectContext,
    outputs: Sequence[Named],
    keys: Sequence[SortKey],
    order_by: Sequence[ast.SortItem],
) -> tuple[list[SortKey], list[Named]]:
    """Rewrite the sort keys to read the output's columns; returns them with the columns to add for keys not selected."""
    column_of: Mapping[Expr, Expr] = {n.expr: n.column for n in reversed(outputs)}
    output_columns = frozenset(column_of.values())
    output_names = {n.name for n in outputs}
    over_output: list[SortKey] = []
    hidden: list[Named] = []
    for index, key in enumerate(keys):
        expr = _with_output_columns(key.expr, column_of)
        if columns_of(expr) <= output_names and _reads_only(expr, output_columns):
            over_output.append(replace(key, expr=expr))
            continue
        if context.node.distinct:
            context.queries.fail(
                "[UNRESOLVED_COLUMN.WITH_SUGGESTION] ORDER BY after DISTINCT can only use selected columns",
                order_by[index] if len(order_by) == len(keys) else None,
            )
        column = Named(key.expr, context.queries.names.fresh("sort_key"))
        hidden.append(column)
        over_output.append(replace(key, expr=column.column))
    return over_output, hidden


def _reads_only(expr: Expr, columns: frozenset[Expr]) -> bool:
    """Return whether the expression reads only these columns, not input columns with the same names."""
    if isinstance(expr, Column):
        return expr in columns
    return all(_reads_only(child, columns) for child in expr.children)


def _with_output_columns(expr: Expr, column_of: Mapping[Expr, Expr]) -> Expr:
    """Replace selected expressions in an expression by their output columns."""
    if isinstance(expr, Literal):
        return expr
    column = column_of.get(expr)
    if column is not None:
        return column
    if not expr.children:
        return expr
    return expr.with_children([_with_output_columns(child, column_of) for child in expr.children])


def _is_aggregate_output(outputs: Sequence[Named], plan: LogicalPlan) -> bool:
    """Return whether the select list equals the output of the Aggregate, so that no projection is needed."""
    if not isinstance(plan, Aggregate):
        return False
    return [n.name for n in outputs] == plan.schema.names and all(n.expr == n.column for n in outputs)
