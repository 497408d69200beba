"""Implements PySpark's ``fillna``, ``dropna`` and ``replace``, also as methods of ``na``."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kquery_spark.errors import PlanError, type_name
from kquery_spark.frontends.dataframe.column import Column, call, exact_column, lit, when
from kquery_spark.frontends.sql.suggestions import did_you_mean
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.dataframe.frame import DataFrame

Value = bool | int | float | str

#: Stands for a missing new value of ``replace``; None is a value.
NO_VALUE: Any = object()


def filled(
    schema: pa.Schema, value: Value | Mapping[str, Value], subset: Sequence[str] | None
) -> list[Column]:
    """All columns; NULLs (and NaNs of floats and doubles) are replaced in columns of the value's kind.

    A value in a dict is cast to the column's type.
    """
    cast = isinstance(value, Mapping)
    if isinstance(value, Mapping):
        value_of = dict(value)
    else:
        value_of = dict.fromkeys(schema.names if subset is None else subset, value)
    _check(schema, value_of)
    return [
        _fill_column(f, value_of[f.name], cast) if f.name in value_of else exact_column(f.name)
        for f in schema
    ]


def _fill_column(field: pa.Field, value: Value, cast: bool) -> Column:
    column = exact_column(field.name)
    kind = _kind(value)
    if not cast and not _takes(field.type, kind):
        return column
    if t.is_fractional(field.type):
        column = call("nanvl", column, None)
    filler = lit(value)
    if cast or kind == "number":
        filler = filler.cast(t.spark_name(field.type))
    return call("coalesce", column, filler).alias(field.name)


def complete_row_condition(
    schema: pa.Schema, how: str, thresh: int | None, subset: Sequence[str] | None
) -> Column | None:
    """Return the condition that selects rows with enough values that are neither NULL nor NaN; None to keep all rows."""
    if how not in ("any", "all"):
        raise PlanError(f"how must be 'any' or 'all', not {how!r}")
    names = schema.names if subset is None else list(subset)
    _check(schema, names)
    needed = thresh if thresh is not None else len(names) if how == "any" else 1
    if needed <= 0 or not names:
        return None
    present = [_present(schema.field(n)) for n in names]
    return reduce(operator.and_, present) if needed == len(names) else _count_true(present) >= needed


def _count_true(conditions: Sequence[Column]) -> Column:
    """Count the conditions that are true, as a balanced tree of sums: a chain could be too deep to analyze."""
    if len(conditions) == 1:
        return when(conditions[0], 1).otherwise(0)
    middle = len(conditions) // 2
    return _count_true(conditions[:middle]) + _count_true(conditions[middle:])


def _present(field: pa.Field) -> Column:
    column = exact_column(field.name)
    return column.isNotNull() & ~column.isNaN() if t.is_fractional(field.type) else column.isNotNull()


def replaced(schema: pa.Schema, changes: Mapping[Any, Any], subset: Sequence[str] | None) -> list[Column]:
    """All columns; in columns of the kind of ``changes``, values that are keys of ``changes`` are replaced."""
    names = schema.names if subset is None else list(subset)
    _check(schema, names)
    kinds = {_kind(v) for v in (*changes, *(new for new in changes.values() if new is not None))}
    if len(kinds) > 1:
        raise PlanError("replace() takes values of one kind: numbers, strings or booleans")
    kind = next(iter(kinds), "")
    return [
        _replace_in_column(field, changes, kind)
        if field.name in names and _takes(field.type, kind)
        else exact_column(field.name)
        for field in schema
    ]


def _replace_in_column(field: pa.Field, changes: Mapping[Any, Any], kind: str) -> Column:
    """Return a column in which the keys of ``changes`` are replaced by their values.

    As in Spark's DataFrameNaFunctions, old and new numbers are converted to doubles, and new values to the column's type.
    """
    column = exact_column(field.name)
    case = None
    for old, new in changes.items():
        is_old = column.cast("double") == lit(_double(old)) if kind == "number" else column == old
        value = lit(_double(new) if kind == "number" and new is not None else new)
        value = value.cast(t.spark_name(field.type))
        case = when(is_old, value) if case is None else case.when(is_old, value)
    return column if case is None else case.otherwise(column).alias(field.name)


def _double(number: float | Decimal) -> float:
    try:
        return float(number)
    except OverflowError:
        raise PlanError("replace() takes numbers within the range of a double") from None


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float | Decimal):
        return "number"
    if isinstance(value, str):
        return "string"
    raise PlanError(f"a value is a number, a string or a boolean, not {type_name(value)}")


def _takes(dtype: pa.DataType, kind: str) -> bool:
    return (
        (kind == "number" and t.is_numeric(dtype))
        or (kind == "string" and t.is_string(dtype))
        or (kind == "boolean" and dtype == t.BOOL)
    )


def _check(schema: pa.Schema, names: Sequence[str] | Mapping[str, Any]) -> None:
    for name in names:
        if name not in schema.names:
            nearest, columns = did_you_mean(name, schema.names), ", ".join(schema.names)
            raise PlanError(f"unknown column {name}{nearest}; the columns are {columns}")


@dataclass(frozen=True)
class NullFunctions:
    """The value of ``na``: fillna, dropna and replace under PySpark's other names."""

    frame: DataFrame

    def fill(
        self, value: Value | Mapping[str, Value], subset: str | Sequence[str] | None = None
    ) -> DataFrame:
        """Alias of ``DataFrame.fillna``."""
        return self.frame.fillna(value, subset)

    def drop(
        self, how: str = "any", thresh: int | None = None, subset: str | Sequence[str] | None = None
    ) -> DataFrame:
        """Alias of ``DataFrame.dropna``."""
        return self.frame.dropna(how, thresh, subset)

    def replace(
        self, to_replace: Any, value: Any = NO_VALUE, subset: str | Sequence[str] | None = None
    ) -> DataFrame:
        """Alias of ``DataFrame.replace``."""
        return self.frame.replace(to_replace, value, subset)
