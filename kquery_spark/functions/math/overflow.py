"""Creates Spark's arithmetic errors, and checks intervals for overflow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.functions.registry import CallContext, EvalMode
from kquery_spark.types import names as t
from kquery_spark.types.vector import Vector


def overflow(dtype: pa.DataType, binary: bool = False) -> ExecutionError:
    """Return Spark's error for integer overflow. binary: whether the operation is ``+``, ``-`` or ``*``."""
    if binary and dtype in (t.BYTE, t.SHORT):
        return ExecutionError(
            "BINARY_ARITHMETIC_OVERFLOW", f"The operation caused overflow of {t.spark_name(dtype)}."
        )
    name = {t.BYTE: "byte", t.SHORT: "short", t.INT: "integer", t.LONG: "long"}.get(
        dtype, t.spark_name(dtype)
    )
    return ExecutionError(
        "ARITHMETIC_OVERFLOW",
        f'{name} overflow. If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error.',
    )


def interval_overflow(subclass: str = "") -> ExecutionError:
    """Return Spark's error for an interval that is too long. subclass: the subclass of the error class, if any."""
    return ExecutionError(
        f"INTERVAL_ARITHMETIC_OVERFLOW{subclass and '.'}{subclass}",
        "Integer overflow while operating with intervals.",
    )


def mode_for_types(types: Sequence[pa.DataType], mode: EvalMode) -> EvalMode:
    """Return the mode in which a call runs. types: the argument types. mode: that of the session or of a ``try_`` function.

    Overflow of intervals is an error in every session. Raises Unsupported for a ``try_`` function, which would return NULL.
    """
    if not types or not t.is_interval(types[0]):
        return mode
    if mode is EvalMode.TRY:
        raise Unsupported("interval arithmetic that returns NULL on overflow is not supported")
    return EvalMode.ANSI


def as_intervals(counts: pa.Array, dtype: pa.DataType, too_long: ExecutionError) -> pa.Array:
    """Convert counts of microseconds or months to intervals. Raises ``too_long`` for a count that exceeds Spark's type."""
    try:
        counts.cast(t.INTERVAL_STORAGE[dtype])
    except pa.ArrowInvalid:
        raise too_long from None
    return counts.view(dtype)


def checked_intervals(
    kernel: Callable[..., pa.Array],
    intervals: Sequence[Vector],
    context: CallContext,
    too_long: ExecutionError,
) -> pa.Array:
    """Apply a checked arithmetic kernel to intervals, as their counts of units. Raises ``too_long`` on overflow."""
    counts = [vector.array(context.num_rows).view(t.LONG) for vector in intervals]
    try:
        result = kernel(*counts)
    except pa.ArrowInvalid:
        raise too_long from None
    return as_intervals(result, context.dtype, too_long)


def divide_by_zero() -> ExecutionError:
    """Return Spark's error for a zero divisor in ANSI mode."""
    return ExecutionError(
        "DIVIDE_BY_ZERO",
        "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. "
        'If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error.',
    )


def remainder_by_zero() -> ExecutionError:
    """Return Spark's error for a zero divisor of ``%`` in ANSI mode."""
    return ExecutionError(
        "REMAINDER_BY_ZERO",
        "Remainder by zero. Use `try_mod` to tolerate divisor being 0 and return NULL instead. "
        'If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error.',
    )
