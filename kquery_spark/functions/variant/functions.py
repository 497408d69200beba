"""Functions of variants: PARSE_JSON, IS_VARIANT_NULL, and VARIANT_GET, which also implements casts of variants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.errors import ExecutionError
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    ANSI_RAISES,
    CallContext,
    EvalMode,
    Function,
    JavaMethod,
    Nullability,
    VersionChange,
    accept,
    cast_to,
    depends_on_values,
    register_internal,
)
from kquery_spark.functions.variant.casts import cast_values
from kquery_spark.functions.variant.parsing import parse_variants
from kquery_spark.functions.variant.paths import check_variant_path, parse_variant_path
from kquery_spark.functions.variant.reading import malformed, values_at_path, variant_layouts
from kquery_spark.kernels.compiled import JSON_LOOPS, VARIANT_LOOPS
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

_ARGUMENTS = 2


def _variant_get(args: Sequence[Vector], context: CallContext) -> Data:
    """The value at a path, cast to a type of SQL; in TRY mode NULL where it cannot be cast.

    The third argument is there where the query casts the variant at the path.
    """
    steps = parse_variant_path(args[1].data.as_py())
    is_variant = context.dtype == t.VARIANT
    copied = is_variant or len(args) > _ARGUMENTS
    found = values_at_path(args[0], steps, context.num_rows, whole=is_variant, copied=copied)
    if is_variant:
        return found.variants()
    values, failed = cast_values(found, context)
    if context.mode is not EvalMode.TRY and failed:
        raise ExecutionError(
            "INVALID_VARIANT_CAST",
            f"A variant value cannot be cast into {t.spark_name(context.dtype).upper()}. "
            "Please use `try_variant_get` instead.",
        )
    return values


def _is_variant_null(args: Sequence[Vector], context: CallContext) -> Data:
    """Return whether a variant holds JSON's null, which is not NULL."""
    is_valid, (bounds, raw), _ = variant_layouts(args[0].array(context.num_rows))
    if (is_valid & (np.diff(bounds) == 0)).any():
        raise malformed()
    if not len(raw):
        return pa.array(np.zeros(context.num_rows, np.bool_))
    return pa.array(is_valid & (raw[np.minimum(bounds[:-1], len(raw) - 1)] == 0))


def _parse_json(args: Sequence[Vector], context: CallContext) -> Data:
    """The variants of JSON strings; in TRY mode NULL for a string that is not JSON."""
    variants, failed = parse_variants(args[0].array(context.num_rows))
    if context.mode is not EvalMode.TRY and failed:
        raise ExecutionError(
            "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION",
            "Malformed records are detected in record parsing: a string is not valid JSON.",
        )
    return variants


def _parses(fails: bool) -> tuple[JavaMethod, ...]:
    """Define PARSE_JSON with Spark's parameters: no duplicate names, and since 4.1 a check for unpaired surrogates."""
    mode = EvalMode.ANSI if fails else EvalMode.TRY
    constants: tuple[tuple[int, object], ...] = ((1, False), (2, fails))
    owner = "VariantExpressionEvalUtils"
    return tuple(JavaMethod(owner, "parseJson", each, mode) for each in ((*constants, (3, True)), constants))


_SINCE_4_0 = (VersionChange("has no variants", since=(4, 0)),)

register_internal(
    Function(
        "parse_json",
        _parse_json,
        accept(t.VARIANT, t.STRING),
        raises=ANSI_RAISES,
        loops=JSON_LOOPS,
        changes=_SINCE_4_0,
        coerce=cast_to(t.STRING),
        java=(*_parses(True), *_parses(False)),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    Function(
        "variant_get",
        _variant_get,
        depends_on_values,  # the type is the caller's
        arity=(_ARGUMENTS, _ARGUMENTS + 1),
        reads_path=True,
        nullable=Nullability.OTHER_REASONS,
        raises=ALWAYS_RAISES,
        loops=VARIANT_LOOPS,
        changes=_SINCE_4_0,
        check_values=check_variant_path,
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    Function(
        "is_variant_null",
        _is_variant_null,
        accept(t.BOOL, t.VARIANT),
        nullable=Nullability.NEVER,
        takes_variants=True,
        changes=_SINCE_4_0,
        java=(JavaMethod("VariantExpressionEvalUtils", "isVariantNull"),),
        raises=ALWAYS_RAISES,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
)
