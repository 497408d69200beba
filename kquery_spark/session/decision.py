"""Whether the engine should win a part of a query, from the plan's shape and its estimates."""

from __future__ import annotations

from dataclasses import dataclass

from kquery_spark.logical import Aggregate, Join, Limit, Sort, walk_plan
from kquery_spark.session.planning import Part, PlannedQuery

_ROW_COST = 1.5e-7  # seconds Spark needs to take one result row from Arrow
_BYTE_GAIN = 2.0e-9  # seconds the engine saves on each decoded byte
_TASK_COST = 0.03  # seconds a Python stage costs beyond Spark's own


@dataclass(frozen=True)
class Decision:
    """The verdict and its numbers, as explain shows them."""

    accelerate: bool
    sentence: str


def decide(planned: PlannedQuery, part: Part) -> Decision:
    """Weigh what native scanning saves against Python stages and rows handed over."""
    if part.imported.inputs:
        return Decision(False, "Rows handed over from Spark cost more than the engine would save.")
    optimized = part.optimized
    reduces = any(isinstance(n, Aggregate | Join | Limit | Sort) for n in walk_plan(optimized))
    rows, scanned = part.estimate.rows, part.estimate.scanned
    numbers = f"about {scanned / 1e6:,.1f} MB to decode, about {rows:,.0f} result rows, {len(part.graph.stages)} stage(s)"
    if not reduces:
        return Decision(
            False, f"A plain scan gives every row back to Spark, which reads files itself ({numbers})."
        )
    cost = rows * _ROW_COST + len(part.graph.stages) * _TASK_COST
    gain = scanned * _BYTE_GAIN
    if gain < cost:
        return Decision(False, f"Too little work for the engine to win: {numbers}.")
    return Decision(True, f"The engine should win: {numbers}.")
