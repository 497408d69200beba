"""Calls with OVER: where they are allowed, their functions and arguments."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Expr, Literal, SortKey, WindowCall
from kquery_spark.expr.properties import is_constant
from kquery_spark.frontends.sql.analyzer.constants import constant_of
from kquery_spark.frontends.sql.analyzer.expressions.aggregates import aggregate_arguments
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.expressions.window_frames import frame_of
from kquery_spark.frontends.sql.analyzer.windows import WindowMark
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import windows as window_ast
from kquery_spark.functions.aggregate.windows import FrameRow, WindowFunction, window_function
from kquery_spark.functions.aggregate_registry import has_aggregate, window_function_of
from kquery_spark.types import names as t

# Spark's error class for a window function in a clause that does not allow it.
_NOT_ALLOWED = {
    "WHERE": "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE",
    "HAVING": "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE",
    "ORDER BY": "UNSUPPORTED_EXPR_FOR_OPERATOR",
    "a join condition": "UNSUPPORTED_EXPR_FOR_OPERATOR",
}


def window_call(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """The expression of a call with OVER."""
    if analyzer.in_window:
        raise Unsupported("a window function inside another one is not supported")
    if not analyzer.allows_windows:
        error = _NOT_ALLOWED.get(analyzer.clause, "UNSUPPORTED_EXPR_FOR_WINDOW")
        analyzer.fail(f"[{error}] a window function is not allowed in {analyzer.clause}", node)
    written_name = node.name[0].lower()
    name = window_function_of(written_name)
    _check_call(analyzer, written_name, name, node)
    spec = _window_spec(analyzer, node)
    analyzer.allows_windows, analyzer.in_window = False, True
    try:
        # Spark drops constant PARTITION BY keys without evaluating them.
        keys = [analyzer.expr(key) for key in spec.partition_by]
        partition = tuple(key for key in keys if not is_constant(key))
        order = tuple(SortKey(analyzer.expr(s.expression), s.ascending, s.nulls_first) for s in spec.order_by)
        condition = None if node.filter is None else analyzer.condition(node.filter, "FILTER")
        name, args, ignores_nulls = _arguments(analyzer, name, node)
    finally:
        analyzer.allows_windows, analyzer.in_window = True, False
    call = WindowCall.of(
        name,
        *args,
        frame=frame_of(analyzer, name, spec, order),
        ignore_nulls=ignores_nulls,
        mode=analyzer.facts.mode,
        condition=condition,
    )
    entry = window_function(name)
    if entry is not None and entry.ordered and not order:
        analyzer.fail(f"[WINDOW_FUNCTION_FRAME_NOT_ORDERED] {name} needs an ORDER BY in its window", node)
    return WindowMark(call, partition, order)


def _check_call(analyzer: ExpressionAnalyzer, written_name: str, name: str, node: ast.Call) -> None:
    if node.distinct:
        analyzer.fail("[DISTINCT_WINDOW_FUNCTION_UNSUPPORTED] DISTINCT has no meaning over a window", node)
    written = window_function(written_name)
    if node.filter is not None and written is not None and not written.aggregate:
        analyzer.fail(
            f"[INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX] {written_name} does not support FILTER",
            node,
        )
    if window_function(name) is None and not has_aggregate(name):
        analyzer.fail(f"[UNSUPPORTED_EXPR_FOR_WINDOW] {written_name} is not a window function", node)


def _window_spec(analyzer: ExpressionAnalyzer, node: ast.Call) -> window_ast.WindowSpec:
    if isinstance(node.over, window_ast.WindowSpec):
        return node.over
    assert isinstance(node.over, window_ast.WindowName)
    spec = analyzer.named_windows.get(node.over.name)
    if spec is None:
        analyzer.fail(f"[MISSING_WINDOW_SPECIFICATION] unknown window {node.over.name}", node.over)
    return spec


def _arguments(analyzer: ExpressionAnalyzer, name: str, node: ast.Call) -> tuple[str, list[Expr], bool]:
    """The function to which the call refers, its arguments, and whether it ignores NULLs."""
    entry = window_function(name)
    if entry is None:
        name, args = aggregate_arguments(analyzer, name, node)
        return name, args, False
    args = analyzer.arguments(node)
    ignores_nulls = node.nulls == "IGNORE"
    if entry.aggregate and len(args) == 2:
        flag = args.pop()
        if not (isinstance(flag, Literal) and isinstance(flag.value, bool)):
            raise Unsupported(f"the second argument of {name} must be TRUE or FALSE")
        ignores_nulls = flag.value
    return name, _converted_arguments(analyzer, entry, args), ignores_nulls


def _converted_arguments(analyzer: ExpressionAnalyzer, entry: WindowFunction, args: list[Expr]) -> list[Expr]:
    """The arguments, with constants as numbers, and with the default of LAG and LEAD cast to the value's type."""
    if entry.row is FrameRow.NTH and len(args) == 3:
        raise Unsupported("nth_value with a third argument is not supported")
    if entry.is_offset and len(args) > 2:
        args[2] = analyzer.convert.cast(args[2], args[0].dtype)
    constant = entry.constant_argument
    if constant is not None and len(args) > constant:
        args[constant] = _constant_number(analyzer, args[constant], entry.name)
    return args


def _constant_number(analyzer: ExpressionAnalyzer, expr: Expr, name: str) -> Expr:
    value = constant_of(analyzer.convert.cast(expr, t.INT))
    if value is None or value.value is None:
        raise Unsupported(f"{name} takes a constant number only")
    return value
