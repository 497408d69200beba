"""Recursive queries (``WITH RECURSIVE``): a step plan runs in rounds, each over the rows of the previous round.

The recursion ends with the first round that returns no rows. The rows of the previous round are the working table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import walk
from kquery_spark.logical.plan import LogicalPlan, walk_plan
from kquery_spark.logical.subqueries import Subquery

_EXPECTED_ROWS = 1_000.0  # a guess for one round; Spark allows a million rows in total by default


@dataclass(frozen=True)
class RecursionLimits:
    """Limits of a recursion; None means no limit.

    It is an error to need more than ``max_rounds`` rounds, or to reach ``max_rows`` rows in all rounds together. The
    recursion ends early, without an error, when ``enough_rows`` rows are there, which is what a LIMIT above needs.
    """

    max_rounds: int | None = None
    max_rows: int | None = None
    enough_rows: int | None = None


@dataclass(frozen=True)
class LastRound(LogicalPlan):
    """The working table: inside the step of the Recursion with the same ``key``, the rows of the previous round."""

    key: str
    columns: pa.Schema

    is_row_wise: ClassVar[bool] = True

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
    """Outputs the rows of ``anchor``, which is the first round, and the rows of all rounds of ``step``.

    Columns are matched by position; the output has the anchor's names.
    """

    anchor: LogicalPlan
    step: LogicalPlan
    key: str
    limits: RecursionLimits = RecursionLimits()

    @override
    def derive_schema(self) -> pa.Schema:
        pairs = zip(self.anchor.schema, self.step.schema, strict=True)
        return pa.schema([a.with_nullable(a.nullable or b.nullable) for a, b in pairs])

    @override
    def validate(self) -> None:
        rounds = [n for n in walk_plan(self.step) if isinstance(n, LastRound) and n.key == self.key]
        if any(plan.schema.types != self.anchor.schema.types for plan in (self.step, *rounds)):
            raise PlanError("the step of a recursion has other column types than its anchor")

    @property
    @override
    def children(self) -> tuple[LogicalPlan, ...]:
        return (self.anchor, self.step)

    @override
    def with_children(self, children: Sequence[LogicalPlan]) -> LogicalPlan:
        return replace(self, anchor=children[0], step=children[1])

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
    """Return the keys of all LastRounds in the plan and its subqueries whose Recursion is outside of the plan."""
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
