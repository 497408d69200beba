"""Functions of arrays with a lambda."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Column, Expr
from kquery_spark.expr.lambdas import HigherOrder
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.functions.special_forms import higher_order_classes, higher_order_for_catalyst
from kquery_spark.spark_bridge.plan_tree import CatalystNode


@EXPRESSIONS.handles(*higher_order_classes(), family="lambdas")
def higher_order(node: CatalystNode, translate: Translator) -> Expr:
    """TRANSFORM, FILTER, EXISTS and FORALL: the body sees its parameters beside the columns of the row."""
    translate.check_fields(node, "followThreeValuedLogic")
    if node.fields.get("followThreeValuedLogic") is False:
        raise Unsupported("EXISTS of two truth values stays with Spark")
    array, function = node.children
    if function.cls != "LambdaFunction":
        raise Unsupported("a function that is no lambda stays with Spark")
    body, *parameters = function.children
    columns = [_variable(parameter, translate) for parameter in parameters]
    return HigherOrder.of(
        higher_order_for_catalyst(node.cls).name, translate(array), translate(body), columns
    )


@EXPRESSIONS.handles("NamedLambdaVariable", family="lambdas")
def variable(node: CatalystNode, translate: Translator) -> Expr:
    """A parameter of the lambda around it."""
    return _variable(node, translate)


def _variable(node: CatalystNode, translate: Translator) -> Column:
    if node.cls != "NamedLambdaVariable":
        raise Unsupported("a parameter that Spark did not resolve stays with Spark")
    return Column(
        f"lambda {node['name']}#{node['exprId']}", translate.type(node["dataType"]), node["nullable"]
    )
