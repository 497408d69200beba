"""How functions treat strings that are not valid UTF-8, as their entries declare it.

Kernels expect valid strings. ``registry.call`` checks the strings in the arguments of every function whose entry does
not say that its kernel works on plain bytes, so that neither a source nor a cast has to.
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
from kquery_spark.kernels.utf8_string import BeyondString
from kquery_spark.run_control import bounding_control, check_run
from kquery_spark.types import names as t
from kquery_spark.types.str_enum import StrEnum
from kquery_spark.types.vector import Data, Vector

_CHECKED_ROWS = 4096  # rows between two checks whether the run is cancelled or exceeds its memory limit


class InvalidUtf8(StrEnum):
    """What a function does with strings that are not valid UTF-8.

    declined: the engine does not know Spark's answer. bytes: the kernel works on bytes as Spark does, so nothing is checked.
    replaced: Spark turns the strings into Java's first, in which each malformed sequence is U+FFFD. validated: the same, but
    releases of Spark differ in what the bytes of a surrogate (ED A0 80) become, so strings with such bytes are declined.
    """

    DECLINED = "declined"
    BYTES = "bytes"
    REPLACED = "replaced"
    VALIDATED = "validated"


RowRule = Callable[..., Any]
"""One row's arguments (none is NULL; strings are bytes) -> the result (bytes for a string).

It is for arguments that are strings; the kernel of such a function works on nested values as bytes."""


def needs_care(rule: InvalidUtf8 | RowRule, args: Sequence[Vector]) -> bool:
    """Whether an argument contains a string that is not valid UTF-8 and the kernel does not work on plain bytes."""
    return rule is not InvalidUtf8.BYTES and not all(is_valid(a.data) for a in args)


def run_with_care(
    name: str,
    rule: InvalidUtf8 | RowRule,
    kernel: Callable[[Sequence[Vector]], Data],
    args: Sequence[Vector],
    dtype: pa.DataType,
    num_rows: int,
) -> Data:
    """The result of a function over arguments for which ``needs_care`` is true; Unsupported if Spark's is not known."""
    if not isinstance(rule, InvalidUtf8):
        return _by_rows(name, rule, kernel, args, dtype, num_rows)
    if rule is InvalidUtf8.DECLINED or not all(is_replaceable(a.data) for a in args):
        raise Unsupported(f"{name} of a string that is not valid UTF-8 is not supported")
    if rule is InvalidUtf8.VALIDATED and any(has_surrogates(a.data) for a in args if has_strings(a.dtype)):
        raise Unsupported(f"{name} of a string with the bytes of a surrogate is not supported")
    return kernel([Vector(a.dtype, replace_malformed(a.data)) for a in args])


def _by_rows(
    name: str,
    rule: RowRule,
    kernel: Callable[[Sequence[Vector]], Data],
    args: Sequence[Vector],
    dtype: pa.DataType,
    num_rows: int,
) -> Data:
    """Run the rule on the rows that have an invalid string, and the kernel on the others and those with a NULL."""
    arrays = [a.array(num_rows) for a in args]
    odd = np.zeros(num_rows, np.bool_)
    for array in arrays:
        if pa.types.is_string(array.type):
            odd |= invalid_rows(array)
    hidden = [_without(a, odd) if pa.types.is_string(a.type) else a for a in arrays]
    usual = kernel([Vector(a.dtype, array) for a, array in zip(args, hidden, strict=True)])
    for array in arrays:
        odd &= array.is_valid().to_numpy(zero_copy_only=False)
    try:
        results = list(_results(rule, [_row_values(a, odd) for a in arrays]))
    except BeyondString:
        reason = f"{name} of a string that ends in the middle of a character depends on the bytes behind it in Spark"
        raise Unsupported(reason) from None
    column = strings_from_bytes(results) if dtype == t.STRING else pa.array(results, dtype)
    places = np.arange(num_rows)
    places[odd] = num_rows + np.arange(len(results))
    return pa.concat_arrays([Vector(dtype, usual).array(num_rows), column]).take(pa.array(places))


def _without(strings: pa.Array, odd: Bools) -> pa.Array:
    """The strings with an empty one in place of those of some rows; NULL stays NULL."""
    present = strings.is_valid().to_numpy(zero_copy_only=False)
    return if_else(pa.array(odd & present), pa.scalar(""), strings)


def _row_values(array: pa.Array, rows: Bools) -> list[Any]:
    """Python values of some rows, strings as bytes."""
    plain = array.cast(t.BINARY) if pa.types.is_string(array.type) else array
    return list(plain.filter(pa.array(rows)).to_pylist())


def _results(rule: RowRule, columns: Sequence[list[Any]]) -> Iterator[Any]:
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
