"""``arrow_udf``: user-defined functions over Arrow arrays, for columns and, after registration, for SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload

from kquery_spark.errors import PlanError
from kquery_spark.frontends.dataframe.column import Column, to_column
from kquery_spark.frontends.sql import parse_type
from kquery_spark.frontends.sql.analyzer.types import supported_type
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.functions.user import UserFunction, user_function


@dataclass(frozen=True)
class ArrowUdf:
    """A function of columns; call it with columns or their names."""

    function: UserFunction

    def __call__(self, *columns: Column | str) -> Column:
        """Call the function with these columns."""
        arguments = tuple(to_column(c).node for c in columns)
        return Column(ast.Call((self.function.name,), arguments, user=self.function))


@overload
def arrow_udf(function: str, *, deterministic: bool = True) -> Callable[[Callable[..., Any]], ArrowUdf]: ...


@overload
def arrow_udf(
    function: Callable[..., Any], returns: str, *, name: str = "", deterministic: bool = True
) -> ArrowUdf: ...


def arrow_udf(
    function: Callable[..., Any] | str, returns: str = "", *, name: str = "", deterministic: bool = True
) -> Any:
    """Convert a function of Arrow arrays to a function of columns; a decorator (``@kq.arrow_udf("double")``) or a call.

    The function receives one array per argument, all with the same length (a batch of rows, never empty). It returns an
    array of this length, which is cast to ``returns``, a SQL type. It is pickled by value for the workers. deterministic:
    False if equal arguments may give different results. Raises PlanError for an invalid type, and Unsupported for one
    without an Arrow type. At run time, raises UserFunctionError if the function raises an error or returns something else.
    """
    if isinstance(function, str):
        return_type = function
        return lambda f: arrow_udf(f, return_type, name=name, deterministic=deterministic)
    if not isinstance(returns, str) or not returns:
        raise PlanError('say what the function returns, as a type in SQL: arrow_udf(function, "double")')
    return_node = parse_type(returns)
    supported_type(return_node, "UTC", "a function that returns")
    return ArrowUdf(user_function(function, returns, deterministic, name))
