"""IN lists, LIKE, and other predicates that are more than a registry entry applied to arguments."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Case, Expr, InList, Literal
from kquery_spark.expr.properties import can_raise, chain
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.frontends.catalyst.expressions.values import as_literal
from kquery_spark.functions.registry import for_catalyst
from kquery_spark.spark_bridge.plan.literal_values import scalar
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t


@EXPRESSIONS.handles("In", family="predicates")
def in_list(node: CatalystNode, translate: Translator) -> Expr:
    """``a IN (b, c)``: an InList for constants; equalities joined by OR if the list contains columns."""
    child = translate(node.child("value"))
    items = [translate(item) for item in node.child_list("list")]
    if not items:
        raise Unsupported("an empty IN list is not supported")
    plain = not t.is_nested(child.dtype)
    if plain and all(isinstance(item, Literal) and item.dtype == child.dtype for item in items):
        return InList(child, tuple(item for item in items if isinstance(item, Literal)))
    return chain("or", [Call.of("eq", child, item) for item in items])


@EXPRESSIONS.handles("InSet", family="predicates")
def in_set(node: CatalystNode, translate: Translator) -> Expr:
    """A long IN list, whose values are not in the JSON."""
    child = translate(node.child("child"))
    values = translate.facts.in_set_values(node, child.dtype)
    return InList(child, tuple(as_literal(scalar(value, child.dtype)) for value in values))


@EXPRESSIONS.handles("Like", family="predicates", partly="a pattern that is a constant")
def like(node: CatalystNode, translate: Translator) -> Expr:
    """``a LIKE b``; an escape character other than the default becomes the third argument."""
    function = for_catalyst("Like")
    if function is None:
        raise Unsupported("LIKE is not supported")
    left, right = translate(node.child("left")), translate(node.child("right"))
    if not isinstance(right, Literal):
        raise Unsupported("LIKE with a pattern that is not a constant is not supported")
    # The JSON loses the escape character; a pattern of wildcards alone cannot contain it.
    plain = right.value is None or not right.value.strip("%_")
    escape = "\\" if plain else translate.facts.escape_char(node)
    args = (left, right) if escape == "\\" else (left, right, Literal(escape, t.STRING))
    translate.check_version(node, function.name, args)
    return Call.of(function.name, *args)


@EXPRESSIONS.handles("LikeAll", "LikeAny", "NotLikeAll", "NotLikeAny", family="predicates")
def like_many(node: CatalystNode, translate: Translator) -> Expr:
    """LIKE ALL and LIKE ANY of constant patterns, including NULL."""
    text = translate(node.child("child"))
    conditions: list[Expr] = []
    for pattern in translate.facts.patterns(node):
        args = (text, Literal(pattern, t.STRING))
        translate.check_version(node, "like", args)
        condition = Call.of("like", *args)
        if can_raise(condition):
            raise Unsupported(f"LIKE with the malformed pattern {pattern!r} is not supported")
        conditions.append(Call.of("not", condition) if node.cls.startswith("Not") else condition)
    return chain("and" if node.cls.endswith("All") else "or", conditions)


@EXPRESSIONS.handles("AtLeastNNonNulls", family="predicates")
def at_least_n_non_nulls(node: CatalystNode, translate: Translator) -> Expr:
    """``dropna``: at least n columns are neither NULL nor NaN."""
    values = [translate(child) for child in node.child_list("children")]
    present = [_is_present(value) for value in values]
    needed: int = node["n"]
    if needed <= 0:
        return Literal(True, t.BOOL)
    # AND stops at the first NULL, but Spark evaluates all values, so AND would miss an error of a later value.
    if needed == len(present) and not any(map(can_raise, values[1:])):
        return chain("and", present)
    if needed == 1 and present:
        return chain("or", present)
    # Spark stops after ``needed`` values that are present, but the sum evaluates all of them.
    if needed < len(present) and any(map(can_raise, values[needed:])):
        raise Unsupported("dropna with a threshold over values that can raise an error is not supported")
    one, zero = Literal(1, t.INT), Literal(0, t.INT)
    count = chain("add", [Case(((condition, one),), zero) for condition in present] or [zero])
    return Call.of("gteq", count, Literal(needed, t.INT))


def _is_present(value: Expr) -> Expr:
    present = Call.of("isnotnull", value)
    if value.dtype not in (t.FLOAT, t.DOUBLE):
        return present
    return Call.of("and", present, Call.of("not", Call.of("isnan", value)))
