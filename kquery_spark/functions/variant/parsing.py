"""JSON strings as variants, with the bytes that Spark gives them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.functions.casts import cast
from kquery_spark.functions.registry import EvalMode
from kquery_spark.functions.variant.reading import gather_slices, required_loops, variant_array
from kquery_spark.kernels.compiled import JSON_LOOPS
from kquery_spark.kernels.text import Bytes, build, layout
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector

_VALUE, _ODD = 1, 2  # what the compiled loops say of a string
# What the loops may write for each byte of the strings, and for each string.
_VALUE_BYTES, _METADATA_BYTES, _BYTES_EACH = 6, 2, 16


def parse_variants(strings: pa.Array) -> tuple[pa.Array, bool]:
    """Parse JSON strings to variants, NULL for malformed strings; return also whether there is a malformed string."""
    rows = len(strings)
    is_valid = np.asarray(strings.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    bounds, raw = layout(strings)
    size = int(bounds[-1] - bounds[0])
    values = np.empty(_VALUE_BYTES * size + _BYTES_EACH * (rows + 1), np.uint8)
    metas = np.empty(_METADATA_BYTES * size + _BYTES_EACH * (rows + 1), np.uint8)
    value_ends, meta_ends = np.empty(rows + 1, np.int64), np.empty(rows + 1, np.int64)
    holes, status = np.empty(size + 3, np.int64), np.empty(rows, np.uint8)
    count = required_loops(JSON_LOOPS, "parse_json").json_variants(
        raw, bounds, is_valid.view(np.uint8), values, value_ends, metas, meta_ends, holes, status
    )
    if (status == _ODD).any():
        raise Unsupported(
            "a JSON text with half a surrogate pair, or one that is very long or deep, is not supported as a variant"
        )
    _fill(values, raw, holes[: 3 * count].reshape(-1, 3))
    binaries = [
        build(ends, out[: ends[-1]], None, t.BINARY)
        for ends, out in ((value_ends, values), (meta_ends, metas))
    ]
    failed = is_valid & (status != _VALUE)
    return variant_array(binaries[0], binaries[1], status != _VALUE), bool(failed.any())


def _fill(values: Bytes, raw: Bytes, holes: Int64s) -> None:
    """Put the doubles that the loops left out into their places."""
    if not len(holes):
        return
    places, starts, stops = holes.T
    strings = gather_slices(raw, np.ascontiguousarray(starts), stops - starts, t.STRING)
    doubles = cast(Vector(t.STRING, strings), t.DOUBLE, EvalMode.TRY, "UTC", len(strings)).array(len(strings))
    numbers = np.ascontiguousarray(doubles.to_numpy(zero_copy_only=False))
    values[places[:, None] + np.arange(8)] = numbers.view(np.uint8).reshape(-1, 8)
