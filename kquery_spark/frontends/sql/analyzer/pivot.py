"""PIVOT: turns values of the pivot columns into columns.

For ``SUM(x) FOR q IN (1, 2)`` over groups g there are two plans. If all results have simple types, Spark first aggregates
by (g, q), and then each output column takes the one row of its value. Otherwise each output column is an aggregate over the
rows of its value. The two differ for COUNT: a group without rows of a value has NULL in the first plan, 0 in the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kquery_spark.errors import Unsupported
from kquery_spark.expr import AggregateCall, Call, Case, Column, Expr, Literal, Named, transform, walk
from kquery_spark.expr.properties import conjunction
from kquery_spark.frontends.sql.analyzer.constants import constant_of
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.expressions.output_names import output_name
from kquery_spark.frontends.sql.analyzer.grouping import Grouping
from kquery_spark.frontends.sql.analyzer.outer_row import OuterRow
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation, Scope, ScopeColumn
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.frontends.sql.ast.node import Node
from kquery_spark.frontends.sql.ast.node import walk as ast_walk
from kquery_spark.functions.aggregate_registry import null_ignoring_variant, takes_null_treatment
from kquery_spark.logical import Aggregate, LogicalPlan, Projection
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.queries import QueryAnalyzer


@dataclass(frozen=True)
class _PivotValue:
    """A value of PIVOT: the constants with which the pivot columns are compared, and the prefix of its columns' names."""

    constants: tuple[Literal, ...]
    name: str


@dataclass(frozen=True)
class _PivotAggregate:
    """An aggregate of PIVOT, and the suffix of its columns' names, which is used if there are several aggregates."""

    expr: Expr
    name: str


def pivoted(
    queries: QueryAnalyzer, relation: ResolvedRelation, node: r.Pivot, outer: OuterRow | None
) -> ResolvedRelation:
    """Import PIVOT: one row per group of the columns that PIVOT does not read, with a column per value and aggregate."""
    analyzer = queries.expressions(relation.scope, outer, "PIVOT", relation.plan)
    keys = [analyzer.expr(ast.Name((name,), pos=node.pos)) for name in node.columns]
    values = [_value(analyzer, item, keys) for item in node.values]
    aggregates = [_aggregate(analyzer, item) for item in node.aggregates]
    read = {e for expr in (*keys, *(a.expr for a in aggregates)) for e in walk(expr) if isinstance(e, Column)}
    groups = [c for c in relation.scope.visible if c.value not in read]
    if all(_is_aggregated_by_value_first(a.expr) for a in aggregates):
        plan, columns = _aggregate_by_value_first(queries, relation.plan, groups, keys, values, aggregates)
    else:
        if any(_is_any_value(part) for item in node.aggregates for part, _ in ast_walk(item)):
            raise Unsupported("any_value in PIVOT is only supported if all results are numbers or booleans")
        plan, columns = _aggregate_by_conditions(queries, relation.plan, groups, keys, values, aggregates)
    names = [v.name if len(aggregates) == 1 else f"{v.name}_{a.name}" for v in values for a in aggregates]
    scope = Scope(
        (
            *(ScopeColumn(c.name, plan.column(_name(c.value)), c.qualifier) for c in groups),
            *(ScopeColumn(name, plan.column(column)) for name, column in zip(names, columns, strict=True)),
        ),
        queries.facts,
    )
    return ResolvedRelation(plan, scope if node.alias is None else scope.renamed((node.alias,)))


def _is_any_value(node: Node) -> bool:
    """Return whether a node calls any_value without IGNORE NULLS.

    In this plan, Spark computes each aggregate over all rows of a group, with NULL in the rows of other pivot values.
    first and last ignore these NULLs in Spark, but any_value can return one. The engine replaces any_value by first.
    """
    return isinstance(node, ast.Call) and node.name[-1].lower() == "any_value" and node.nulls != "IGNORE"


def _value(analyzer: ExpressionAnalyzer, node: ast.Expression, keys: Sequence[Expr]) -> _PivotValue:
    """A value as constants of the pivot columns' types; its name is its alias or its printed form."""
    inner = node.expression if isinstance(node, ast.Aliased) else node
    parts = inner.items if isinstance(inner, ast.Row) and len(keys) > 1 else (inner,)
    if len(parts) != len(keys):
        analyzer.fail(
            f"[PIVOT_VALUE_DATA_TYPE_MISMATCH] a value of PIVOT has {len(keys)} part(s), not {len(parts)}",
            node,
        )
    constants = []
    for part, key in zip(parts, keys, strict=True):
        with analyzer.at(part):
            value = analyzer.expr(part)
            if constant_of(value) is None:
                analyzer.fail("[NON_LITERAL_PIVOT_VALUES] the values of PIVOT are constants", part)
            constant = constant_of(analyzer.convert.cast(value, key.dtype, implicit=False))
            if constant is None:
                analyzer.fail(f"[PIVOT_VALUE_DATA_TYPE_MISMATCH] this is no {t.spark_name(key.dtype)}", part)
            constants.append(constant)
    if isinstance(node, ast.Aliased):
        return _PivotValue(tuple(constants), node.alias)
    text = constant_of(analyzer.convert.cast(analyzer.expr(inner), t.STRING, implicit=False))
    if text is None:
        raise Unsupported("a PIVOT value that cannot be cast to a string needs an alias")
    return _PivotValue(tuple(constants), "null" if text.value is None else text.value)


