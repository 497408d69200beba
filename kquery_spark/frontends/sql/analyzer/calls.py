"""Function calls: which form, scalar function or aggregate a name is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import AggregateCall, Expr, Literal, UserCall, walk
from kquery_spark.expr.lambdas import HIGHER_ORDER
from kquery_spark.frontends.sql import parse_type
from kquery_spark.frontends.sql.analyzer.function_text import PICKS
from kquery_spark.frontends.sql.analyzer.grouping_sets import grouping_call
from kquery_spark.frontends.sql.analyzer.lambdas import higher_order
from kquery_spark.frontends.sql.analyzer.special_forms import FORMS, arguments, extract
from kquery_spark.frontends.sql.analyzer.types import arrow_type
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast.types import NamedType
from kquery_spark.functions.aggregate_registry import aggregate_function, has_aggregate
from kquery_spark.functions.hyperloglog import precision_of
from kquery_spark.functions.registry import EvalMode, has_function
from kquery_spark.functions.user import UserFunction
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.expressions import ExpressionAnalyzer

_TRY = {
    "try_add": "add",
    "try_subtract": "subtract",
    "try_multiply": "multiply",
    "try_divide": "divide",
    "try_mod": "mod",
    "try_element_at": "element_at",
}
_CASTS = frozenset(
    {
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "decimal",
        "date",
        "timestamp",
        "binary",
        "string",
    }
)
_INTERNAL = frozenset(
    [
        "add",
        "subtract",
        "multiply",
        "divide",
        "eq",
        "neq",
        "lt",
        "lteq",
        "gt",
        "gteq",
        "eq_null_safe",
        "yearofweek",
        "second_with_fraction",
        "subtract_dates",
        "bitand",
        "bitor",
        "bitxor",
        "bitnot",
        "known_not_null",
        "known_normalized",
        "normalize_nan_and_zero",
        "get_array_item",
        "get_array_struct_fields",
        "get_map_value",
        "get_struct_field",
        "make_decimal",
        "unscaled_value",
        "timestamp_add_interval",
        "timestamp_add_months",
        "subtract_timestamps",
        "first_ignore_nulls",
        "any_value_ignore_nulls",
        "last_ignore_nulls",
        "null_if_negative",
        "parse_timestamp",
        "precise_timestamp",
        "multiply_interval",
        "divide_interval",
        "interval_days",
        "interval_hours",
        "interval_minutes",
        "interval_seconds",
    ]
)
_SYNONYMS = {"now": "current_timestamp", "curdate": "current_date"}


def analyze_call(analyzer: ExpressionAnalyzer, node: ast.Expression) -> Expr:
    """The expression of a call, of EXTRACT or of TRIM."""
    match node:
        case ast.Extract():
            return extract(analyzer, node.field, node.source)
        case ast.Trim():
            name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.side.upper(), "trim")
            args = [analyzer.expr(node.source)]
            if node.characters is not None:
                args.append(analyzer.expr(node.characters))
            return analyzer.call(name, *args)
        case ast.Call():
            return _call(analyzer, node)
    raise AssertionError(node)


def is_aggregate(node: ast.Expression) -> bool:
    """Whether a node is an aggregate function's call (and no window function)."""
    if not isinstance(node, ast.Call) or node.over is not None or len(node.name) != 1 or node.user:
        return False
    name = node.name[0].lower()
    return has_aggregate(PICKS.get(name, name)) or name in ("grouping", "grouping_id")


def bare_call(analyzer: ExpressionAnalyzer, name: str) -> Expr | None:
    """``current_date`` and its like without parentheses."""
    if name.lower() in _NOW:
        return _now(analyzer, name.lower())
    return None


