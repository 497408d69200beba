"""Joins each row with the rows of a query that reads this row. An optimizer rule turns it into an ordinary join."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr
from kquery_spark.logical.join import JoinKind
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan
from kquery_spark.logical.subqueries import Subquery


@dataclass(frozen=True)
class LateralQuery(Subquery):
    """The query of a LateralJoin: a plan that is evaluated for each row of the join's child. It is not a value."""

    @property
    @override
    def dtype(self) -> pa.DataType:
        return pa.struct(list(self.plan.schema))

    @property
    @override
    def nullable(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"lateral({self._text()})"


@dataclass(frozen=True)
class LateralJoin(UnaryPlan):
    """Pairs each row of the child with the rows of ``query`` for it. LEFT keeps rows for which the query returns none."""

    child: LogicalPlan
    query: LateralQuery
    kind: JoinKind = JoinKind.INNER

    @override
    def derive_schema(self) -> pa.Schema:
        right = self.query.plan.schema
        padded = self.kind is JoinKind.LEFT
        return pa.schema([*self.child.schema, *(f.with_nullable(f.nullable or padded) for f in right)])

    @override
    def validate(self) -> None:
        super().validate()
        if self.kind not in (JoinKind.INNER, JoinKind.LEFT):
            raise PlanError(f"a lateral join cannot be a {self.kind} join")

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return (self.query,)

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        query = rule(self.query)
        assert isinstance(query, LateralQuery)
        return replace(self, query=query)

    @override
    def label(self) -> str:
        return f"LateralJoin: {self.kind} {self.query}"
