"""Aggregate functions: where they are allowed, which entry of the registry a call means, and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import AggregateCall, Call, Expr, Literal, walk
from kquery_spark.frontends.sql.analyzer.constants import constant_of
from kquery_spark.frontends.sql.analyzer.conversions import check_arity
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import ExpressionAnalyzer
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.functions.aggregate.extreme_rows import check_count
from kquery_spark.functions.aggregate.hyperloglog import precision_for_error
from kquery_spark.functions.aggregate_registry import (
    ConstantArgument,
    aggregate_function,
    null_ignoring_variant,
    overload_name,
    takes_null_treatment,
)
from kquery_spark.functions.call_form import call_form
from kquery_spark.functions.registry import Constructor
from kquery_spark.types import names as t

# Spark's error class for an aggregate function in a clause that does not allow it.
_NOT_ALLOWED = {
    "WHERE": "INVALID_WHERE_CONDITION",
    "FILTER": "INVALID_AGGREGATE_FILTER.CONTAINS_AGGREGATE",
    "QUALIFY": "MISSING_GROUP_BY",
    "ORDER BY": "UNSUPPORTED_EXPR_FOR_OPERATOR",
    "a join condition": "UNSUPPORTED_EXPR_FOR_OPERATOR",
}


def aggregate_call(analyzer: ExpressionAnalyzer, name: str, node: ast.Call) -> Expr:
    """A call of the aggregate function ``name``."""
    if not analyzer.allows_aggregates:
        analyzer.fail(
            f"[{_NOT_ALLOWED.get(analyzer.clause, 'NESTED_AGGREGATE_FUNCTION')}] the aggregate function {name} is not "
            f"allowed in {analyzer.clause}",
            node,
        )
    # in HAVING, an aggregate reads the columns of the input; in ORDER BY, names of the select list take precedence
    inner = replace(
        analyzer,
        allows_aggregates=False,
        allows_windows=False,
        clause="another aggregate function",
        preferred=analyzer.preferred if analyzer.clause == "ORDER BY" else None,
    )
    condition = None
    if node.filter is not None:
        condition = replace(inner, clause="FILTER").condition(node.filter, "FILTER")
    name, args = aggregate_arguments(inner, name, node)
    if any(isinstance(e, AggregateCall) for arg in args for e in walk(arg)):
        analyzer.fail(
            f"[NESTED_AGGREGATE_FUNCTION] {name} reads a column of the select list that is an aggregate itself; "
            "sort by that column's name alone, or give it a name that the table does not have",
            node,
        )
    return AggregateCall.of(
        name, *args, distinct=node.distinct, condition=condition, mode=analyzer.facts.mode
    )


def aggregate_arguments(analyzer: ExpressionAnalyzer, name: str, node: ast.Call) -> tuple[str, list[Expr]]:
    """The aggregate function to which a call refers, and its arguments with implicit casts."""
    if len(node.arguments) == 1 and isinstance(node.arguments[0], ast.Star):
        args = _star_arguments(analyzer, name, node, node.arguments[0])
    else:
        args = analyzer.arguments(node)
    if aggregate_function(name).takes_star and not node.distinct and all(_is_known_not_null(a) for a in args):
        if not args and not node.arguments:
            analyzer.fail(f"[WRONG_NUM_ARGS.WITH_SUGGESTION] {name} needs an argument or *", node)
        return name, []
    name, args = _without_flags(analyzer, name, node, args)
    name = overload_name(name, len(args))
    entry = aggregate_function(name)
    if entry.constant_meaning is ConstantArgument.DELIMITER and len(args) == 1:
        args.append(Literal(None, t.NULL))
    check_arity(entry, len(args))
    args = analyzer.convert.arguments(entry.coerce, args)
    if entry.constant_meaning is not None and entry.constants[0] < len(args):
        position = entry.constants[0]
        args[position] = _constant(analyzer, entry.constant_meaning, args[position], node)
    return name, args


def _constant(analyzer: ExpressionAnalyzer, meaning: ConstantArgument, expr: Expr, node: ast.Call) -> Expr:
    """Return a checked constant argument."""
    match meaning:
        case ConstantArgument.DELIMITER:
            return _delimiter(analyzer, expr, node)
        case ConstantArgument.SHARES:
            return _percentile_shares(analyzer, expr, node)
        case ConstantArgument.RELATIVE_ERROR:
            return _relative_error(analyzer, expr, node)
        case ConstantArgument.NUMBER_OF_VALUES:
            return _number_of_values(analyzer, expr, node)


def _star_arguments(analyzer: ExpressionAnalyzer, name: str, node: ast.Call, star: ast.Star) -> list[Expr]:
    """The arguments of ``count(*)``, which has none, or of ``count(DISTINCT *)``, which are all columns."""
    if not aggregate_function(name).takes_star:
        analyzer.fail("[INVALID_USAGE_OF_STAR_OR_REGEX] * is an argument of count alone", node)
    if star.qualifier:
        raise Unsupported("count(t.*) is not supported")
    if star.excluded:
        raise Unsupported(f"{name}(* EXCEPT ...) is not supported; name the columns")
    if not node.distinct:
        return []
    return [c.value for c in analyzer.scope.visible]


def _is_known_not_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is not None


def _flag_value(expr: Expr) -> bool | None:
    """The value of TRUE or FALSE; None for other expressions."""
    return expr.value if isinstance(expr, Literal) and isinstance(expr.value, bool) else None


def _without_flags(
    analyzer: ExpressionAnalyzer, name: str, node: ast.Call, args: list[Expr]
) -> tuple[str, list[Expr]]:
    """Apply IGNORE NULLS and Boolean flags, which are not arguments of the aggregate; returns the function and arguments."""
    ignores_nulls = node.nulls == "IGNORE"
    if len(args) == 2 and takes_null_treatment(name):
        flag = _flag_value(args[1])
        if flag is None:
            raise PlanError(
                f"[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] the second argument of {name} is TRUE or FALSE"
            )
        ignores_nulls, args = flag, args[:1]
    if ignores_nulls:
        ignoring = null_ignoring_variant(name)
        if ignoring is None:
            raise Unsupported(f"{name} with IGNORE NULLS is not supported")
        name = ignoring
    elif node.nulls is not None and not takes_null_treatment(name):
        raise Unsupported(f"{name} with RESPECT NULLS is not supported")
    if call_form(name).flag_shapes is not None and len(args) == 2:
        args = _without_mode_flag(analyzer, node, args)
    return name, args


def _without_mode_flag(analyzer: ExpressionAnalyzer, node: ast.Call, args: list[Expr]) -> list[Expr]:
    """Remove the flag of MODE. Without it Spark may return any of the most frequent values, with it the lowest one.

    The engine always returns the lowest one.
    """
    if _flag_value(args[1]) is None:
        analyzer.fail(
            "[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] mode's second argument is TRUE or FALSE", node
        )
    return args[:1]


def _delimiter(analyzer: ExpressionAnalyzer, expr: Expr, node: ast.Call) -> Expr:
    """The constant delimiter of listagg; NULL is an empty one."""
    delimiter = constant_of(expr)
    if delimiter is None:
        analyzer.fail("[DATATYPE_MISMATCH.NON_FOLDABLE_INPUT] listagg takes a constant delimiter", node)
    empty = "" if delimiter.dtype == t.STRING else b""
    return Literal(empty, delimiter.dtype) if delimiter.value is None else delimiter


def _relative_error(analyzer: ExpressionAnalyzer, expr: Expr, node: ast.Call) -> Expr:
    """The constant error of approx_count_distinct."""
    rule = "approx_count_distinct takes a constant error"
    return _checked_constant(analyzer, expr, node, rule, precision_for_error)


def _number_of_values(analyzer: ExpressionAnalyzer, expr: Expr, node: ast.Call) -> Expr:
    """The constant number of values that max_by and min_by return."""
    return _checked_constant(analyzer, expr, node, "the number of values is a constant", check_count)


def _checked_constant(
    analyzer: ExpressionAnalyzer, expr: Expr, node: ast.Call, rule: str, check: Callable[[Any], object]
) -> Literal:
    """The value of an argument; fails if it is not constant (with ``rule``), or if ``check`` raises PlanError for it."""
    constant = constant_of(expr)
    if constant is None:
        analyzer.fail(f"[DATATYPE_MISMATCH.NON_FOLDABLE_INPUT] {rule}", node)
    try:
        check(constant.value)
    except PlanError as wrong:
        analyzer.fail(f"[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] {wrong}", node)
    return constant


def _percentile_shares(analyzer: ExpressionAnalyzer, expr: Expr, node: ast.Call) -> Expr:
    """The constant share of a percentile, or the array of several ones."""
    if not (isinstance(expr, Call) and expr.entry.builds is Constructor.ARRAY):
        return _percentile_share(analyzer, expr, node)
    if not expr.args:
        raise Unsupported("percentile with an empty array is not supported")
    return analyzer.call("array", *(_percentile_share(analyzer, share, node) for share in expr.args))


def _percentile_share(analyzer: ExpressionAnalyzer, expr: Expr, node: ast.Call) -> Expr:
    """One constant share of a percentile."""
    share = constant_of(analyzer.convert.cast(expr, t.DOUBLE))
    if share is None:
        analyzer.fail("[DATATYPE_MISMATCH.NON_FOLDABLE_INPUT] percentile takes a constant share", node)
    if share.value is None:
        analyzer.fail("[DATATYPE_MISMATCH.UNEXPECTED_NULL] the share of a percentile must not be NULL", node)
    if not 0 <= share.value <= 1:
        analyzer.fail(
            "[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] the share of a percentile is in [0.0, 1.0]", node
        )
    return share
