"""Higher-order functions: an array and a lambda over its elements."""

from __future__ import annotations

from dataclasses import replace

from kquery_spark.errors import PlanError
from kquery_spark.expr import Column, Expr
from kquery_spark.expr.lambdas import HigherOrder
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.scope import Scope, ScopeColumn
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.kernels.elements import is_array
from kquery_spark.types import names as t


def higher_order(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """TRANSFORM, FILTER, EXISTS or FORALL; the lambda's parameters hide columns of their names."""
    name = node.name[0].lower()
    if len(node.arguments) != 2 or not isinstance(node.arguments[1], ast.Lambda):
        raise PlanError(f"{name} takes an array and a lambda")
    array, function = analyzer.expr(node.arguments[0]), node.arguments[1]
    if not is_array(array.dtype):
        raise PlanError(
            f"[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] {name} takes an array, not {t.spark_name(array.dtype)}"
        )
    types = (array.dtype.value_type, t.INT)
    columns = [
        Column(analyzer.names.fresh(f"lambda {parameter}"), dtype, dtype != t.INT or position == 0)
        for position, (parameter, dtype) in enumerate(zip(function.parameters, types, strict=False))
    ]
    if len(columns) != len(function.parameters):
        raise PlanError(
            f"[INVALID_LAMBDA_FUNCTION_CALL.NUM_ARGS_MISMATCH] the lambda of {name} has too many parameters"
        )
    scope = _body_scope(analyzer, function.parameters, columns)
    body = replace(
        analyzer, preferred=scope, allows_aggregates=False, allows_windows=False, clause="a lambda"
    ).expr(function.body)
    return HigherOrder.of(name, array, body, columns)


def _body_scope(analyzer: ExpressionAnalyzer, parameters: tuple[str, ...], columns: list[Column]) -> Scope:
    """The names that come first in a lambda's body: its parameters, then those of the lambdas around it."""
    fold = analyzer.facts.fold
    own_names = {fold(parameter) for parameter in parameters}
    if len(own_names) < len(columns):
        raise PlanError(
            "[INVALID_LAMBDA_FUNCTION_CALL.DUPLICATE_ARG_NAMES] the parameters of a lambda need different names"
        )
    enclosing = () if analyzer.preferred is None else analyzer.preferred.columns
    own = [ScopeColumn(p, c) for p, c in zip(parameters, columns, strict=True)]
    return Scope((*own, *(c for c in enclosing if fold(c.name) not in own_names)), analyzer.facts)
