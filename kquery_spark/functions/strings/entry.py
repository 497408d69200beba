"""Builds the registry entries of string functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kquery_spark.functions.registry import (
    Coercion,
    Function,
    TypeRule,
    accept,
    cast_to,
)
from kquery_spark.types import names as t

STRING_MATCH_SELECTIVITY = 0.1
"""Expected share of rows whose string matches a pattern or contains another string."""


def is_string_or_binary(dtype: pa.DataType) -> bool:
    """Return whether the type is string or binary."""
    return bool(dtype in (t.STRING, t.BINARY))


def _to_string_or_binary(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return [dtype if is_string_or_binary(dtype) else t.STRING for dtype in types]


def string_function(
    name: str,
    kernel: Any,
    result: pa.DataType | TypeRule,
    catalyst: str,
    allowed: tuple[Any, ...] = (t.STRING,),
    arity: tuple[int, int | None] | None = None,
    coerce: Coercion | None = None,
    **options: Any,
) -> Function:
    """Build the entry of a string function. allowed: for each argument its type, or a predicate of types."""
    counts = arity or (len(allowed), len(allowed))
    targets = tuple(a for a in allowed if isinstance(a, pa.DataType))
    rule = accept(result, *allowed)
    casts = coerce or (cast_to(*targets) if len(targets) == len(allowed) else _to_string_or_binary)
    return Function(
        name, kernel, rule, catalyst=(catalyst,) if catalyst else (), arity=counts, coerce=casts, **options
    )
