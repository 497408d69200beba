"""Calls functions whose arguments contain strings that are not valid UTF-8.

Most kernels require valid strings. ``calling.call`` checks the arguments of every function, unless its entry declares that
the kernel works on bytes (``InvalidUtf8.BYTES``). So neither sources nor casts have to validate strings. If an argument has
malformed strings, the entry's rule decides: the call is declined, the strings are first decoded as in Java, or a Python
function computes the result of each affected row, while the kernel computes the other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.kernels.text import if_else
from kquery_spark.kernels.utf8 import (
    Bools,
    has_strings,
    has_surrogates,
    invalid_rows,
    is_replaceable,
    is_valid,
    replace_malformed,
    strings_from_bytes,
)
from kquery_spark.kernels.utf8_string import ReadPastEnd
from kquery_spark.run_control import bounding_control, check_run
from kquery_spark.types import names as t
from kquery_spark.types.str_enum import StrEnum
from kquery_spark.types.vector import Data, Vector

_CHECKED_ROWS = 4096  # rows between two checks whether the run is cancelled or exceeds its memory limit


class InvalidUtf8(StrEnum):
    """How a function treats strings that are not valid UTF-8.

    DECLINED: Spark's result is not known, so the call is not supported. BYTES: the kernel works on bytes as Spark does.
    REPLACED: Spark converts the strings to Java strings first, in which each malformed sequence is U+FFFD. VALIDATED: the
    same, but Spark's releases differ for encoded surrogates (ED A0 80), so strings with these bytes are declined.
    """

    DECLINED = "declined"
    BYTES = "bytes"
    REPLACED = "replaced"
    VALIDATED = "validated"


RowRule = Callable[..., Any]
"""Computes the result of one row from its arguments. No argument is NULL; strings, also as a result, are bytes.

It applies to arguments that are strings; for nested values the kernel of such a function must work on bytes."""


def has_malformed_strings(rule: InvalidUtf8 | RowRule, args: Sequence[Vector]) -> bool:
    """Return whether the kernel needs valid strings and an argument contains a string that is not valid UTF-8."""
    return rule is not InvalidUtf8.BYTES and not all(is_valid(a.data) for a in args)


def call_with_malformed_strings(
    name: str,
    rule: InvalidUtf8 | RowRule,
    kernel: Callable[[Sequence[Vector]], Data],
    args: Sequence[Vector],
    dtype: pa.DataType,
    num_rows: int,
) -> Data:
    """Call a function for which ``has_malformed_strings`` is true; raises Unsupported if Spark's result is not known."""
    if not isinstance(rule, InvalidUtf8):
        return _call_by_rows(name, rule, kernel, args, dtype, num_rows)
    if rule is InvalidUtf8.DECLINED or not all(is_replaceable(a.data) for a in args):
        raise Unsupported(f"{name} of a string that is not valid UTF-8 is not supported")
    if rule is InvalidUtf8.VALIDATED and any(has_surrogates(a.data) for a in args if has_strings(a.dtype)):
        raise Unsupported(f"{name} of a string with an encoded surrogate is not supported")
    return kernel([Vector(a.dtype, replace_malformed(a.data)) for a in args])


def _call_by_rows(
    name: str,
    rule: RowRule,
    kernel: Callable[[Sequence[Vector]], Data],
    args: Sequence[Vector],
    dtype: pa.DataType,
    num_rows: int,
) -> Data:
    """Run the kernel with the malformed rows blanked, run the rule on these rows, and combine the results.

    The kernel also decides rows in which another argument is NULL.
    """
    arrays = [a.array(num_rows) for a in args]
    malformed = np.zeros(num_rows, np.bool_)
    for array in arrays:
        if pa.types.is_string(array.type):
            malformed |= invalid_rows(array)
    blanked = [_blank_rows(a, malformed) if pa.types.is_string(a.type) else a for a in arrays]
    kernel_result = kernel([Vector(a.dtype, array) for a, array in zip(args, blanked, strict=True)])
    for array in arrays:
        malformed &= array.is_valid().to_numpy(zero_copy_only=False)
    try:
        results = list(_evaluate_rows(rule, [_row_values(a, malformed) for a in arrays]))
    except ReadPastEnd:
        reason = f"{name} of a string that ends in the middle of a character depends on the bytes after it in Spark"
        raise Unsupported(reason) from None
    column = strings_from_bytes(results) if dtype == t.STRING else pa.array(results, dtype)
    # Append the results of the rule to those of the kernel, and let the malformed rows take them from there.
    positions = np.arange(num_rows)
    positions[malformed] = num_rows + np.arange(len(results))
    return pa.concat_arrays([Vector(dtype, kernel_result).array(num_rows), column]).take(pa.array(positions))


def _blank_rows(strings: pa.Array, rows: Bools) -> pa.Array:
    """Replace the strings of some rows by empty strings; NULL stays NULL."""
    present = strings.is_valid().to_numpy(zero_copy_only=False)
    return if_else(pa.array(rows & present), pa.scalar(""), strings)


def _row_values(array: pa.Array, rows: Bools) -> list[Any]:
    """Return the Python values of some rows, with strings as bytes."""
    plain = array.cast(t.BINARY) if pa.types.is_string(array.type) else array
    return list(plain.filter(pa.array(rows)).to_pylist())


def _evaluate_rows(rule: RowRule, columns: Sequence[list[Any]]) -> Iterator[Any]:
    control, size = bounding_control(), 0
    for row, values in enumerate(zip(*columns, strict=True)):
        result = rule(*values)
        if isinstance(result, bytes):
            size += len(result)
        if row % _CHECKED_ROWS == 0:
            check_run()
            if control is not None:
                control.reserve(size)
        yield result
