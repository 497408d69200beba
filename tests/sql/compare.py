"""Compares two results of a query: schemas, then rows to the last bit, or floats within a tolerance."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, DataType, DayTimeIntervalType, MapType, StructField, StructType

Row = tuple[Any, ...]


def schema_difference(expected: StructType, actual: pa.Schema) -> str | None:
    """A sentence if names, types or nullability differ, also inside of nested types."""
    ours = from_arrow_schema(actual, prefer_timestamp_ntz=True)
    if _fields(ours) == _fields(expected):
        return None
    different = [
        f"{a.simpleString()} (nullable: {a.nullable}), Spark's is {b.simpleString()} (nullable: {b.nullable})"
        for a, b in zip(ours, expected, strict=False)
        if _fields([a]) != _fields([b])
    ]
    return f"a column is {'; '.join(different) or 'missing'}; schemas {ours} and {expected}"


def _fields(fields: Iterable[StructField]) -> list[tuple[object, ...]]:
    return [(f.name, _comparable(f.dataType), f.nullable) for f in fields]


def _comparable(dtype: DataType) -> object:
    """A type as values that compare; Arrow does not tell from which unit to which an interval goes."""
    match dtype:
        case ArrayType():
            return "array", _comparable(dtype.elementType), dtype.containsNull
        case MapType():
            return "map", _comparable(dtype.keyType), _comparable(dtype.valueType), dtype.valueContainsNull
        case StructType():
            return "struct", _fields(dtype)
        case DayTimeIntervalType():
            return "interval"
    return dtype


def row_difference(expected: pa.Table, actual: pa.Table, ordered: bool, tolerance: float) -> str | None:
    """A sentence if the rows differ: as a list where the query orders them, else as a multiset."""
    if expected.num_rows != actual.num_rows:
        return f"{actual.num_rows} rows, Spark has {expected.num_rows}"
    left, right = rows_of(expected), rows_of(actual)
    if not ordered:
        left, right = sorted(left, key=_sort_key), sorted(right, key=_sort_key)
    for number, (theirs, ours) in enumerate(zip(left, right, strict=True), 1):
        if not all(_same(a, b, tolerance) for a, b in zip(theirs, ours, strict=True)):
            which = "" if ordered else " of the sorted rows"
            return f"row {number}{which} is {ours}, Spark's is {theirs}"
    return None


def rows_of(table: pa.Table) -> list[Row]:
    """Rows as tuples. Times are integers, as Python has only those of the years 1 to 9999."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*(_values(column) for column in table.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    values: list[Any] = column.to_pylist()
    return values


def is_ordered(sql: str) -> bool:
    """True if the query itself has an ORDER BY, not only a subquery, window or aggregate in it."""
    text = re.sub(r"'(?:[^'\\]|\\.|'')*'", "''", sql)
    before = None
    while text != before:
        before, text = text, re.sub(r"\([^()]*\)", " ", text)
    return re.search(r"\border\s+by\b", text, re.IGNORECASE) is not None


def _sort_key(row: Row) -> tuple[list[str], str]:
    return [_rough(v) for v in row], repr(row)


def _rough(value: Any) -> str:
    """Text by which rows are sorted, the same for floats that are nearly equal."""
    match value:
        case float():
            return f"{value + 0.0:.6e}"
        case list() | tuple():
            return f"[{','.join(map(_rough, value))}]"
        case dict():
            return f"{{{','.join(f'{k}:{_rough(v)}' for k, v in value.items())}}}"
    return f"{value!r}"


def _same(a: Any, b: Any, tolerance: float) -> bool:
    match a, b:
        case float(), float():
            if tolerance and math.isfinite(a):
                return math.isclose(a, b, rel_tol=tolerance)
            return repr(a) == repr(b)  # distinguishes 0.0 and -0.0, and not NaNs
        case (list() | tuple(), list() | tuple()):
            return _all_same(a, b, tolerance)
        case dict(), dict():
            return a.keys() == b.keys() and _all_same(list(a.values()), list(b.values()), tolerance)
    return type(a) is type(b) and bool(a == b)


def _all_same(a: Sequence[Any], b: Sequence[Any], tolerance: float) -> bool:
    return len(a) == len(b) and all(_same(x, y, tolerance) for x, y in zip(a, b, strict=True))
