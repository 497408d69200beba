"""INTERSECT and EXCEPT, each DISTINCT or ALL."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, columns_of, substitute
from kquery_spark.expr.properties import is_pure
from kquery_spark.logical.plan import BinaryPlan, LogicalPlan
from kquery_spark.types.names import has_floats
from kquery_spark.types.str_enum import StrEnum


class SetKind(StrEnum):
    """Which rows of the left side are in the output: those that the right side has, or those that it does not have."""

    INTERSECT = "intersect"
    EXCEPT = "except"


@dataclass(frozen=True)
class SetOperation(BinaryPlan):
    """Compares rows by position, with NULL equal to NULL; the output has the left side's names.

    ``all`` keeps duplicates. For a row with 5 copies on the left and 2 on the right, INTERSECT ALL outputs 2 copies (the
    smaller count) and EXCEPT ALL outputs 3 (the difference).
    """

    left: LogicalPlan
    right: LogicalPlan
    kind: SetKind
    all: bool = False

    @override
    def derive_schema(self) -> pa.Schema:
        if self.kind is SetKind.EXCEPT:
            return self.left.schema
        return pa.schema(
            [
                a.with_nullable(a.nullable and b.nullable)
                for a, b in zip(self.left.schema, self.right.schema, strict=True)
            ]
        )

    @override
    def validate(self) -> None:
        if self.left.schema.types != self.right.schema.types:
            raise PlanError(f"the sides of {self.kind} have different column types")

    @override
    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        """A pure filter has the same result for identical rows, so it can be applied to both sides.

        0.0 and -0.0 are equal but not identical, so a filter can pass one and reject the other. In Spark, INTERSECT and
        EXCEPT DISTINCT are joins that output the left row, so a filter on floats is applied to the left side only. The ALL
        forms count the rows of both sides, so the filter is applied to both.
        """
        if not is_pure(predicate):
            return None
        if not self.all and any(has_floats(self.column(name).dtype) for name in columns_of(predicate)):
            return predicate, None
        pairs = zip(self.left.schema.names, self.right.schema.names, strict=True)
        return predicate, substitute(predicate, {left: self.right.column(right) for left, right in pairs})

    @override
    def is_duplicate_insensitive(self, duplicates_are_irrelevant: bool) -> tuple[bool, ...]:
        return not self.all, not self.all

    @override
    def label(self) -> str:
        return f"SetOperation: {self.kind}{' all' if self.all else ''}"
