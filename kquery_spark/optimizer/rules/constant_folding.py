"""Replaces expressions that do not depend on rows by literals, and simplifies others with the help of constants."""

from __future__ import annotations

from dataclasses import replace

from kquery_spark.errors import KQueryError
from kquery_spark.expr import Call, Case, Cast, Column, Expr, HigherOrder, InList, Literal, transform
from kquery_spark.expr.constants import evaluate_constant
from kquery_spark.expr.properties import is_constant, is_deterministic, is_null_literal
from kquery_spark.functions.registry import Branching, Constructor, Simplification
from kquery_spark.functions.sql_form import Logic
from kquery_spark.logical import LogicalPlan, transform_plan
from kquery_spark.logical.plan import rewrite_expressions
from kquery_spark.types import names as t


def constant_folding(plan: LogicalPlan) -> LogicalPlan:
    """Fold constants, as these rules of Catalyst do:

        #a > (1 + 2)                         ->  #a > 3       ConstantFolding
        TRUE AND x                           ->  x            BooleanSimplification
        x AND FALSE                          ->  FALSE        BooleanSimplification
        x + NULL                             ->  NULL         NullPropagation
        named_struct('a', x, 'b', y).a       ->  x            SimplifyExtractValueOps
        size(map(#x, #y))                    ->  1            ConstantFolding
        lower(upper(x))                      ->  lower(x)     SimplifyCaseConversionExpressions
        CASE WHEN y THEN x ELSE x END        ->  x            SimplifyConditionals

    The rules have to be exactly Spark's, because they decide whether a query raises: all but the first drop operands that
    would raise an error, as Spark does. Dropping also changes some values, for example those of ``lower(upper(x))``.

    A constant expression that raises an error is not folded. ``check_constants`` raises the error if Spark does so
    without any row. Otherwise it is raised when a row reaches the expression.
    """
    return transform_plan(plan, lambda node: rewrite_expressions(node, lambda e: transform(e, _fold)))


def _fold(expr: Expr) -> Expr:
    if isinstance(expr, HigherOrder):
        body = transform(expr.body, _fold)
        return expr if body is expr.body else expr.with_body(body)
    if isinstance(expr, Case):
        otherwise = Literal(None, expr.dtype) if expr.otherwise is None else expr.otherwise
        if _has_equal_branches(expr, otherwise):
            return otherwise
    if isinstance(expr, Call):
        if expr.entry.operator.connective:
            return _fold_connective(expr)
        # NULL in a strict operator: the other operand is dropped even if it would raise.
        if expr.entry.is_strict_operator and any(map(is_null_literal, expr.args)):
            return Literal(None, expr.dtype)
        if expr.logic in (Logic.IS_NULL, Logic.IS_NOT_NULL) and not expr.args[0].nullable:
            return Literal(expr.logic is Logic.IS_NOT_NULL, t.BOOL)
        if expr.entry.branching is Branching.NUMBERED:
            return _fold_elt(expr, expr.args[0])
        if expr.entry.null_for is not None:
            is_null = expr.entry.null_for([arg.dtype for arg in expr.args], expr.literals)
            return Literal(None, expr.dtype) if is_null else expr
        match expr.entry.simplification:
            case Simplification.CASE_CHANGE:
                return _fold_case_change(expr, expr.args[0])
            case Simplification.ELEMENT:
                return _fold_element(expr)
            case Simplification.MAP_VALUE:
                return _fold_map_value(expr, *expr.args)
            case Simplification.SIZE:
                return _fold_size(expr, expr.args[0])
    return _evaluate_if_constant(expr) if isinstance(expr, Call | Cast | Case | InList) else expr


def _evaluate_if_constant(expr: Expr) -> Expr:
    """Return the value of a constant expression. Other expressions, and constants that raise, are returned unchanged."""
    # Literals hold only flat values, which can be compared and serialized.
    if t.is_nested(expr.dtype) or not is_constant(expr):
        return expr
    try:
        return evaluate_constant(expr)
    except KQueryError:
        return expr


def _fold_case_change(expr: Call, string: Expr) -> Expr:
    """Drop the inner one of two nested changes of case."""
    if isinstance(string, Call) and string.entry.simplification is Simplification.CASE_CHANGE:
        return replace(expr, args=string.args)
    return expr


def _fold_elt(expr: Call, index: Expr) -> Expr:
    """Return the argument that ELT with a constant index selects; Spark evaluates only this one."""
    if not isinstance(index, Literal):
        return expr
    others = expr.args[1:]
    inside = index.value is not None and 0 < index.value <= len(others)
    return others[index.value - 1] if inside and others[index.value - 1].dtype == expr.dtype else expr


def _has_equal_branches(case: Case, otherwise: Expr) -> bool:
    """True if all branches of a CASE have the same value as its ELSE, so that Spark evaluates no condition."""
    return is_deterministic(case) and all(value == otherwise for _, value in case.branches)


def _fold_element(expr: Call) -> Expr:
    """Return ``x`` for ``named_struct('a', x, 'b', y).a`` and ``array(x, y)[0]``; Spark does not evaluate ``y``."""
    whole, ordinal = expr.args
    if not isinstance(whole, Call) or not isinstance(ordinal, Literal) or ordinal.value is None:
        return expr
    match whole.entry.builds:
        case Constructor.STRUCT:
            parts = whole.args[1::2]
        case Constructor.ARRAY:
            parts = whole.args
        case _:
            return expr
    inside = 0 <= ordinal.value < len(parts)
    return parts[ordinal.value] if inside and parts[ordinal.value].dtype == expr.dtype else expr


def _fold_map_value(expr: Call, whole: Expr, key: Expr) -> Expr:
    """Return ``CASE WHEN k = a THEN x WHEN k = b THEN y END`` for ``map(a, x, b, y)[k]``.

    As in Spark, the map is not built then, so duplicate or NULL keys raise no error.
    """
    if not isinstance(whole, Call) or whole.entry.builds is not Constructor.MAP:
        return expr
    keys, values = whole.args[::2], whole.args[1::2]
    if not keys or any(k.dtype != key.dtype for k in keys) or any(v.dtype != expr.dtype for v in values):
        return expr
    return Case(tuple((Call.of("eq", key, k), v) for k, v in zip(keys, values, strict=True)))


def _fold_size(expr: Call, whole: Expr) -> Expr:
    """Return 2 for ``size(map(a, x, b, y))``. As in Spark, duplicate or NULL keys raise no error then."""
    if not isinstance(whole, Call) or whole.entry.builds is not Constructor.MAP:
        return expr
    # Spark does this only for expressions that it knows never to raise: columns, literals and very few functions.
    if not all(isinstance(arg, Column | Literal) for arg in whole.args):
        return expr
    return Literal(len(whole.args) // 2, expr.dtype)


def _fold_connective(expr: Call) -> Expr:
    """Fold AND and OR with a constant operand."""
    left, right = expr.args
    neutral = expr.logic is Logic.AND  # TRUE AND x is x, and FALSE OR x is x
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Literal) and side.value is not None:
            if side.value is neutral:
                return other
            return Literal(not neutral, t.BOOL)
    return expr
