"""Columns, constants, names and scalar subqueries."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.frontends.catalyst.literals import literal
from kquery_spark.frontends.catalyst.scope import same_type
from kquery_spark.frontends.catalyst.tree import CatalystNode
from kquery_spark.types import names as t


@EXPRESSIONS.handles("AttributeReference", family="values")
def attribute(node: CatalystNode, translate: Translator) -> Expr:
    """A column; its type in the engine must be what Spark says, which checks every type rule below."""
    expr_id = node["exprId"]
    if expr_id not in translate.columns:
        raise Unsupported(f"the column {node['name']} cannot be read by the engine")
    column = translate.columns[expr_id]
    if column is None:
        raise Unsupported(f"the column {node['name']} comes from both sides of a join")
    if not same_type(column.type, translate.type(node["dataType"])):
        raise Unsupported(
            f"{node['name']} is {t.spark_name(column.type)} in the engine and {node['dataType']} in Spark"
        )
    return column


@EXPRESSIONS.handles("Literal", family="values", partly="constants of nested types stay with Spark")
def constant(node: CatalystNode, translate: Translator) -> Literal:
    """A constant."""
    return as_literal(literal(node, translate.facts, translate.time_zone))


def as_literal(scalar: pa.Scalar) -> Literal:
    """An Arrow scalar as a literal: temporal values as days or microseconds."""
    dtype = scalar.type
    if not scalar.is_valid:
        return Literal(None, dtype)
    if t.is_nested(dtype):
        raise Unsupported(f"a constant of type {t.spark_name(dtype)} stays with Spark")
    return Literal(scalar.value if pa.types.is_temporal(dtype) else scalar.as_py(), dtype)


@EXPRESSIONS.handles("Alias", family="values")
@EXPRESSIONS.handles("KnownNotNull", "KnownNullable", "KnownFloatingPointNormalized", family="values")
@EXPRESSIONS.handles("KnownNotContainsNull", "PromotePrecision", family="values")
def same(node: CatalystNode, translate: Translator) -> Expr:
    """A name, or a promise about the value: only the value counts."""
    return translate(node.children[0])


@EXPRESSIONS.handles("NormalizeNaNAndZero", family="values")
def normalize(node: CatalystNode, translate: Translator) -> Expr:
    """-0.0 becomes 0.0, which adding 0.0 does; all NaNs are one to the engine's keys."""
    child = translate(node.children[0])
    if not t.is_fractional(child.dtype):
        raise Unsupported(f"NormalizeNaNAndZero of {t.spark_name(child.dtype)} stays with Spark")
    return Call.of("add", child, Literal(0.0, child.dtype))


@EXPRESSIONS.handles(
    "ScalarSubquery", family="values", partly="uncorrelated, of a plan that gives one row at most"
)
def scalar_subquery(node: CatalystNode, translate: Translator) -> Expr:
    """The value of a subquery, as a column that a join brings."""
    if node.children:
        raise Unsupported("a correlated scalar subquery stays with Spark")
    if translate.subqueries is None:
        raise Unsupported("a scalar subquery at this place stays with Spark")
    return translate.subqueries.scalar(node)


@EXPRESSIONS.handles("WindowExpression", family="windows", partly="functions and aggregates in the registry")
def window_expression(node: CatalystNode, translate: Translator) -> Expr:
    """A function over a window: the column that holds its value."""
    if translate.windows is None:
        raise Unsupported("a window function at this place stays with Spark")
    return translate.windows.column(node)


@EXPRESSIONS.handles(
    "GetStructField", family="values", partly="of a subquery that Spark merged; or a registered function"
)
def struct_field(node: CatalystNode, translate: Translator) -> Expr:
    """One value of a subquery that Spark merged from several: the struct is never built."""
    child = node.child("child")
    if child.cls == "ScalarSubquery" and translate.subqueries is not None:
        return translate.subqueries.scalar(node)
    raise Unsupported("fields of structs stay with Spark")
