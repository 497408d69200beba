"""Is an answer Spark's answer? Exactly for our engine, by value for engines with other type rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.verify import compare_tables

_RELATIVE = 1e-6
_ABSOLUTE = 1e-5  # an average Spark rounds to six digits is a double elsewhere


def exact_difference(expected: pa.Table, actual: pa.Table) -> str | None:
    """What differs, in a sentence: names, types, nullability, rows; floats may differ by a relative 1e-9."""
    differences = compare_tables(expected, actual)
    return "; ".join(str(difference) for difference in differences) or None


def value_difference(expected: pa.Table, actual: pa.Table) -> str | None:
    """What differs when only values count: columns by position, numbers as doubles within 1e-6, times as UTC."""
    if expected.num_columns != actual.num_columns:
        return f"Spark has {expected.num_columns} columns, this engine {actual.num_columns}"
    if expected.num_rows != actual.num_rows:
        return f"Spark has {expected.num_rows} rows, this engine {actual.num_rows}"
    if not expected.num_rows or not expected.num_columns:
        return None
    ours, theirs = _columns(expected), _columns(actual)
    for name, left, right in zip(expected.column_names, ours, theirs, strict=True):
        if left.dtype.kind != right.dtype.kind:
            return f"column {name} holds other kinds of values than Spark's"
    ours, theirs = _in_order(ours), _in_order(theirs)
    for name, left, right in zip(expected.column_names, ours, theirs, strict=True):
        if left.dtype.kind == "f":
            same = np.isclose(left, right, rtol=_RELATIVE, atol=_ABSOLUTE, equal_nan=True)
        else:
            same = left == right
        if not same.all():
            row = int(np.argmin(same))
            return (
                f"column {name}, row {row + 1} in sorted order: {left[row]!r} in Spark, {right[row]!r} here"
            )
    return None


def _columns(table: pa.Table) -> list[npt.NDArray[np.generic]]:
    return [_values(column.combine_chunks()) for column in table.columns]


def _values(column: pa.Array) -> npt.NDArray[np.generic]:
    """Numbers and times as doubles, NULL as minus infinity, everything else as text."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _values(column.cast(kind.value_type))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        filled = pc.fill_null(column.cast(pa.float64()), -np.inf)
        return filled.to_numpy(zero_copy_only=False) + 0.0  # type: ignore[no-any-return]
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)).view(pa.int64())
        return pc.fill_null(column.cast(pa.float64()), -np.inf).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    return np.array([repr(value) for value in column.to_pylist()])


def _in_order(columns: list[npt.NDArray[np.generic]]) -> list[npt.NDArray[np.generic]]:
    """All columns sorted by the exact ones first, then by the numbers rounded to what may differ."""
    keys = [_rounded(column) if column.dtype.kind == "f" else column for column in columns]
    numbers = [key for key in keys if key.dtype.kind == "f"]
    others = [key for key in keys if key.dtype.kind != "f"]
    order = np.lexsort([*numbers[::-1], *others[::-1]])
    return [column[order] for column in columns]


def _rounded(column: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    values = np.asarray(column, dtype=np.float64)
    return np.round(values, 3)


class Answers:
    """Spark's answers on disk, for engines that run after it or without it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, name: str, table: pa.Table) -> None:
        """Save the answer to a query."""
        self._directory.mkdir(parents=True, exist_ok=True)
        with pa.OSFile(str(self._path(name)), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)

    def get(self, name: str) -> pa.Table | None:
        """The answer Spark gave to a query on this data, None when it never ran."""
        path = self._path(name)
        if not path.exists():
            return None
        with pa.memory_map(str(path)) as file:
            return pa.ipc.open_file(file).read_all()

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}.arrow"
