"""Higher-order functions: arrays or maps, and a lambda over their elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Column, Expr
from kquery_spark.expr.folds import finished
from kquery_spark.expr.lambdas import HigherOrder
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.scope import Scope, ScopeColumn
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.functions.nested.higher_order import HigherOrderFunction
from kquery_spark.types import names as t


def higher_order(analyzer: ExpressionAnalyzer, entry: HigherOrderFunction, node: ast.Call) -> Expr:
    """TRANSFORM, FILTER, AGGREGATE etc.; a lambda's parameters hide columns with the same names."""
    functions = node.arguments[entry.arguments :]
    arguments = [analyzer.expr(argument) for argument in node.arguments[: entry.arguments]]
    if entry.without_lambda and not functions:
        return analyzer.call(entry.without_lambda, *arguments)
    lambdas = [function for function in functions if isinstance(function, ast.Lambda)]
    if len(lambdas) < len(functions) or not 1 <= len(lambdas) <= (2 if entry.finishes else 1):
        raise PlanError(f"{entry.name} takes {entry.arguments} argument(s) and a lambda")
    if entry.finishes:
        return _aggregate_lambda(analyzer, entry, arguments, lambdas)
    body, columns = _lambda(analyzer, lambdas[0], entry.parameters([a.dtype for a in arguments]))
    return HigherOrder.of(entry.name, arguments, body, columns, analyzer.facts.map_mode)


def _aggregate_lambda(
    analyzer: ExpressionAnalyzer,
    entry: HigherOrderFunction,
    arguments: list[Expr],
    lambdas: Sequence[ast.Lambda],
) -> Expr:
    """AGGREGATE: one lambda updates the state, and an optional second one converts the last state to the result."""
    array, zero = arguments
    if zero.dtype != t.nullable_within(zero.dtype):
        raise Unsupported(f"{entry.name} with non-nullable nested initial values is not supported")
    fields = entry.parameters([array.dtype, zero.dtype])
    body, columns = _lambda(analyzer, lambdas[0], fields)
    if body.dtype == t.NULL:
        body = analyzer.convert.cast(body, zero.dtype, implicit=True)
    folded = HigherOrder.of(entry.name, [array, zero], body, columns)
    if len(lambdas) == 1:
        return folded
    finish, (state,) = _lambda(analyzer, lambdas[1], [pa.field("state", folded.dtype)])
    return finished(folded, state.name, finish)


def _lambda(
    analyzer: ExpressionAnalyzer, function: ast.Lambda, fields: Sequence[pa.Field]
) -> tuple[Expr, list[Column]]:
    """The body of a lambda, and its parameters as columns."""
    if len(function.parameters) > len(fields):
        raise PlanError(
            f"[INVALID_LAMBDA_FUNCTION_CALL.NUM_ARGS_MISMATCH] a lambda here has at most {len(fields)} parameters"
        )
    columns = [
        Column(analyzer.names.fresh(f"lambda {parameter}"), field.type, field.nullable)
        for parameter, field in zip(function.parameters, fields, strict=False)
    ]
    scope = _body_scope(analyzer, function.parameters, columns)
    inside = replace(
        analyzer, preferred=scope, allows_aggregates=False, allows_windows=False, clause="a lambda"
    )
    return inside.expr(function.body), columns


def _body_scope(analyzer: ExpressionAnalyzer, parameters: tuple[str, ...], columns: list[Column]) -> Scope:
    """The names that take precedence in a lambda's body: its parameters, then those of enclosing lambdas."""
    fold = analyzer.facts.fold
    own_names = {fold(parameter) for parameter in parameters}
    if len(own_names) < len(columns):
        raise PlanError(
            "[INVALID_LAMBDA_FUNCTION_CALL.DUPLICATE_ARG_NAMES] the parameters of a lambda need different names"
        )
    enclosing = () if analyzer.preferred is None else analyzer.preferred.columns
    own = [ScopeColumn(p, c) for p, c in zip(parameters, columns, strict=True)]
    return Scope((*own, *(c for c in enclosing if fold(c.name) not in own_names)), analyzer.facts)
