"""Make rows out of a row's arrays, maps or arguments."""

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
    """What makes the rows. REPLICATE repeats a row as often as its bigint argument says."""

    EXPLODE = "explode"
    POSEXPLODE = "posexplode"
    INLINE = "inline"
    STACK = "stack"
    REPLICATE = "replicate_rows"


@dataclass(frozen=True)
class Generate(AppendsColumns):
    """The child's ``required`` columns (None: all) beside the generated ones called ``names``.

    ``outer`` keeps a row whose generator gives nothing, with NULLs. STACK's ``args`` are its values; ``names`` says
    how many columns they make.
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
            raise PlanError(f"{self.generator} makes {len(types)} column(s), not {len(self.names)}")
        return [
            pa.field(name, dtype, nullable or self.outer)
            for name, (dtype, nullable) in zip(self.names, types, strict=True)
        ]

    def _types(self) -> list[tuple[pa.DataType, bool]]:
        match self.generator:
            case Generator.REPLICATE:
                return []
            case Generator.STACK:
                return _stacked(self.args, len(self.names))
            case Generator.INLINE:
                return _struct_fields(self.args[0].dtype)
            case Generator.POSEXPLODE:
                return [(t.INT, False), *self._elements()]
        return self._elements()

    def _elements(self) -> list[tuple[pa.DataType, bool]]:
        """The element of an array, or key and value of a map."""
        dtype = self.args[0].dtype
        if pa.types.is_map(dtype):
            return [(dtype.key_type, False), (dtype.item_type, dtype.item_field.nullable)]
        if pa.types.is_list(dtype):
            return [(dtype.value_type, dtype.value_field.nullable)]
        raise PlanError(f"{self.generator} needs an array or a map, not {t.spark_name(dtype)}")

    @override
    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        """A condition on the child's columns holds for all rows made of one of its rows."""
        return (predicate,) if is_condition_on(predicate, set(self.kept)) else None

    @override
    def label(self) -> str:
        outer = " outer" if self.outer else ""
        return f"Generate:{outer} {self.generator}({', '.join(map(str, self.args))}) AS [{', '.join(self.names)}]"


def _stacked(values: Sequence[Expr], width: int) -> list[tuple[pa.DataType, bool]]:
    """Columns of STACK, whose last row has NULLs where values are missing."""
    columns = [values[i::width] for i in range(width)]
    incomplete = len(values) % width > 0
    return [(column[0].dtype, incomplete or any(e.nullable for e in column)) for column in columns]


def _struct_fields(dtype: pa.DataType) -> list[tuple[pa.DataType, bool]]:
    """The fields of an array's structs; a NULL struct makes all of them NULL."""
    if not pa.types.is_list(dtype) or not pa.types.is_struct(dtype.value_type):
        raise PlanError(f"inline needs an array of structs, not {t.spark_name(dtype)}")
    return [(field.type, field.nullable or dtype.value_field.nullable) for field in dtype.value_type]
