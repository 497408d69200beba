"""Compares two results: the schemas and the multisets of rows must be equal, floats within a relative 1e-9."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.kernels.utf8 import is_valid
from kquery_spark.types import names as t

TOLERANCE = 1e-9
_GRIDS = (0.5, 0.0)  # offsets of the two grids to which ``_leading_digits`` rounds, as a fraction of a step


@dataclass(frozen=True)
class Difference:
    """One difference between two results, as a sentence."""

    what: str

    def __str__(self) -> str:
        return self.what


def compare_tables(
    expected: pa.Table, actual: pa.Table, ordered: bool | Sequence[int] = False
) -> list[Difference]:
    """Return the differences between Spark's result and the engine's; [] if they are equal.

    Names, types, and nullability must be equal, and so must the multisets of rows. ordered: True if the rows must be equal
    one by one; or the positions of the columns that must be equal row by row, because the query orders by them.

    To compare multisets, both sides are sorted by the same keys and then compared row by row. Floats that are equal within
    the tolerance must sort alike, so they are rounded to a grid first. A value at the boundary of two grid cells may be
    rounded to different cells in the two results, so the comparison is repeated with a grid shifted by half a cell.
    """
    differences = _schemas(expected.schema, actual.schema)
    if differences:
        return differences
    if expected.num_rows != actual.num_rows:
        return [Difference(f"Spark returns {expected.num_rows} rows, the engine {actual.num_rows}")]
    if not expected.num_columns or not expected.num_rows:
        return []
    left, right = _plain(expected), _plain(actual)
    names = expected.schema.names
    everywhere = range(len(names))
    if ordered is True:
        return _columns(names, left, right, everywhere, "")
    if ordered:
        unequal_columns = _columns(names, left, right, ordered, " in the order of the query")
        if unequal_columns:
            return unequal_columns
    # the second grid handles values at the boundary of two cells of the first
    for shift in _GRIDS:
        unequal_columns = _columns(
            names, _sorted(left, shift), _sorted(right, shift), everywhere, " of the sorted rows"
        )
        if not unequal_columns:
            return []
    return unequal_columns


def _columns(
    names: Sequence[str],
    left: Sequence[np.ndarray],
    right: Sequence[np.ndarray],
    positions: Iterable[int],
    which: str,
) -> list[Difference]:
    """Return a difference for each column with unequal values; it states their number and the first of them."""
    differences = []
    for index in positions:
        unequal = _unequal(left[index], right[index])
        if len(unequal):
            row = int(unequal[0])
            shown = f"{left[index][row]!r} in Spark, {right[index][row]!r} in the engine"
            count = f"{len(unequal):,} of {len(left[index]):,} values differ"
            differences.append(Difference(f"column {names[index]}: {count}; row {row + 1}{which} is {shown}"))
    return differences


def _schemas(expected: pa.Schema, actual: pa.Schema) -> list[Difference]:
    if expected.names != actual.names:
        return [Difference(f"Spark's columns are {expected.names}, the engine's {actual.names}")]
    differences = []
    for a, b in zip(expected, actual, strict=True):
        if a.type != b.type:
            differences.append(
                Difference(
                    f"column {a.name} is {t.spark_name(a.type)} in Spark, {t.spark_name(b.type)} in the engine"
                )
            )
        elif a.nullable != b.nullable:
            words = {True: "nullable", False: "not nullable"}
            differences.append(
                Difference(
                    f"column {a.name} is {words[a.nullable]} in Spark, {words[b.nullable]} in the engine"
                )
            )
    return differences


def _plain(table: pa.Table) -> list[np.ndarray]:
    """Return the columns as numpy arrays that can be sorted and compared: float64 for floats, else integers or objects."""
    return [_plain_column(_combined(column)) for column in table.columns]


def _plain_column(data: pa.Array) -> np.ndarray:
    if not data.null_count:
        if t.is_fractional(data.type):
            return np.asarray(data.cast(t.DOUBLE).to_numpy() + 0.0)
        if data.type == t.DATE:
            return np.asarray(data.view(t.INT).to_numpy())
        if t.is_integral(data.type):
            return np.asarray(data.to_numpy())
    array = np.empty(len(data), object)
    array[:] = [as_tuples(v) for v in _values(data)]
    return array


def _combined(column: pa.ChunkedArray) -> pa.Array:
    """Return the column as one array."""
    data = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(data, pa.ChunkedArray):
        return data.chunk(0) if data.num_chunks else pa.array([], data.type)
    return data


def _values(data: pa.Array) -> Iterable[Any]:
    if pa.types.is_string(data.type) and not is_valid(data):
        data = data.cast(t.BINARY)
    comparable = _without_times(data.type)
    return (data if comparable == data.type else data.cast(comparable)).to_pylist()  # type: ignore[no-any-return]


def _without_times(dtype: pa.DataType) -> pa.DataType:
    """Return the type with integers for dates and times, because Python supports only the years 1 to 9999."""
    if t.has_long_counts(dtype) or pa.types.is_duration(dtype):
        return t.LONG
    if dtype == t.DATE:
        return t.INT
    if pa.types.is_struct(dtype):
        return pa.struct([f.with_type(_without_times(f.type)) for f in dtype])
    if pa.types.is_map(dtype):
        return pa.map_(_without_times(dtype.key_type), _without_times(dtype.item_type))
    if pa.types.is_list(dtype):
        return pa.list_(dtype.value_field.with_type(_without_times(dtype.value_type)))
    return dtype


def as_tuples(value: Any) -> Any:
    """Return nested values as tuples, and -0.0 as 0.0."""
    if isinstance(value, dict):
        return tuple((k, as_tuples(v)) for k, v in value.items())
    if isinstance(value, list | tuple):
        return tuple(as_tuples(v) for v in value)
    return value + 0.0 if isinstance(value, float) else value


def _sorted(columns: list[np.ndarray], shift: float) -> list[np.ndarray]:
    """Sort the rows into a canonical order.

    The sort keys are, in this order: the exact columns; the leading digits of the floats, because the last digits may differ
    between the engines; and the complete floats, which separate rows that differ only in their last digits.
    """
    exact: list[np.ndarray] = []
    leading: list[np.ndarray] = []
    whole: list[np.ndarray] = []
    for column in columns:
        floats = _as_floats(column)
        if floats is not None:
            leading.append(_leading_digits(floats, shift))
            whole.append(floats)
        if column.dtype == object:
            # for a column of floats, the exact key contains only whether the value is NULL
            strings = [
                _sort_text(None if v is None else "", shift) if floats is not None else _sort_text(v, shift)
                for v in column
            ]
            exact.append(np.unique(np.array(strings), return_inverse=True)[1])
        elif floats is None:
            exact.append(column)
    order = np.lexsort([*whole, *leading, *exact])
    return [c[order] for c in columns]


def _as_floats(column: np.ndarray) -> np.ndarray | None:
    """Return a column of floats as float64, with 0 for NULL; None for any other column."""
    if column.dtype.kind == "f":
        return column
    if column.dtype != object or not any(isinstance(v, float) for v in column):
        return None
    return np.array([v if isinstance(v, float) else 0.0 for v in column])


def _leading_digits(values: np.ndarray, shift: float) -> np.ndarray:
    """Round each value to 24 significant bits, so that values within the tolerance are almost always rounded alike.

    shift: 0.5 rounds to the nearest step, 0 rounds down; the two grids differ by half a step.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        mantissa, exponent = np.frexp(values)
        rounded: np.ndarray = np.ldexp(np.floor(mantissa * 2**24 + shift), exponent)
        return rounded


def _sort_text(value: Any, shift: float) -> str:
    if isinstance(value, float):
        return f"{float(_leading_digits(np.array([value]), shift)[0]):.9e}"
    if isinstance(value, tuple):
        return "(" + ",".join(_sort_text(v, shift) for v in value) + ")"
    return "\x00" if value is None else f"{type(value).__name__}{value!r}"


def _unequal(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the positions of the rows whose values are not equal."""
    if left.dtype == object or right.dtype == object:
        equal = np.array([is_same(a, b) for a, b in zip(left, right, strict=True)], bool)
    elif left.dtype.kind == "f":
        equal = np.isclose(left, right, rtol=TOLERANCE, atol=0, equal_nan=True)
    else:
        equal = left == right
    return np.flatnonzero(~equal)


def is_same(a: Any, b: Any) -> bool:
    """Return whether two values of ``as_tuples`` are equal: NaN equals NaN, and floats agree within the tolerance."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=0)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(is_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)
