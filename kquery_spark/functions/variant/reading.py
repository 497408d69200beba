"""Reads the values at a path of variant columns with the compiled loops: their kinds, numbers and byte ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.kernels.compiled import VARIANT_LOOPS, CompiledLoops
from kquery_spark.kernels.text import Bytes, build, layout
from kquery_spark.kernels.variants import IS_ABSENT, IS_MALFORMED, IS_UNKNOWN
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector

MAX_BYTES = 1 << 24
"""The limit for the size of a value, or of its metadata, that every release of Spark accepts."""

_ODD, _MALFORMED = 2, 3  # what the compiled loops say of a value that they write as a string
# Room for the strings of all rows, and for each byte of a value, before there is need of more.
_FIRST_BYTES, _BYTES_OF_TEXT = 256, 4


@dataclass(frozen=True)
class PathValues:
    """The value at a path of each row.

    kinds: kinds of ``kernels.variants``. lows, highs: numbers as two words. starts, sizes: the range of the value's bytes in
    ``raw`` (for a decimal, its scale instead of the size). ends: the ends of the variants. metadata: the metadata of all
    rows.
    """

    kinds: npt.NDArray[np.uint8]
    lows: Int64s
    highs: Int64s
    starts: Int64s
    sizes: Int64s
    raw: Bytes
    ends: Int64s
    metadata: pa.Array

    def slices(self, rows: Int64s, dtype: pa.DataType) -> pa.Array:
        """The ranges of bytes of some rows."""
        return gather_slices(self.raw, self.starts[rows], self.sizes[rows], dtype)

    def strings(self, rows: Int64s) -> pa.Array:
        """The objects and arrays of some rows as JSON strings."""
        meta_bounds, metas = layout(self.metadata)
        places = [self.starts[rows], self.ends[rows]]
        meta_places = [meta_bounds[:-1][rows], meta_bounds[1:][rows]]
        bounds, statuses = np.empty(len(rows) + 1, np.int64), np.zeros(len(rows), np.uint8)
        room = _FIRST_BYTES + _BYTES_OF_TEXT * int((places[1] - places[0]).sum())
        size = -1
        while size < 0:
            out = np.empty(room, np.uint8)
            size = loops().variant_strings(self.raw, *places, metas, *meta_places, out, bounds, statuses)
            room *= 2
        if (statuses == _MALFORMED).any():
            raise malformed()
        if (statuses == _ODD).any():
            raise Unsupported(
                "an object or array of a variant with floating-point numbers, times or other rare values as a string is not "
                "supported"
            )
        return checked_text(build(bounds, out[:size], None, t.BINARY))

    def variants(self) -> pa.Array:
        """The values at the path as variants."""
        values = gather_slices(self.raw, self.starts, self.sizes, t.BINARY)
        return variant_array(values, self.metadata, self.kinds == IS_ABSENT)


def loops() -> Any:
    """The compiled loops of variants."""
    return required_loops(VARIANT_LOOPS, "variants")


def required_loops(package: CompiledLoops, feature: str) -> Any:
    """Return the compiled loops of a package; compiles them in this process if the machine has none.

    feature: what needs the loops; part of the reason if they cannot be compiled.
    """
    found = package.kernels() or package.compile_now()
    if found is None:
        raise Unsupported(f"the loops for {feature} cannot be compiled on this machine")
    return found


def malformed() -> ExecutionError:
    """The error for bytes that are not variant."""
    return ExecutionError(
        "MALFORMED_VARIANT",
        "Variant binary is malformed. Please check the data source is valid.",
    )


def gather_slices(raw: Bytes, starts: Int64s, sizes: Int64s, dtype: pa.DataType) -> pa.Array:
    """Ranges of bytes as an array of strings or binaries."""
    ends = np.empty(len(starts) + 1, np.int64)
    out = np.empty(int(sizes.sum()), np.uint8)
    loops().copy_slices(raw, starts, sizes, ends, out)
    values = build(ends, out, None, t.BINARY)
    return values if dtype == t.BINARY else checked_text(values)


def checked_text(values: pa.Array) -> pa.Array:
    """Binaries as strings; those that are not UTF-8 fall back to Spark, which puts other characters in."""
    try:
        return values.cast(t.STRING)
    except pa.ArrowInvalid:
        raise Unsupported("a variant with a string that is not UTF-8 is not supported") from None


def variant_array(values: pa.Array, metadata: pa.Array, mask: npt.NDArray[np.bool_]) -> pa.Array:
    """Variants of their two binaries, NULL where ``mask`` says so."""
    is_null = pa.array(mask) if mask.any() else None
    return pa.StructArray.from_arrays([values, metadata], fields=list(t.VARIANT), mask=is_null)


def variant_layouts(
    variants: pa.Array,
) -> tuple[npt.NDArray[np.bool_], tuple[Int64s, Bytes], tuple[Int64s, Bytes]]:
    """Return which rows are not NULL, and the layouts of values and metadata."""
    is_valid = np.asarray(variants.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    return is_valid, layout(variants.field(0)), layout(variants.field(1))


def values_at_path(
    vector: Vector, steps: Sequence[str | int], num_rows: int, whole: bool, copied: bool = False
) -> PathValues:
    """The values at a path; ExecutionError for variants that are malformed.

    whole: with all bytes of the values. copied: Spark makes variants of them, which looks at all of their bytes.
    """
    variants = vector.array(num_rows)
    is_valid, (value_bounds, values), (meta_bounds, metas) = variant_layouts(variants)
    if max(np.diff(value_bounds).max(initial=0), np.diff(meta_bounds).max(initial=0)) > MAX_BYTES:
        raise Unsupported("a variant of more than 16 MiB is not supported")
    names = [step.encode() if isinstance(step, str) else b"" for step in steps]
    bounds = np.cumsum([0, *map(len, names)], dtype=np.int64)
    indexes = np.array([step if isinstance(step, int) else -1 for step in steps], np.int64)
    kinds = np.empty(num_rows, np.uint8)
    lows, highs, starts, sizes = (np.empty(num_rows, np.int64) for _ in range(4))
    loops().variant_values(
        *(values, value_bounds, metas, meta_bounds, is_valid.view(np.uint8)),
        *(np.frombuffer(b"".join(names), np.uint8), bounds, indexes, whole, copied),
        *(kinds, lows, highs, starts, sizes),
    )
    if (kinds == IS_MALFORMED).any():
        raise malformed()
    if (kinds == IS_UNKNOWN).any():
        raise ExecutionError(
            "UNKNOWN_PRIMITIVE_TYPE_IN_VARIANT", "Unknown primitive type found in a variant."
        )
    return PathValues(kinds, lows, highs, starts, sizes, values, value_bounds[1:], variants.field(1))
