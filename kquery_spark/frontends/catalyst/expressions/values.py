"""Columns, constants, names and scalar subqueries."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.frontends.catalyst.expressions.variants import value_extracted_by_scan
from kquery_spark.frontends.catalyst.file_columns import INPUT_FILE_COLUMNS, field_id
from kquery_spark.frontends.catalyst.literals import literal
from kquery_spark.frontends.catalyst.scope import same_type
from kquery_spark.sources.file_columns import METADATA
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t
from kquery_spark.types.spark_json import is_variant


@EXPRESSIONS.handles("AttributeReference", family="values")
def attribute(node: CatalystNode, translate: Translator) -> Expr:
    """Translate a column. Its type in the engine must equal Spark's type, which verifies all type rules below this node."""
    expr_id = node["exprId"]
    if expr_id not in translate.columns:
        raise Unsupported(f"the column {node['name']} cannot be read by the engine")
    column = translate.columns[expr_id]
    if column is None:
        raise Unsupported(f"the column {node['name']} comes from both sides of a join")
    if column.type == t.VARIANT and is_variant(node["dataType"]):
        return column
    if not same_type(column.type, translate.type(node["dataType"])):
        raise Unsupported(
            f"{node['name']} is {t.spark_name(column.type)} in the engine and {node['dataType']} in Spark"
        )
    return column


@EXPRESSIONS.handles("InputFileName", family="values", partly="in a Project or Filter right over files")
@EXPRESSIONS.handles(
    "InputFileBlockStart",
    "InputFileBlockLength",
    family="values",
    partly="in a Project or Filter right over files that Spark does not cut",
)
def input_file(node: CatalystNode, translate: Translator) -> Expr:
    """INPUT_FILE_NAME, INPUT_FILE_BLOCK_START and INPUT_FILE_BLOCK_LENGTH."""
    column_id, _ = INPUT_FILE_COLUMNS[node.cls]
    column = translate.columns.get(column_id)
    if column is None:
        raise Unsupported("which file is being read is known to Spark only")
    return column


@EXPRESSIONS.handles("Literal", family="values")
def constant(node: CatalystNode, translate: Translator) -> Expr:
    """Translate a constant; an array, a map or a struct becomes a call with its parts as arguments."""
    return _constant(literal(node, translate.facts, translate.time_zone))


def _constant(scalar: pa.Scalar) -> Expr:
    dtype = scalar.type
    if not scalar.is_valid or not t.is_nested(dtype):
        return as_literal(scalar)
    if pa.types.is_map(dtype):
        return _map(scalar)
    if pa.types.is_struct(dtype):
        parts: list[Expr] = []
        for position, field in enumerate(dtype):
            parts += [Literal(field.name, t.STRING), _constant(pc.struct_field(scalar, [position]))]
        return Call.of("named_struct", *parts)
    parts = [_constant(element) for element in scalar.values]
    return Call.of("array", *parts, dtype=None if parts else pa.list_(dtype.value_type))


def _map(scalar: pa.Scalar) -> Expr:
    parts = [_constant(pc.struct_field(entry, [side])) for entry in scalar.values for side in range(2)]
    zeros = [p.value for p in parts[::2] if isinstance(p, Literal) and t.is_fractional(p.dtype)]
    if any(zero == 0 and math.copysign(1, zero) < 0 for zero in zeros):
        raise Unsupported("a constant map with the key -0.0 is not supported")
    return Call.of("map", *parts, dtype=scalar.type)


def as_literal(scalar: pa.Scalar) -> Literal:
    """Convert an Arrow scalar to a literal; temporal values become days or microseconds."""
    dtype = scalar.type
    if not scalar.is_valid:
        return Literal(None, dtype)
    if t.is_nested(dtype):
        raise Unsupported(f"a constant of type {t.spark_name(dtype)} is not supported")
    return Literal(scalar.value if pa.types.is_temporal(dtype) else scalar.as_py(), dtype)


@EXPRESSIONS.handles("Alias", family="values")
@EXPRESSIONS.handles("KnownNotNull", "KnownNullable", "KnownFloatingPointNormalized", family="values")
@EXPRESSIONS.handles("KnownNotContainsNull", "PromotePrecision", family="values")
def translate_child(node: CatalystNode, translate: Translator) -> Expr:
    """Translate a node that only names its child or asserts something about it: to the child."""
    return translate.with_variants(node.children[0])


@EXPRESSIONS.handles(
    "Collate", family="values", partly="UTF8_BINARY, which is how strings compare without it"
)
def collate(node: CatalystNode, translate: Translator) -> Expr:
    """COLLATE with the default collation, in which strings are compared by bytes."""
    text, collation = node.children
    name = str(collation.fields.get("collationName"))
    if name.upper().rsplit(".", 1)[-1] != "UTF8_BINARY":
        raise Unsupported(f"collate {name} needs collation-aware comparison")
    return translate(text)


@EXPRESSIONS.handles("ScalarSubquery", family="values", partly="uncorrelated")
def scalar_subquery(node: CatalystNode, translate: Translator) -> Expr:
    """The value of a subquery, as a column that a join adds."""
    if node.children:
        raise Unsupported("a correlated scalar subquery is not supported")
    if translate.subqueries is None:
        raise Unsupported("a scalar subquery at this place is not supported")
    return translate.subqueries.scalar(node)


@EXPRESSIONS.handles("WindowExpression", family="windows", partly="functions and aggregates in the registry")
def window_expression(node: CatalystNode, translate: Translator) -> Expr:
    """A window function: the column with its value."""
    if translate.windows is None:
        raise Unsupported("a window function at this place is not supported")
    return translate.windows.column(node)


@EXPRESSIONS.handles(
    "GetStructField", family="values", partly="of a struct, or of a subquery that Spark merged"
)
def struct_field(node: CatalystNode, translate: Translator) -> Expr:
    """A field of a struct; for a subquery that Spark merged from several ones, it is a column, and no struct is built."""
    child = node.child("child")
    if child.cls == "AttributeReference" and child["name"] == METADATA:
        column_id = field_id(child, node["ordinal"])
        known = None if column_id is None else translate.columns.get(column_id)
        if known is not None:
            return known
    if child.cls == "AttributeReference" and is_variant(child["dataType"]):
        return value_extracted_by_scan(child, node["ordinal"], translate)
    if child.cls == "ScalarSubquery" and translate.subqueries is not None:
        merged = translate.subqueries.field(node)
        if merged is not None:
            return merged
    translate.check_fields(node, "ordinal", "name")
    return Call.of("get_struct_field", translate(child), Literal(node["ordinal"], t.INT))


@EXPRESSIONS.handles("GetArrayStructFields", family="values")
def field_of_each(node: CatalystNode, translate: Translator) -> Expr:
    """The array of one field of the structs in an array."""
    translate.check_fields(node, "ordinal", "field", "numFields", "containsNull")
    child = translate(node.child("child"))
    return Call.of("get_array_struct_fields", child, Literal(node["ordinal"], t.INT))
