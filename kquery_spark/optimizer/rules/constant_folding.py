"""Expressions whose value does not depend on rows become literals."""

from __future__ import annotations

from dataclasses import replace

from kquery_spark.errors import KQueryError
from kquery_spark.expr import Call, Case, Cast, Column, Expr, HigherOrder, InList, Literal, transform
from kquery_spark.expr.constants import evaluate_constant
from kquery_spark.expr.properties import is_constant, is_deterministic, is_null_literal
from kquery_spark.functions.datetime.dates import can_truncate
from kquery_spark.logical import LogicalPlan, transform_plan
from kquery_spark.logical.plan import rewrite_expressions
from kquery_spark.types import names as t


def constant_folding(plan: LogicalPlan) -> LogicalPlan:
    """``#a > (1 + 2)`` becomes ``#a > 3``, ``TRUE AND x`` becomes ``x``, ``x AND FALSE`` FALSE, ``x + NULL`` NULL.

    ``named_struct('a', x, 'b', y).a`` and ``CASE WHEN y THEN x ELSE x END`` become ``x``, ``size(map(x, y))`` 1,
    ``lower(upper(x))`` ``lower(x)``, which is not always the same.

    These are Catalyst's ConstantFolding, BooleanSimplification, NullPropagation, SimplifyExtractValueOps,
    SimplifyCaseConversionExpressions and SimplifyConditionals. All but the first drop an ``x`` or ``y`` that would raise, as
    Spark does. A constant that raises is left alone: whether it raises is for the rows to decide.
    """
    return transform_plan(plan, lambda node: rewrite_expressions(node, lambda e: transform(e, _fold)))


def _fold(expr: Expr) -> Expr:
    if isinstance(expr, HigherOrder):
        body = transform(expr.body, _fold)
        return expr if body is expr.body else expr.with_body(body)
    if isinstance(expr, Case):
        otherwise = Literal(None, expr.dtype) if expr.otherwise is None else expr.otherwise
        if _gives_always(expr, otherwise):
            return otherwise
    if isinstance(expr, Call):
        if expr.entry.operator.connective:
            return _connective(expr)
        # what the other side would do, raise included, is not asked
        if expr.entry.is_strict_operator and any(map(is_null_literal, expr.args)):
            return Literal(None, expr.dtype)
        match expr.function:
            case "isnull" | "isnotnull" if not expr.args[0].nullable:
                return Literal(expr.function == "isnotnull", t.BOOL)
            case "upper" | "lower":
                return _recased(expr, expr.args[0])
            case "elt":
                return _element(expr, expr.args[0])
            case "date_trunc":
                return _truncated(expr, expr.args[0])
            case "get_struct_field" | "get_array_item":
                return _extracted(expr)
            case "get_map_value":
                return _looked_up(expr, *expr.args)
            case "size":
                return _counted(expr, expr.args[0])
            case "trunc":
                return _truncated(expr, expr.args[1])
    return _evaluated(expr) if isinstance(expr, Call | Cast | Case | InList) else expr


def _evaluated(expr: Expr) -> Expr:
    """The value of a constant expression; others, and constants that raise, as they are."""
    # literals hold plain values, which can be compared and shipped
    if t.is_nested(expr.dtype) or not is_constant(expr):
        return expr
    try:
        return evaluate_constant(expr)
    except KQueryError:
        return expr


def _recased(expr: Call, text: Expr) -> Expr:
    """The outer one of two changes of case, alone."""
    match text:
        case Call(function="upper" | "lower"):
            return replace(expr, args=text.args)
    return expr


def _element(expr: Call, index: Expr) -> Expr:
    """The argument that ELT with a constant index gives; Spark evaluates no other."""
    if not isinstance(index, Literal):
        return expr
    others = expr.args[1:]
    inside = index.value is not None and 0 < index.value <= len(others)
    return others[index.value - 1] if inside and others[index.value - 1].dtype == expr.dtype else expr


def _gives_always(case: Case, otherwise: Expr) -> bool:
    """Whether all branches of a CASE give the value of its ELSE, so that Spark evaluates no condition."""
    return is_deterministic(case) and all(value == otherwise for _, value in case.branches)


def _extracted(expr: Call) -> Expr:
    """The part of a struct or an array written in place that is taken out of it; Spark evaluates no other part."""
    whole, ordinal = expr.args
    if not isinstance(whole, Call) or not isinstance(ordinal, Literal) or ordinal.value is None:
        return expr
    match whole.function:
        case "named_struct":
            parts = whole.args[1::2]
        case "array":
            parts = whole.args
        case _:
            return expr
    inside = 0 <= ordinal.value < len(parts)
    return parts[ordinal.value] if inside and parts[ordinal.value].dtype == expr.dtype else expr


def _looked_up(expr: Call, whole: Expr, key: Expr) -> Expr:
    """The value of a key in a map written in place, whose other keys Spark does not look for equal or missing ones among."""
    if not isinstance(whole, Call) or whole.function != "map":
        return expr
    keys, values = whole.args[::2], whole.args[1::2]
    if not keys or any(k.dtype != key.dtype for k in keys) or any(v.dtype != expr.dtype for v in values):
        return expr
    return Case(tuple((Call.of("eq", key, k), v) for k, v in zip(keys, values, strict=True)))


def _counted(expr: Call, whole: Expr) -> Expr:
    """How many entries a map written in place has; Spark does not look for equal or missing keys among them then."""
    if not isinstance(whole, Call) or whole.function != "map":
        return expr
    # Spark trusts these, and few functions, not to raise
    if not all(isinstance(arg, Column | Literal) for arg in whole.args):
        return expr
    return Literal(len(whole.args) // 2, expr.dtype)


def _truncated(expr: Call, unit: Expr) -> Expr:
    """NULL for a constant unit that nothing can be truncated to; Spark does not evaluate the operand then."""
    if not isinstance(unit, Literal) or (unit.value is not None and can_truncate(expr.function, unit.value)):
        return expr
    return Literal(None, expr.dtype)


def _connective(expr: Call) -> Expr:
    left, right = expr.args
    neutral = expr.function == "and"
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Literal) and side.value is not None:
            if side.value is neutral:
                return other
            return Literal(not neutral, t.BOOL)
    return expr
