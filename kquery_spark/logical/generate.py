"""Expands arrays, maps or argument lists into rows, as ``explode`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr
from kquery_spark.logical.appended_columns import AppendsColumns
from kquery_spark.logical.plan import LogicalPlan, is_condition_on
from kquery_spark.types import names as t
from kquery_spark.types.str_enum import StrEnum


class Generator(StrEnum):
    """The function that generates the rows. REPLICATE repeats a row as many times as its bigint argument says."""

    EXPLODE = "explode"
    POSEXPLODE = "posexplode"
    INLINE = "inline"
    STACK = "stack"
    REPLICATE = "replicate_rows"


@dataclass(frozen=True)
class Generate(AppendsColumns):
    """Outputs one row per generated row: the child's ``required`` columns (None: all), then the generated columns ``names``.

    ``outer``: a row for which the generator returns nothing is output once, with NULLs in the generated columns. For STACK,
    ``args`` are all values, row by row, and the length of ``names`` is the number of columns in each row.
    """

    child: LogicalPlan
    generator: Generator
    args: tuple[Expr, ...]
    names: tuple[str, ...]
    outer: bool = False
    required: tuple[str, ...] | None = None

    @property
    @override
    def appended(self) -> list[pa.Field]:
        types = self._types()
        if len(types) != len(self.names):
            raise PlanError(f"{self.generator} returns {len(types)} column(s), not {len(self.names)}")
        return [
            pa.field(name, dtype, nullable or self.outer)
            for name, (dtype, nullable) in zip(self.names, types, strict=True)
        ]

    def _types(self) -> list[tuple[pa.DataType, bool]]:
        match self.generator:
            case Generator.REPLICATE:
                return []
            case Generator.STACK:
                return _stack_columns(self.args, len(self.names))
            case Generator.INLINE:
                return _struct_fields(self.args[0].dtype)
            case Generator.POSEXPLODE:
                return [(t.INT, False), *self._elements()]
        return self._elements()

    def _elements(self) -> list[tuple[pa.DataType, bool]]:
        """Return type and nullability of an array's element, or of a map's key and value."""
        dtype = self.args[0].dtype
        if pa.types.is_map(dtype):
            return [(dtype.key_type, False), (dtype.item_type, dtype.item_field.nullable)]
        if pa.types.is_list(dtype):
            return [(dtype.value_type, dtype.value_field.nullable)]
        raise PlanError(f"{self.generator} needs an array or a map, not {t.spark_name(dtype)}")

    @override
    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        """A condition on the child's columns has the same value for all rows generated from one input row."""
        return (predicate,) if is_condition_on(predicate, set(self.child_columns)) else None

    @override
    def label(self) -> str:
        outer = " outer" if self.outer else ""
        return f"Generate:{outer} {self.generator}({', '.join(map(str, self.args))}) AS [{', '.join(self.names)}]"


def _stack_columns(values: Sequence[Expr], width: int) -> list[tuple[pa.DataType, bool]]:
    """Return type and nullability of STACK's columns. Values that are missing in the last row are NULL."""
    columns = [values[i::width] for i in range(width)]
    incomplete = len(values) % width > 0
    return [(column[0].dtype, incomplete or any(e.nullable for e in column)) for column in columns]


def _struct_fields(dtype: pa.DataType) -> list[tuple[pa.DataType, bool]]:
    """Return type and nullability of the fields of an array's structs. A NULL struct makes all of its fields NULL."""
    if not pa.types.is_list(dtype) or not pa.types.is_struct(dtype.value_type):
        raise PlanError(f"inline needs an array of structs, not {t.spark_name(dtype)}")
    return [(field.type, field.nullable or dtype.value_field.nullable) for field in dtype.value_type]
