"""Recursive queries: rounds of one plan over the rows of the round before, until a round gives none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, walk
from kquery_spark.logical.plan import LogicalPlan, walk_plan
from kquery_spark.logical.subqueries import Subquery

_EXPECTED_ROWS = 1_000.0  # of a round: nothing is known of them, and Spark allows a million in all


@dataclass(frozen=True)
class RoundLimits:
    """When a recursion ends before a round gives no rows; None: no limit.

    More rounds than max_rounds are an error, and so are max_rows of all rounds together, unless enough_rows
    come first, which are as many as the query needs.
    """

    max_rounds: int | None = None
    max_rows: int | None = None
    enough_rows: int | None = None


@dataclass(frozen=True)
class LastRound(LogicalPlan):
    """Inside the step of the Recursion of this ``key``: the rows of the round before."""

    key: str
    columns: pa.Schema

    passes_rows_on: ClassVar[bool] = True

    @override
    def derive_schema(self) -> pa.Schema:
        return self.columns

    @override
    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        return _EXPECTED_ROWS

    @override
    def label(self) -> str:
        return f"LastRound: {self.key}"


@dataclass(frozen=True)
class Recursion(LogicalPlan):
    """The rows of ``anchor``, the first round, and of each round of ``step``; the names are the anchor's."""

    anchor: LogicalPlan
    step: LogicalPlan
    key: str
    limits: RoundLimits = RoundLimits()

    @override
    def derive_schema(self) -> pa.Schema:
        pairs = zip(self.anchor.schema, self.step.schema, strict=True)
        return pa.schema([a.with_nullable(a.nullable or b.nullable) for a, b in pairs])

    @override
    def validate(self) -> None:
        rounds = [n for n in walk_plan(self.step) if isinstance(n, LastRound) and n.key == self.key]
        if any(plan.schema.types != self.anchor.schema.types for plan in (self.step, *rounds)):
            raise PlanError("the rounds of a recursion have other column types than its anchor")

    @property
    @override
    def children(self) -> tuple[LogicalPlan, ...]:
        return (self.anchor, self.step)

    @override
    def with_children(self, children: Sequence[LogicalPlan]) -> LogicalPlan:
        return replace(self, anchor=children[0], step=children[1])

    @override
    def input_of(self, expr: Expr) -> None:
        """Rows come from the anchor and from the step."""
        return None

    @override
    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        rows = sum(input_rows)
        enough = self.limits.enough_rows
        return rows if enough is None else min(rows, float(enough))

    @override
    def label(self) -> str:
        limits = [
            f"{name}={limit}"
            for name, limit in (
                ("rounds", self.limits.max_rounds),
                ("rows", self.limits.max_rows),
                ("enough", self.limits.enough_rows),
            )
            if limit is not None
        ]
        return f"Recursion: {', '.join([self.key, *limits])}"


def unbound_rounds(plan: LogicalPlan) -> set[str]:
    """The keys of the LastRounds of a plan, also in its subqueries, that are in no Recursion of it."""
    below = [unbound_rounds(child) for child in plan.children]
    subqueries = (e for x in plan.expressions for e in walk(x) if isinstance(e, Subquery))
    below += [unbound_rounds(subquery.plan) for subquery in subqueries]
    keys = set().union(*below)
    match plan:
        case LastRound():
            keys.add(plan.key)
        case Recursion():
            keys.discard(plan.key)
    return keys
