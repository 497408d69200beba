"""Decides with ``when="auto"`` whether the engine should win a part of a query, from estimates and the cost model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kquery_spark.accelerate.planning.cost_terms import CostTerm, PartCosts, arrow_result_saves
from kquery_spark.accelerate.planning.part import Part
from kquery_spark.accelerate.planning.planned_query import PlannedQuery
from kquery_spark.types import names as t


@dataclass(frozen=True)
class Decision:
    """The verdict on a part and its numbers, as ``explain`` prints them.

    driver_only: only actions that collect rows in the driver gain, because the driver runs the part or receives Arrow.
    terms: the savings and costs of running the part in Spark's Python workers.
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
    """Decide whether the engine should win a part.

    If the engine should win in Spark's Python workers, it runs the part there. Otherwise, an action that collects the rows
    may still gain: the driver may run the last stage without a Spark job, or receive the rows as Arrow.
    """
    verdict = _decide_for_workers(planned, part)
    if verdict.accelerate or not part.compiled.graph.result.is_map:
        return verdict
    action = "An action that collects the rows"
    if fits_driver(planned, part):
        sentence = f"{verdict.sentence} {action} runs it in the driver."
    elif planned.whole and len(part.compiled.graph.stages) == 1 and _saves_as_arrow(planned, part):
        sentence = f"{verdict.sentence} {action} receives them as Arrow."
    else:
        return verdict
    return replace(verdict, accelerate=True, sentence=sentence, driver_only=True)


def fits_driver(planned: PlannedQuery, part: Part) -> bool:
    """True if the driver should run all stages in threads, or the last one, if that is a single task with little input.

    The work is estimated here; limits also apply while it runs.
    """
    graph = part.compiled.graph
    is_little = len(graph.result.tasks) == 1 and graph.result_input_bytes < planned.config.driver_bytes
    return (
        planned.whole
        and planned.config.driver_bytes > 0
        and is_collectable_as_arrow(part)
        and part.is_bounded
        and (is_little or part.threaded is not None)
        and not part.exceeds_driver
    )


def is_collectable_as_arrow(part: Part) -> bool:
    """True if the rows can be collected as Arrow.

    PySpark's Arrow collect loses the row count of rows without columns, and has no type for year-month intervals.
    """
    schema = part.compiled.physical.schema
    return bool(len(schema)) and t.YEAR_MONTH not in schema.types


def _saves_as_arrow(planned: PlannedQuery, part: Part) -> bool:
    query = part.compiled
    start_seconds = 0.0 if planned.bridge.has_workers else planned.cost.worker_start_seconds
    return (
        is_collectable_as_arrow(part)
        and arrow_result_saves(query.optimized, query.estimate.rows, planned.cost) > start_seconds
    )


def _decide_for_workers(planned: PlannedQuery, part: Part) -> Decision:
    """Decide whether running the part in Spark's Python workers should win.

    Three kinds of parts are rejected without a sum of cost terms, because Spark is known to run them as fast: scans with
    filters only, queries over generated numbers, and light work on numbers that Spark caches in decoded form.
    """
    costs = PartCosts(part, planned.cost)
    numbers = (
        f"about {costs.decoded_bytes / 1e6:,.1f} MB to decode, about {costs.rows:,.0f} result rows, "
        f"{len(part.compiled.graph.stages)} stage(s)"
    )
    if costs.rows_handed_over:
        numbers += f", about {costs.rows_handed_over:,.0f} rows handed over"
    if costs.is_row_wise:
        return Decision(
            False, f"Not accelerated: a scan and a filter only, so no gain is expected ({numbers})."
        )
    if costs.reads_nothing:
        sentence = "Not accelerated: no files are read, and Spark's generated code counts numbers as fast"
        return Decision(False, f"{sentence} ({numbers}).")
    if costs.decodes_cached_numbers:
        sentence = (
            "Not accelerated: Spark's cache holds the decoded numbers, and the query does little with them"
        )
        return Decision(False, f"{sentence} ({numbers}).")
    saved = costs.saved_seconds
    if saved < 0:
        sentence = "Not accelerated: too little work for the engine to win"
        if costs.last_sort.seconds < 0:
            sentence = "Not accelerated: Spark's tasks share the sort that one task of the engine would run"
        elif saved - costs.exchanged_strings.seconds >= 0:
            sentence = "Not accelerated: shuffling wide strings costs more than the engine saves"
        return Decision(False, f"{sentence}: {numbers}.", terms=costs.terms)
    beyond = ""
    if planned.snapshot is not None:
        changing = "the tables" if planned.snapshot.reads_tables else "the current time, user or database"
        beyond = (
            f" Operations on top of the result run in Spark, because {changing} may change before they run."
        )
    elif part.needs_shared_sort:
        beyond = " Operations on top of the sorted result run in Spark (spark.kquery.sortRows)."
    return Decision(True, f"The engine should win: {numbers}.{beyond}", terms=costs.terms)
