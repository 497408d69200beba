"""FROM_JSON, whose schema and options are not arguments."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Expr
from kquery_spark.frontends.catalyst.expressions.record_strings import text_and_schema
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator, require_loops
from kquery_spark.kernels.compiled import JSON_LOOPS
from kquery_spark.sources.json.structs import check_record
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t


@EXPRESSIONS.handles(
    "JsonToStructs",
    family="functions",
    partly="structs, and maps of values that are not nested, without options",
)
def from_json(node: CatalystNode, translate: Translator) -> Expr:
    """FROM_JSON of a string, to a struct or a map."""
    text, dtype = text_and_schema(node, translate, "from_json")
    check_record(dtype)
    if pa.types.is_map(dtype):
        require_loops(JSON_LOOPS, "from_json of a map")
    if translate.facts.has_options(node):
        raise Unsupported("from_json with options is not supported")
    return Call.of("from_json", text, tz=translate.zone(node), dtype=t.nullable_within(dtype))
