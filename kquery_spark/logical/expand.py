"""Outputs each row several times with different values. ROLLUP, CUBE and GROUPING SETS are planned with it."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, columns_of
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan


@dataclass(frozen=True)
class Expand(UnaryPlan):
    """Outputs one row per input row and projection: 100 rows and 3 projections give 300 rows.

    ``names`` are the output columns. All projections have the same types. For ``ROLLUP (a, b)`` the projections are
    ``(a, b, 0)``, ``(a, NULL, 1)`` and ``(NULL, NULL, 3)``; the last column is the grouping id.
    """

    child: LogicalPlan
    projections: tuple[tuple[Expr, ...], ...]
    names: tuple[str, ...]

    @override
    def derive_schema(self) -> pa.Schema:
        columns = zip(*self.projections, strict=True)
        return pa.schema(
            [
                pa.field(name, column[0].dtype, any(e.nullable for e in column))
                for name, column in zip(self.names, columns, strict=True)
            ]
        )

    @override
    def validate(self) -> None:
        if not self.projections or any(len(p) != len(self.names) for p in self.projections):
            raise PlanError("every projection of an Expand needs one expression per column")
        types = [[e.dtype for e in p] for p in self.projections]
        if any(other != types[0] for other in types[1:]):
            raise PlanError("the projections of an Expand have different column types")
        super().validate()

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(e for p in self.projections for e in p)

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        return replace(self, projections=tuple(tuple(rule(e) for e in p) for p in self.projections))

    @override
    def prune_columns(self, needed: Set[str]) -> LogicalPlan:
        positions = [i for i, name in enumerate(self.names) if name in needed]
        if len(positions) == len(self.names):
            return self
        return replace(
            self,
            names=tuple(self.names[i] for i in positions),
            projections=tuple(tuple(p[i] for i in positions) for p in self.projections),
        )

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        return (columns_of(*self.expressions),)

    @override
    def label(self) -> str:
        rows = "; ".join(", ".join(map(str, p)) for p in self.projections)
        return f"Expand: [{', '.join(self.names)}] = {rows}"
