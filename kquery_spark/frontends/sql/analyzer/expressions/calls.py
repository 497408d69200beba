"""Resolves function calls: a name may refer to a special form, a window function, an aggregate or a scalar function."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Expr, Literal, UserCall
from kquery_spark.frontends.sql import parse_type
from kquery_spark.frontends.sql.analyzer.expressions.aggregates import aggregate_call
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import CALLS, EXPRESSIONS, ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.expressions.special_forms import no_such_function, special_call
from kquery_spark.frontends.sql.analyzer.expressions.windows import window_call
from kquery_spark.frontends.sql.analyzer.types import supported_type
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.functions.aggregate.windows import aggregate_of, window_function
from kquery_spark.functions.aggregate_registry import aggregate_function, has_aggregate
from kquery_spark.functions.registry import has_function, is_internal
from kquery_spark.functions.user import UserFunction
from kquery_spark.types import names as t


@EXPRESSIONS.handles(ast.Call)
def call(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """A function call."""
    if len(node.name) != 1:
        analyzer.fail(f"[UNRESOLVED_ROUTINE] unknown function {'.'.join(node.name)}", node)
    if node.user is not None:
        return _user_call(analyzer, node, node.user)
    name = node.name[0].lower()
    if is_internal(name) or (has_aggregate(name) and aggregate_function(name).internal):
        analyzer.fail(f"[UNRESOLVED_ROUTINE] unknown function {name}", node)
    if node.within_group:
        raise Unsupported("WITHIN GROUP is not supported")
    if node.over is not None:
        return window_call(analyzer, node)
    aggregate = aggregate_of(name)
    if has_aggregate(aggregate):
        return aggregate_call(analyzer, aggregate, node)
    return _scalar_call(analyzer, name, node)


def _scalar_call(analyzer: ExpressionAnalyzer, name: str, node: ast.Call) -> Expr:
    if node.distinct or node.filter is not None:
        analyzer.fail(
            f"[INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX] {name} is not an aggregate function", node
        )
    if node.nulls is not None:
        analyzer.fail(
            f"[INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX] {name} takes no {node.nulls} NULLS", node
        )
    special = special_call(analyzer, name, node)
    if special is not None:
        return special
    if not has_function(name):
        if window_function(name) is not None:
            analyzer.fail(f"[WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE] {name} needs an OVER clause", node)
        analyzer.fail(no_such_function(name), node)
    return analyzer.call(name, *analyzer.arguments(node))


@CALLS.handles("size", "cardinality")
def _size(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    size = analyzer.call(node.name[0].lower(), *analyzer.arguments(node))
    if analyzer.facts.ansi:
        return size
    # outside of ANSI mode, spark.sql.legacy.sizeOfNull is on, so that the size of NULL is -1
    return analyzer.call("coalesce", size, Literal(-1, t.INT))


def _user_call(analyzer: ExpressionAnalyzer, node: ast.Call, function: UserFunction) -> Expr:
    if node.distinct or node.filter is not None or node.nulls is not None or node.over or node.within_group:
        analyzer.fail(
            f"[INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX] {function.name} takes arguments only",
            node,
        )
    dtype = supported_type(parse_type(function.returns), analyzer.facts.time_zone, "a function that returns")
    args = tuple(analyzer.arguments(node))
    return UserCall(function.name, args, dtype, function.deterministic, function.code)
