"""Lambdas over arrays: what their parameters mean in the body, and how Spark names such columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from kquery_spark.errors import KQueryError, PlanError
from kquery_spark.expr import Column, Expr
from kquery_spark.expr.lambdas import HigherOrder
from kquery_spark.frontends.sql.analyzer.scope import Scope, ScopeColumn
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.kernels.elements import is_array
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.expressions import ExpressionAnalyzer
    from kquery_spark.frontends.sql.analyzer.naming import Context
    from kquery_spark.frontends.sql.ast.queries import Query

_VARIABLE = "namedlambdavariable()"


def higher_order(analyzer: ExpressionAnalyzer, name: str, node: ast.Call) -> Expr:
    """TRANSFORM, FILTER, EXISTS or FORALL of an array and a lambda, whose parameters hide columns of their names."""
    if len(node.arguments) != 2 or not isinstance(node.arguments[1], ast.Lambda):
        raise PlanError(f"{name} takes an array and a lambda")
    array, function = analyzer.expr(node.arguments[0]), node.arguments[1]
    if not is_array(array.dtype):
        raise PlanError(
            f"[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] {name} takes an array, not {t.spark_name(array.dtype)}"
        )
    types = (array.dtype.value_type, t.INT)
    columns = [
        Column(analyzer.names.fresh(f"lambda {parameter}"), dtype, dtype != t.INT or place == 0)
        for place, (parameter, dtype) in enumerate(zip(function.parameters, types, strict=False))
    ]
    if len(columns) != len(function.parameters):
        raise PlanError(
            f"[INVALID_LAMBDA_FUNCTION_CALL.NUM_ARGS_MISMATCH] the lambda of {name} has too many parameters"
        )
    fold = analyzer.facts.fold
    own = {fold(parameter) for parameter in function.parameters}
    if len(own) < len(columns):
        raise PlanError(
            "[INVALID_LAMBDA_FUNCTION_CALL.DUPLICATE_ARG_NAMES] the parameters of a lambda need different names"
        )
    around = () if analyzer.first is None else analyzer.first.columns
    named = [ScopeColumn(p, c) for p, c in zip(function.parameters, columns, strict=True)]
    first = Scope((*named, *(c for c in around if fold(c.name) not in own)), analyzer.facts)
    inner = replace(analyzer, first=first, aggregates=False, windows=False, place="a lambda")
    return HigherOrder.of(name, array, inner.expr(function.body), columns)


class LambdaContext:
    """Names inside of a lambda's body: its parameters, then those around."""

    def __init__(self, around: Context, parameters: tuple[str, ...]) -> None:
        self._around = around
        self._own = {parameter.lower() for parameter in parameters}

    def shown(self, node: ast.Name) -> str:
        """A parameter is shown without its name."""
        if node.parts[0].lower() in self._own:
            return ".".join((_VARIABLE, *node.parts[1:]))
        return self._around.shown(node)

    def shown_star(self) -> str:
        """A lambda has no star of its own."""
        return self._around.shown_star()

    def dtype_of(self, node: ast.Expression) -> pa.DataType | None:
        """The type of an operand that has no parameter in it."""
        try:
            return self._around.dtype_of(node)
        except KQueryError:
            return None

    def window_of(self, window: ast.Window) -> ast.WindowSpec | None:
        """What a window's name stands for."""
        return self._around.window_of(window)

    def outer_names(self, query: Query) -> list[str]:
        """What a subquery reads of the row around."""
        return self._around.outer_names(query)


def parameters_text(parameters: tuple[str, ...]) -> str:
    """The parameters as Spark prints them at the end of a lambda."""
    return ", ".join(_VARIABLE for _ in parameters)
