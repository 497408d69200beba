"""FROM_CSV and TO_CSV, whose schema and options are not arguments."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.frontends.catalyst.expressions.record_strings import text_and_schema
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.sources.csv.structs import check_fields, encoded_parameters, record_options
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t


@EXPRESSIONS.handles("CsvToStructs", family="functions", partly="fields of atomic types, and most options")
def from_csv(node: CatalystNode, translate: Translator) -> Expr:
    """FROM_CSV of a string. ``requiredSchema`` names the fields that the query uses, if these are not all."""
    text, dtype = text_and_schema(node, translate, "from_csv")
    required = translate.type(node.fields.get("requiredSchema") or node["schema"])
    check_fields(dtype)
    zone, options = translate.zone(node), translate.facts.options(node)
    record_options(options, zone)
    names = [field.name for field in dtype]
    parameters = encoded_parameters(options, len(names), [names.index(field.name) for field in required])
    return Call.of(
        "from_csv", text, Literal(parameters, t.STRING), tz=zone, dtype=t.nullable_within(required)
    )


@EXPRESSIONS.handles("StructsToCsv", family="functions", partly="fields of atomic types, without options")
def to_csv(node: CatalystNode, translate: Translator) -> Expr:
    """TO_CSV of a struct."""
    struct = translate(node.child("child"))
    translate.check_version(node, "to_csv", (struct,))
    translate.check_fields(node, "options")
    if options := translate.facts.options(node):
        raise Unsupported(f"to_csv with the option {min(options)} is not supported")
    return Call.of("to_csv", struct, tz=translate.zone(node))
