"""INTERSECT and EXCEPT, each distinct or ALL."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, substitute
from kquery_spark.expr.properties import is_pure
from kquery_spark.logical.plan import BinaryPlan, LogicalPlan
from kquery_spark.types.str_enum import StrEnum


class SetKind(StrEnum):
    """Which rows of the left side come out."""

    INTERSECT = "intersect"
    EXCEPT = "except"


@dataclass(frozen=True)
class SetOperation(BinaryPlan):
    """Rows compared by position, NULL equal to NULL; the names are the left side's.

    ``all`` keeps duplicates: INTERSECT ALL the smaller of both counts, EXCEPT ALL what is left of the left count.
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
        """Equal rows pass or fail alike, so both sides can be filtered."""
        if not is_pure(predicate):
            return None
        pairs = zip(self.left.schema.names, self.right.schema.names, strict=True)
        return predicate, substitute(predicate, {left: self.right.column(right) for left, right in pairs})

    @override
    def input_of(self, expr: Expr) -> None:
        """Rows of both sides decide."""
        return None

    @override
    def ignores_repeats(self, repeats_are_ignored: bool) -> tuple[bool, ...]:
        return not self.all, not self.all

    @override
    def label(self) -> str:
        return f"SetOperation: {self.kind}{' all' if self.all else ''}"
