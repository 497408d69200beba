"""The facts besides the syntax of an expression on which its automatic column name depends."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import KQueryError
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import windows as window_ast
from kquery_spark.frontends.sql.ast.queries import Query

LAMBDA_VARIABLE = "namedlambdavariable()"


class NamingContext(Protocol):
    """Resolves names, types and windows inside of an expression that is printed."""

    def name_text(self, node: ast.Name) -> str:
        """Print a resolved name, without its qualifier."""

    def star_text(self) -> str:
        """Print ``*`` as the argument of ``count(DISTINCT *)``: as all columns."""

    def dtype_of(self, node: ast.Expression) -> pa.DataType | None:
        """The type of an operand; None if it has no type of its own."""

    def window_spec(self, window: window_ast.Window) -> window_ast.WindowSpec | None:
        """The window of a call's OVER clause, by name or as written."""

    def captured_names(self, query: Query) -> list[str]:
        """The columns of the outer row that a subquery reads, with repetitions."""


class LambdaContext(NamingContext):
    """A NamingContext inside of a lambda's body, in which its parameters take precedence."""

    def __init__(self, enclosing: NamingContext, parameters: tuple[str, ...]) -> None:
        self._enclosing = enclosing
        self._parameters = {parameter.lower() for parameter in parameters}

    @override
    def name_text(self, node: ast.Name) -> str:
        """Print a name; Spark prints lambda parameters without their names."""
        if node.parts[0].lower() in self._parameters:
            return ".".join((LAMBDA_VARIABLE, *node.parts[1:]))
        return self._enclosing.name_text(node)

    @override
    def star_text(self) -> str:
        return self._enclosing.star_text()

    @override
    def dtype_of(self, node: ast.Expression) -> pa.DataType | None:
        """None for an operand that reads a parameter."""
        try:
            return self._enclosing.dtype_of(node)
        except KQueryError:
            return None

    @override
    def window_spec(self, window: window_ast.Window) -> window_ast.WindowSpec | None:
        return self._enclosing.window_spec(window)

    @override
    def captured_names(self, query: Query) -> list[str]:
        return self._enclosing.captured_names(query)
