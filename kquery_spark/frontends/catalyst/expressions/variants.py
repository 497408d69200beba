"""Values of variants: VARIANT_GET, casts, and values that Spark's scans extract from a variant."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator, require_loops
from kquery_spark.functions.registry import EvalMode
from kquery_spark.kernels.compiled import VARIANT_LOOPS
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t
from kquery_spark.types.spark_json import variant_path

_WHOLE = "$"


@EXPRESSIONS.handles(
    "VariantGet", family="functions", partly="to variants and types that are not nested, by a constant path"
)
def variant_get(node: CatalystNode, translate: Translator) -> Expr:
    """VARIANT_GET and TRY_VARIANT_GET, and the syntax ``v:path``."""
    translate.check_fields(node, "targetType", "failOnError")
    variant, path = node.children
    mode = EvalMode.ANSI if node["failOnError"] else EvalMode.TRY
    dtype = _target(node["targetType"], translate)
    args = (translate.with_variants(variant), translate(path))
    return _get(args, dtype, mode, translate.zone(node))


def value_extracted_by_scan(attribute: CatalystNode, ordinal: int, translate: Translator) -> Expr:
    """A field of the struct that replaces a variant from which Spark's scan extracts values."""
    variant = translate.with_variants(attribute)
    read = variant_path(attribute["dataType"], ordinal)
    if read is None or (read.path == _WHOLE and read.type == "variant"):
        return variant
    mode = EvalMode.ANSI if read.fails else EvalMode.TRY
    args = (variant, Literal(read.path, t.STRING))
    return _get(args, _target(read.type, translate), mode, read.time_zone)


def cast_of_variant(child: Expr, target: pa.DataType, node: CatalystNode, translate: Translator) -> Expr:
    """A cast of a variant; a cast of a value at a path extracts the value in the target type directly."""
    if t.is_nested(target):
        raise Unsupported(f"a variant as {t.spark_name(target)} is not supported")
    mode = EvalMode.TRY if translate.eval_mode(node) is EvalMode.TRY else EvalMode.ANSI
    args: tuple[Expr, ...] = (child, Literal(_WHOLE, t.STRING))
    if isinstance(child, Call) and child.entry.reads_path:
        args = (*child.args, Literal(True, t.BOOL))
    return _get(args, target, mode, translate.zone(node))


def _target(spark: Any, translate: Translator) -> pa.DataType:
    dtype = t.VARIANT if spark == "variant" else translate.type(spark)
    if t.is_nested(dtype) and dtype != t.VARIANT:
        raise Unsupported(f"variant_get as {t.spark_name(dtype)} is not supported")
    return dtype


def _get(args: tuple[Expr, ...], dtype: pa.DataType, mode: EvalMode, zone: str) -> Expr:
    require_loops(VARIANT_LOOPS, "variant_get")
    return Call.of("variant_get", *args, mode=mode, tz=zone, dtype=dtype)
