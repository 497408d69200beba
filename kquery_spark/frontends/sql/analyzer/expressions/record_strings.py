"""FROM_JSON: a string, and the schema of the record in it as another string."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import SqlError, Unsupported
from kquery_spark.expr import Call, Expr
from kquery_spark.frontends.sql import parse_type
from kquery_spark.frontends.sql.analyzer.constants import constant_of
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import CALLS, ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.types import arrow_type
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.sources.json.structs import check_record
from kquery_spark.types import names as t


@CALLS.handles("from_json")
def _from_json(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """FROM_JSON with a constant schema and without options."""
    if len(node.arguments) == 3:
        raise Unsupported("from_json with options is not supported")
    if len(node.arguments) != 2:
        analyzer.fail("[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] from_json takes a text and a schema", node)
    text, schema = analyzer.arguments(node)
    constant = constant_of(schema)
    if constant is None or not isinstance(constant.value, str):
        analyzer.fail(
            "[INVALID_SCHEMA.NON_STRING_LITERAL] the schema of from_json has to be a constant string", node
        )
    if text.dtype != t.STRING:
        raise Unsupported(f"from_json of {t.spark_name(text.dtype)} is not supported")
    dtype = _record_type(constant.value, analyzer.facts.time_zone)
    check_record(dtype)
    return Call.of("from_json", text, tz=analyzer.facts.time_zone, dtype=t.nullable_within(dtype))


def _record_type(schema: str, time_zone: str) -> pa.DataType:
    """Parse a schema string, which is a list of columns (``a INT, b STRING``) or the name of a type."""
    try:
        node = parse_type(f"struct<{schema}>")
    except SqlError:
        node = parse_type(schema)
    dtype = None if "char" in schema.lower() else arrow_type(node, time_zone)
    if dtype is None:
        raise Unsupported(f"from_json with the schema {schema} is not supported")
    return dtype