def _aggregate(analyzer: ExpressionAnalyzer, node: ast.Expression) -> _PivotAggregate:
    allowing = replace(analyzer, allows_aggregates=True)
    expr = allowing.expr(node)
    if not any(isinstance(e, AggregateCall) for e in walk(expr)):
        analyzer.fail(
            f"PIVOT needs an aggregate function, but {output_name(node, allowing)} does not contain one", node
        )
    return _PivotAggregate(expr, output_name(node, allowing))


def _is_aggregated_by_value_first(expr: Expr) -> bool:
    """Return whether Spark aggregates by the pivot columns first, as it does for these types; a count may be NULL then."""
    return t.is_numeric(expr.dtype) or expr.dtype == t.BOOL


def _aggregate_by_value_first(
    queries: QueryAnalyzer,
    plan: LogicalPlan,
    groups: Sequence[ScopeColumn],
    keys: Sequence[Expr],
    values: Sequence[_PivotValue],
    aggregates: Sequence[_PivotAggregate],
) -> tuple[LogicalPlan, list[str]]:
    """Aggregate by the groups and the pivot columns; then each output column takes the result of its value."""
    if any(t.is_fractional(key.dtype) for key in keys):
        raise Unsupported("PIVOT by floating-point values is not supported")
    grouping = Grouping(queries.names)
    for key in (*(c.value for c in groups), *keys):
        grouping.add_key(key)
    results = [grouping.rewrite(a.expr) for a in aggregates]
    key_columns = [grouping.rewrite(key) for key in keys]
    by_value = grouping.plan(plan)
    outputs = []
    for value in values:
        matches = _matches(key_columns, value)
        for aggregate, result in zip(aggregates, results, strict=True):
            call = AggregateCall.of("first_ignore_nulls", result, condition=matches)
            outputs.append(Named(call, queries.names.fresh(aggregate.name)))
    by_group = tuple(Named(by_value.column(_name(c.value)), _name(c.value)) for c in groups)
    return Aggregate(by_value, by_group, tuple(outputs)), [output.name for output in outputs]


def _aggregate_by_conditions(
    queries: QueryAnalyzer,
    plan: LogicalPlan,
    groups: Sequence[ScopeColumn],
    keys: Sequence[Expr],
    values: Sequence[_PivotValue],
    aggregates: Sequence[_PivotAggregate],
) -> tuple[LogicalPlan, list[str]]:
    """Aggregate once per value: the arguments are NULL in the rows of other values."""
    grouping = Grouping(queries.names)
    for column in groups:
        grouping.add_key(column.value)
    outputs = []
    for value in values:
        matches = _matches(keys, value)
        for aggregate in aggregates:
            expr = transform(aggregate.expr, lambda e, on=matches: _restrict_to_rows(e, on))  # type: ignore[misc]
            outputs.append(Named(grouping.rewrite(expr), queries.names.fresh(aggregate.name)))
    passed = tuple(Named(column, column.name) for column in (key.column for key in grouping.keys))
    return Projection(grouping.plan(plan), (*passed, *outputs)), [output.name for output in outputs]


def _restrict_to_rows(expr: Expr, matches: Expr) -> Expr:
    """Restrict an aggregate to the rows that match a value."""
    if not isinstance(expr, AggregateCall):
        return expr
    if any(isinstance(arg, Literal) for arg in expr.args) or len(expr.args) > 1:
        raise Unsupported(f"{expr.function} with several arguments or a constant in PIVOT is not supported")
    args = expr.args or (Literal(1, t.INT),)
    name = expr.function
    if takes_null_treatment(name):
        name = null_ignoring_variant(name) or name
    return AggregateCall.of(
        name,
        *(Case(((matches, arg),)) for arg in args),
        distinct=expr.distinct,
        condition=expr.condition,
        mode=expr.mode,
    )


def _matches(keys: Sequence[Expr], value: _PivotValue) -> Expr:
    """Return whether the pivot columns have a value, which may be NULL."""
    pairs = zip(keys, value.constants, strict=True)
    condition = conjunction([Call.of("eq_null_safe", key, constant) for key, constant in pairs])
    assert condition is not None
    return condition


def _name(value: Expr) -> str:
    assert isinstance(value, Column)
    return value.name
