"""Higher-order functions of arrays and maps."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Case, Column, Expr, Literal
from kquery_spark.expr.folds import finished
from kquery_spark.expr.lambdas import HigherOrder
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.functions.nested.higher_order import higher_order_classes, higher_order_for_catalyst
from kquery_spark.functions.registry import EvalMode
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t

_OWN_HANDLERS = ("ArrayAggregate", "ArraySort")


@EXPRESSIONS.handles(*(cls for cls in higher_order_classes() if cls not in _OWN_HANDLERS), family="lambdas")
def higher_order(node: CatalystNode, translate: Translator) -> Expr:
    """TRANSFORM, FILTER, MAP_FILTER etc.: the body can read its parameters and the columns of the row."""
    translate.check_fields(node, "followThreeValuedLogic")
    if node.fields.get("followThreeValuedLogic") is False:
        raise Unsupported("exists() with two-valued logic is not supported")
    *arguments, function = node.children
    return _call(node, [translate(a) for a in arguments], function, translate)


@EXPRESSIONS.handles("ArrayAggregate", family="lambdas")
def aggregate(node: CatalystNode, translate: Translator) -> Expr:
    """AGGREGATE: the second lambda converts the last state to the result."""
    translate.check_fields(node)
    array, zero = (translate(node.child(name)) for name in ("argument", "zero"))
    folded = _call(node, [array, zero], node.child("merge"), translate)
    body, states = _lambda(node.child("finish"))
    if len(states) != 1:
        raise Unsupported("AGGREGATE with an end of several parameters is not supported")
    (state,) = translate.bind(states, [Column(_name(states[0]), folded.dtype)])
    return finished(folded, state.name, translate(body))


@EXPRESSIONS.handles(
    "ArraySort", family="lambdas", partly="by the order of elements, or by a lambda that orders all of them"
)
def array_sort(node: CatalystNode, translate: Translator) -> Expr:
    """ARRAY_SORT; a lambda that is the default comparison is translated to the natural order of the elements."""
    translate.check_fields(node, "allowNullComparisonResult")
    call = _call(node, [translate(node.child("argument"))], node.child("function"), translate)
    left, right = (Column(f.name, f.type, f.nullable) for f in call.parameter_fields)
    # Spark's optimizer removes the NULL checks from the default comparison if the elements cannot be NULL. If they can be
    # NULL, a comparison without these checks is a user's lambda, for which NULL is equal to every other element.
    if call.body == _default_order(left, right) or (not left.nullable and call.body == _order(left, right)):
        return Call.of(call.entry.without_lambda, *call.arguments)
    if node["allowNullComparisonResult"]:
        raise Unsupported("array_sort by a lambda that may give NULL is not supported")
    return call


def _default_order(left: Expr, right: Expr) -> Expr:
    """Build the default comparison of ARRAY_SORT: NULLs are equal, and greater than all other values."""
    is_null = [Call.of("isnull", side) for side in (left, right)]
    right_null = Case(((is_null[1], Literal(-1, t.INT)),), _order(left, right))
    left_null = Case(((is_null[0], Literal(1, t.INT)),), right_null)
    return Case(((Call.of("and", *is_null), Literal(0, t.INT)),), left_null)


def _order(left: Expr, right: Expr) -> Expr:
    greater = Case(((Call.of("gt", left, right), Literal(1, t.INT)),), Literal(0, t.INT))
    return Case(((Call.of("lt", left, right), Literal(-1, t.INT)),), greater)


@EXPRESSIONS.handles("NamedLambdaVariable", family="lambdas")
def variable(node: CatalystNode, translate: Translator) -> Expr:
    """A parameter of an enclosing lambda."""
    bound = translate.variables.get(node["exprId"])
    if bound is None:
        raise Unsupported("a parameter of a lambda outside of it falls back to Spark")
    return bound


def _call(
    node: CatalystNode, arguments: Sequence[Expr], function: CatalystNode, translate: Translator
) -> HigherOrder:
    """Build the call of the higher-order function for a node's class, with these arguments and a lambda."""
    entry = higher_order_for_catalyst(node.cls)
    body, parameters = _lambda(function)
    fields = entry.parameters([a.dtype for a in arguments])
    columns = [Column(_name(p), f.type, f.nullable) for p, f in zip(parameters, fields, strict=False)]
    translate.bind(parameters, columns)
    mode = EvalMode.LEGACY if entry.raises and translate.last_key_wins else EvalMode.ANSI
    return HigherOrder.of(entry.name, arguments, translate(body), columns, mode)


def _lambda(function: CatalystNode) -> tuple[CatalystNode, Sequence[CatalystNode]]:
    """The body and the parameters of a lambda."""
    if function.cls != "LambdaFunction":
        raise Unsupported("a function that is not a lambda is not supported")
    body, *parameters = function.children
    if any(parameter.cls != "NamedLambdaVariable" for parameter in parameters):
        raise Unsupported("a parameter that Spark did not resolve is not supported")
    return body, parameters


def _name(parameter: CatalystNode) -> str:
    return f"lambda {parameter['name']}#{parameter['exprId']}"
