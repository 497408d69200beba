"""Whether the engine should win a part of a query, from the plan's shape and its estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kquery_spark.accelerate.planning.cost_terms import CostTerm, PartCosts, arrow_result_saves
from kquery_spark.accelerate.planning.part import Part
from kquery_spark.accelerate.planning.plan_query import PlannedQuery
from kquery_spark.types import names as t


@dataclass(frozen=True)
class Decision:
    """The verdict and its numbers, as explain shows them.

    driver_only: it is worth it for actions that bring the rows to the driver, as it does all of it, or takes them as Arrow.
    terms: what running the part in Spark's Python workers saves and costs.
    """

    accelerate: bool
    sentence: str
    driver_only: bool = False
    terms: tuple[CostTerm, ...] = ()

    def __str__(self) -> str:
        if not self.terms:
            return self.sentence
        total = sum(term.seconds for term in self.terms)
        lines = [*map(str, self.terms), f"{total * 1000:+10,.1f} ms  in all"]
        return "\n".join([self.sentence, *lines])


def decide(planned: PlannedQuery, part: Part) -> Decision:
    """Weigh what native scans and fewer stages save against Python stages and rows that change sides."""
    verdict = _in_workers(planned, part)
    if verdict.accelerate or not part.compiled.graph.result.is_map:
        return verdict
    action = "An action that brings the rows to the driver"
    if fits_driver(planned, part):
        sentence = f"{verdict.sentence} {action} runs it there."
    elif planned.whole and len(part.compiled.graph.stages) == 1 and _saves_as_arrow(planned, part):
        sentence = f"{verdict.sentence} {action} takes them as Arrow."
    else:
        return verdict
    return replace(verdict, accelerate=True, sentence=sentence, driver_only=True)


def fits_driver(planned: PlannedQuery, part: Part) -> bool:
    """Whether the last stage is to run in the driver: one task of little work, on files or on the engine's own stages.

    By estimates: what runs there is bounded while it does.
    """
    graph = part.compiled.graph
    little = len(graph.result.tasks) == 1 and graph.gathered < planned.config.driver_bytes
    return planned.whole and little and crosses_as_arrow(part) and part.is_bounded and not part.exceeds_driver


def crosses_as_arrow(part: Part) -> bool:
    """Whether the rows can be collected as Arrow.

    PySpark's Arrow collect does not count rows without columns, and has no type for year-month intervals.
    """
    schema = part.compiled.physical.schema
    return bool(len(schema)) and t.YEAR_MONTH not in schema.types


def _saves_as_arrow(planned: PlannedQuery, part: Part) -> bool:
    query = part.compiled
    return (
        crosses_as_arrow(part) and arrow_result_saves(query.optimized, query.estimate.rows, planned.cost) > 0
    )


def _in_workers(planned: PlannedQuery, part: Part) -> Decision:
    """The verdict on running the part in Spark's Python workers."""
    costs = PartCosts(part, planned.cost)
    numbers = (
        f"about {costs.decoded_bytes / 1e6:,.1f} MB to decode, about {costs.rows:,.0f} result rows, "
        f"{len(part.compiled.graph.stages)} stage(s)"
    )
    if costs.rows_handed_over:
        numbers += f", about {costs.rows_handed_over:,.0f} rows handed over"
    if costs.only_passes_rows_on:
        return Decision(False, f"Rows are only passed on, which Spark does itself as fast ({numbers}).")
    if costs.reads_nothing:
        sentence = "Nothing is read, and Spark's generated code counts numbers as fast"
        return Decision(False, f"{sentence} ({numbers}).")
    if costs.decodes_cached_numbers:
        sentence = "Spark has the numbers in its cache, and little is done with them"
        return Decision(False, f"{sentence} ({numbers}).")
    saved = costs.saved_seconds
    if saved < 0:
        sentence = "Too little work for the engine to win"
        if costs.seconds_of("rows of the last sort") < 0:
            sentence = "Spark's tasks share the sort, which one task of the engine would do"
        elif saved - costs.seconds_of("bytes of long strings exchanged") >= 0:
            sentence = "Long strings would go from stage to stage, which takes Spark no longer"
        return Decision(False, f"{sentence}: {numbers}.", terms=costs.terms)
    beyond = ""
    if planned.snapshot is not None:
        beyond = " What is made of the rows is Spark's, as the tables may change before it is run."
    elif part.only_shared:
        beyond = " What is made of the sorted rows is Spark's (spark.kquery.sortRows)."
    return Decision(True, f"The engine should win: {numbers}.{beyond}", terms=costs.terms)