def _call(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    if len(node.name) != 1:
        analyzer.fail(f"[UNRESOLVED_ROUTINE] there is no function {'.'.join(node.name)}", node)
    if node.user is not None:
        return _user_call(analyzer, node, node.user)
    name = _SYNONYMS.get(node.name[0].lower(), node.name[0].lower())
    if name in _INTERNAL:
        analyzer.fail(f"[UNRESOLVED_ROUTINE] there is no function {name}", node)
    if node.within_group:
        raise Unsupported("WITHIN GROUP is not supported.")
    if node.over is not None:
        from kquery_spark.frontends.sql.analyzer.windows import window_call

        return window_call(analyzer, node)
    if has_aggregate(PICKS.get(name, name)):
        return _aggregate(analyzer, PICKS.get(name, name), node)
    if node.distinct or node.filter is not None:
        analyzer.fail(
            f"[INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX] {name} is no aggregate function", node
        )
    if node.nulls is not None:
        analyzer.fail(
            f"[INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX] {name} takes no {node.nulls} NULLS", node
        )
    if name in ("grouping", "grouping_id"):
        return grouping_call(analyzer, node)
    if name in HIGHER_ORDER:
        return higher_order(analyzer, name, node)
    form = FORMS.get(name)
    if form is not None:
        return form(analyzer, node)
    if name in _NOW and not node.arguments:
        return _now(analyzer, name)
    if name in _CASTS and len(node.arguments) == 1:
        parameters = (10, 0) if name == "decimal" else ()
        target = arrow_type(NamedType(name, parameters), analyzer.facts.time_zone)
        assert target is not None
        return analyzer.convert.cast(analyzer.expr(node.arguments[0]), target, implicit=False)
    if name in _TRY:
        return analyzer.call(_TRY[name], *arguments(analyzer, node), mode=EvalMode.TRY)
    if not has_function(name):
        from kquery_spark.frontends.sql.analyzer.windows import is_window_function

        if is_window_function(name):
            analyzer.fail(f"[WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE] {name} needs an OVER clause", node)
        analyzer.fail(
            f"[UNRESOLVED_ROUTINE] there is no function {name}, or the engine does not have it", node
        )
    return analyzer.call(name, *arguments(analyzer, node))


def _user_call(analyzer: ExpressionAnalyzer, node: ast.Call, function: UserFunction) -> Expr:
    if node.distinct or node.filter is not None or node.nulls is not None or node.over or node.within_group:
        analyzer.fail(
            f"[INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX] {function.name} takes arguments only",
            node,
        )
    dtype = arrow_type(parse_type(function.returns), analyzer.facts.time_zone)
    args = tuple(arguments(analyzer, node))
    return UserCall(function.name, args, dtype, function.deterministic, function.code)


def percentile_shares(node: ast.Call) -> tuple[ast.Expression, ...] | None:
    """p and q of ``percentile(x, array(p, q))``; None for any other call."""
    if node.name[0].lower() != "percentile" or len(node.arguments) != 2:
        return None
    shares = node.arguments[1]
    return shares.arguments if isinstance(shares, ast.Call) and shares.name[0].lower() == "array" else None


def percentiles(
    analyzer: ExpressionAnalyzer,
    node: ast.Call,
    shares: tuple[ast.Expression, ...],
    one: Callable[[ExpressionAnalyzer, ast.Call], Expr],
) -> Expr:
    """``percentile(x, array(p, q))``: an array of one percentile each; NULL where there is no value."""
    if not shares:
        raise Unsupported("percentile with an empty array is not supported.")
    each = [one(analyzer, replace(node, arguments=(node.arguments[0], share))) for share in shares]
    none = analyzer.call("isnull", each[0])
    return analyzer.case([none], [Literal(None, t.NULL)], analyzer.call("array", *each))


# Spark's class of error for an aggregate function in a clause that has none.
_NOT_ALLOWED = {
    "WHERE": "INVALID_WHERE_CONDITION",
    "FILTER": "INVALID_AGGREGATE_FILTER.CONTAINS_AGGREGATE",
    "QUALIFY": "MISSING_GROUP_BY",
    "ORDER BY": "UNSUPPORTED_EXPR_FOR_OPERATOR",
    "a join condition": "UNSUPPORTED_EXPR_FOR_OPERATOR",
}


def _aggregate(analyzer: ExpressionAnalyzer, name: str, node: ast.Call) -> Expr:
    shares = percentile_shares(node)
    if shares is not None:
        return percentiles(analyzer, node, shares, lambda a, n: _aggregate(a, "percentile", n))
    if not analyzer.aggregates:
        analyzer.fail(
            f"[{_NOT_ALLOWED.get(analyzer.place, 'NESTED_AGGREGATE_FUNCTION')}] the aggregate function {name} is not "
            f"allowed in {analyzer.place}",
            node,
        )
    # in HAVING an aggregate reads rows of the input; in ORDER BY the select list's names come first here, too
    first = analyzer.first if analyzer.place == "ORDER BY" else None
    inner = replace(
        analyzer, aggregates=False, windows=False, place="another aggregate function", first=first
    )
    condition = None
    if node.filter is not None:
        condition = replace(inner, place="FILTER").condition(node.filter, "FILTER")
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
    """The function meant and its arguments at the types it takes."""
    if len(node.arguments) == 1 and isinstance(node.arguments[0], ast.Star):
        if name != "count":
            analyzer.fail("[INVALID_USAGE_OF_STAR_OR_REGEX] * is an argument of count alone", node)
        star = node.arguments[0]
        if star.qualifier:
            raise Unsupported("count(t.*) is not supported.")
        if not node.distinct:
            return name, []
        if star.excluded:
            raise Unsupported("count(DISTINCT * EXCEPT ...) is not supported; name the columns.")
        args = [c.value for c in analyzer.scope.visible]
    else:
        args = arguments(analyzer, node)
    if (
        name == "count"
        and not node.distinct
        and all(isinstance(a, Literal) and a.value is not None for a in args)
    ):
        if not args:
            analyzer.fail("[WRONG_NUM_ARGS.WITH_SUGGESTION] count needs an argument or *", node)
        return name, []
    ignore = node.nulls == "IGNORE"
    if name in ("first", "last", "any_value", "first_value", "last_value") and len(args) == 2:
        flag = args.pop()
        if not (isinstance(flag, Literal) and isinstance(flag.value, bool)):
            raise PlanError(
                f"[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] the second argument of {name} is TRUE or FALSE"
            )
        ignore = flag.value
    if ignore:
        if not has_aggregate(f"{name}_ignore_nulls"):
            raise Unsupported(f"{name} with IGNORE NULLS is not supported.")
        name = f"{name}_ignore_nulls"
    elif node.nulls is not None and name not in ("first", "last", "any_value"):
        raise Unsupported(f"{name} with RESPECT NULLS is not supported.")
    if name == "mode" and len(args) == 2:
        # without the flag any of the most frequent values will do, with it the lowest: ours is always the lowest
        flag = args.pop()
        if not (isinstance(flag, Literal) and isinstance(flag.value, bool)):
            analyzer.fail(
                "[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] mode's second argument is TRUE or FALSE", node
            )
    entry = aggregate_function(name)
    try:
        entry.check_arity(len(args))
    except PlanError as error:
        raise PlanError(f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] {error}") from None
    args = list(analyzer.convert.arguments(entry.coerce, args))
    if name == "percentile":
        args[1] = _share(analyzer, args[1], node)
    if name == "approx_count_distinct" and len(args) == 2:
        args[1] = _error(analyzer, args[1], node)
    return name, args


def _error(analyzer: ExpressionAnalyzer, expr: Expr, node: ast.Call) -> Expr:
    """The constant error of approx_count_distinct."""
    from kquery_spark.frontends.sql.analyzer.expressions import constant_of

    error = constant_of(expr)
    if error is None:
        analyzer.fail(
            "[DATATYPE_MISMATCH.NON_FOLDABLE_INPUT] approx_count_distinct takes a constant error", node
        )
    try:
        precision_of(error.value)
    except PlanError as wrong:
        analyzer.fail(f"[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] {wrong}", node)
    return error


def _share(analyzer: ExpressionAnalyzer, expr: Expr, node: ast.Call) -> Expr:
    """The constant share of a percentile."""
    from kquery_spark.frontends.sql.analyzer.expressions import constant_of

    share = constant_of(expr)
    if share is None:
        analyzer.fail("[DATATYPE_MISMATCH.NON_FOLDABLE_INPUT] percentile takes a constant share", node)
    if share.value is None:
        analyzer.fail("[DATATYPE_MISMATCH.UNEXPECTED_NULL] the share of a percentile must not be NULL", node)
    if not 0 <= share.value <= 1:
        analyzer.fail(
            "[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] the share of a percentile is in [0.0, 1.0]", node
        )
    return share


_NOW = frozenset({"current_date", "current_timestamp", "localtimestamp", "current_timezone"})


def special_forms() -> frozenset[str]:
    """Functions that are in no registry: the analyzer makes them of others."""
    inline = {"inline", "inline_outer", "grouping", "grouping_id"}
    return frozenset({*FORMS, *_TRY, *_SYNONYMS, *_NOW, *HIGHER_ORDER, *inline})


def _now(analyzer: ExpressionAnalyzer, name: str) -> Expr:
    facts = analyzer.facts
    if name == "current_timezone":
        return Literal(facts.time_zone, t.STRING)
    micros = facts.now_micros
    if micros is None:
        micros = int(dt.datetime.now(dt.UTC).timestamp() * 1_000_000)
    moment = Literal(micros, t.timestamp(facts.time_zone))
    if name == "current_timestamp":
        return moment
    return analyzer.convert.cast(
        moment, t.DATE if name == "current_date" else t.TIMESTAMP_NTZ, implicit=False
    )
