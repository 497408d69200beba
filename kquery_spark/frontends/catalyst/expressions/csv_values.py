"""FROM_CSV and TO_CSV, whose schema and options are no arguments."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.frontends.catalyst.expressions.parameters import check_parameters
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.frontends.catalyst.versions import CORRUPT_RECORD
from kquery_spark.functions.registry import function
from kquery_spark.sources.csv.structs import check_fields, described, record_options
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.types import names as t


@EXPRESSIONS.handles("CsvToStructs", family="functions", partly="fields of atomic types, and most options")
def from_csv(node: CatalystNode, translate: Translator) -> Expr:
    """FROM_CSV of a text; Spark may ask for some of the fields only."""
    text = translate(node.child("child"))
    entry = function("from_csv")
    translate.check_version(node, entry.name, (text,))
    translate.check_fields(node, *check_parameters(node, entry.parameters, entry.name))
    schema = node["schema"]
    dtype = translate.type(schema)
    required = translate.type(node.fields.get("requiredSchema") or schema)
    check_fields(dtype)
    if any(field.name.lower() == CORRUPT_RECORD for field in dtype):
        raise Unsupported("from_csv with a column for malformed records stays with Spark")
    if text.dtype != t.STRING:
        raise Unsupported(f"from_csv of {t.spark_name(text.dtype)} stays with Spark")
    zone, options = translate.zone(node), translate.facts.options(node)
    record_options(options, zone)
    names = [field.name for field in dtype]
    description = described(options, len(names), _positions(names, required))
    return Call.of(
        entry.name, text, Literal(description, t.STRING), tz=zone, dtype=t.nullable_within(required)
    )


def _positions(names: list[str], required: pa.DataType) -> list[int]:
    return [names.index(field.name) for field in required]


@EXPRESSIONS.handles("StructsToCsv", family="functions", partly="fields of atomic types, without options")
def to_csv(node: CatalystNode, translate: Translator) -> Expr:
    """TO_CSV of a struct."""
    struct = translate(node.child("child"))
    translate.check_version(node, "to_csv", (struct,))
    translate.check_fields(node, "options")
    if options := translate.facts.options(node):
        raise Unsupported(f"to_csv with the option {min(options)} stays with Spark")
    return Call.of("to_csv", struct, tz=translate.zone(node))
