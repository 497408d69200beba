"""The common part of FROM_CSV and FROM_JSON: a string, and the schema of the record in it."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Expr
from kquery_spark.frontends.catalyst.expressions.parameters import check_parameters
from kquery_spark.frontends.catalyst.expressions.translator import Translator
from kquery_spark.frontends.catalyst.versions import CORRUPT_RECORD
from kquery_spark.functions.registry import function
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t


def text_and_schema(node: CatalystNode, translate: Translator, name: str) -> tuple[Expr, pa.DataType]:
    """The string and the type of its record; raises Unsupported for a call whose result may differ from Spark's."""
    text = translate(node.child("child"))
    translate.check_version(node, name, (text,))
    translate.check_fields(node, *check_parameters(node, function(name).parameters, name))
    dtype = translate.type(node["schema"])
    if pa.types.is_struct(dtype) and any(field.name.lower() == CORRUPT_RECORD for field in dtype):
        raise Unsupported(f"{name} with a column for malformed records is not supported")
    if text.dtype != t.STRING:
        raise Unsupported(f"{name} of {t.spark_name(text.dtype)} is not supported")
    return text, dtype
