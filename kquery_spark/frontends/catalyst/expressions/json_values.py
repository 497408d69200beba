"""FROM_JSON, whose schema and options are no arguments."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Expr
from kquery_spark.frontends.catalyst.expressions.parameters import check_parameters
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.frontends.catalyst.versions import CORRUPT_RECORD
from kquery_spark.functions.registry import function
from kquery_spark.sources.json.structs import check_struct
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.types import names as t


@EXPRESSIONS.handles("JsonToStructs", family="functions", partly="structs, without options")
def from_json(node: CatalystNode, translate: Translator) -> Expr:
    """FROM_JSON of a text, to a struct."""
    text = translate(node.child("child"))
    entry = function("from_json")
    translate.check_version(node, entry.name, (text,))
    translate.check_fields(node, *check_parameters(node, entry.parameters, entry.name))
    dtype = translate.type(node["schema"])
    check_struct(dtype)
    if any(field["name"].lower() == CORRUPT_RECORD for field in node["schema"]["fields"]):
        raise Unsupported("from_json with a column for malformed records stays with Spark")
    if text.dtype != t.STRING:
        raise Unsupported(f"from_json of {t.spark_name(text.dtype)} stays with Spark")
    if translate.facts.has_options(node):
        raise Unsupported("from_json with options stays with Spark")
    return Call.of(entry.name, text, tz=translate.zone(node), dtype=t.nullable_within(dtype))
