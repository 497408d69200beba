"""Whether the engine should win a part of a query, from the plan's shape and its estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.expr import columns_of
from kquery_spark.logical import (
    Aggregate,
    Filter,
    Generate,
    Input,
    Join,
    Limit,
    LogicalPlan,
    Projection,
    Scan,
    SetOperation,
    Union,
    Window,
    walk_plan,
)
from kquery_spark.optimizer.statistics import Estimator, row_width, stored_widths
from kquery_spark.physical.operators import ExchangeExec
from kquery_spark.runtime.spark.metering import walk_operators
from kquery_spark.session.planning import Part, PlannedQuery, is_sorted
from kquery_spark.sources.memory import MemorySource
from kquery_spark.sources.ranges import RangeSource
from kquery_spark.types import names as t

# Seconds, as measured on two cores with Spark 4.3 and warm workers; only their proportions matter.
_ROW_COST = 1.5e-7  # Spark takes one result row from Arrow, or hands one over
_COUNTED_COST = 1.0e-8  # a number of a range, which Spark's generated code makes on the fly
_BYTE_GAIN = 2.0e-9  # a decoded byte that the engine reads instead of Spark
_STAGE_COST = 0.03  # a Python stage beyond one of Spark's own
_PLANNING_COST = 0.05
_STEP_GAIN = 0.12  # Spark's exchange, extra stage and generated code for a join, an aggregate or a sort
_STEP_ROW_GAIN = 2.5e-7  # a row that goes into the largest of these
_EXCHANGED_BYTE_COST = 1.0e-8  # of long texts between stages, which Spark moves faster
_SHORT_TEXT = 24.0  # bytes that a text may take for this not to matter

# of a row that the last sort orders: Spark's tasks share theirs, the engine's may be one task's, which pays for all it moves
_SPARKS_SORT_COST = 1.4e-6
_SORT_COST = 1.5e-7
_SORTED_COLUMN_COST = 2.0e-8
_SORTED_BYTE_COST = 4.0e-9
_BROUGHT_COST = 0.018  # of rows that come as Arrow; what planning took is spent by then
_BROUGHT_VALUE_GAIN = 2.0e-8
_BROUGHT_BYTE_COST = 1.5e-9  # of strings, which Spark moves as fast
_TOP_GAIN = 0.02  # the first rows in an order: Spark keeps them in its stage, too

_PASS_ROWS_ON = (Scan, Projection, Filter, Input, Union, Generate, Limit)


@dataclass(frozen=True)
class Decision:
    """The verdict and its numbers, as explain shows them.

    driver_only: it is worth it for actions that bring the rows to the driver, as it does all of it, or takes them as Arrow.
    """

    accelerate: bool
    sentence: str
    driver_only: bool = False


def decide(planned: PlannedQuery, part: Part) -> Decision:
    """Weigh what native scans and fewer stages save against Python stages and rows that change sides."""
    verdict = _workers(planned, part)
    if verdict.accelerate or not part.graph.result.is_map:
        return verdict
    action = "An action that brings the rows to the driver"
    if fits_driver(planned, part):
        return Decision(True, f"{verdict.sentence} {action} runs it there.", True)
    if planned.whole and len(part.graph.stages) == 1 and _brought_gain(part) > _BROUGHT_COST:
        return Decision(True, f"{verdict.sentence} {action} takes them as Arrow.", True)
    return verdict


def fits_driver(planned: PlannedQuery, part: Part) -> bool:
    """Whether the last stage is to run in the driver: one task of little work, on files or on the engine's own stages.

    By estimates: what runs there is bounded while it does.
    """
    graph = part.graph
    little = len(graph.result.tasks) == 1 and graph.gathered < planned.config.driver_bytes
    return planned.whole and little and has_columns(part) and part.is_bounded and not part.exceeds_driver


def has_columns(part: Part) -> bool:
    """Whether the rows can be brought to the driver as Arrow: PySpark's does not count rows without columns."""
    return bool(len(part.physical.schema))


def _workers(planned: PlannedQuery, part: Part) -> Decision:
    """The verdict on running the part in Spark's Python workers."""
    nodes = list(walk_plan(part.optimized))
    steps = sum(1 for n in nodes if not isinstance(n, _PASS_ROWS_ON))
    handed = sum(handover.rows for handover in part.imported.inputs)
    made = [n for n in nodes if isinstance(n, Scan) and isinstance(n.source, RangeSource | MemorySource)]
    counted = sum(Estimator().estimate(n).rows for n in made)
    rows, stages = part.estimate.rows, len(part.graph.stages)
    # nothing is decoded where rows are in the plan or counted
    scanned = part.estimate.scanned - sum(Estimator().estimate(n).scanned for n in made)
    numbers = f"about {scanned / 1e6:,.1f} MB to decode, about {rows:,.0f} result rows, {stages} stage(s)"
    if handed:
        numbers += f", about {handed:,.0f} rows handed over"
    if not steps:
        sentence = "Rows are only passed on, which Spark does itself as fast"
        return Decision(False, f"{sentence} ({numbers}).")
    if made and len(made) == sum(1 for n in nodes if isinstance(n, Scan | Input)):
        sentence = "Nothing is read, and Spark's generated code counts numbers as fast"
        return Decision(False, f"{sentence} ({numbers}).")
    python_stages = stages + len(
        part.imported.inputs
    )  # Spark's rows come to the engine from a stage of their own
    cost = (rows + handed) * _ROW_COST + counted * _COUNTED_COST
    cost += python_stages * _STAGE_COST + _PLANNING_COST
    tops = sum(1 for n in nodes if isinstance(n, Limit) and is_sorted(n.child))
    gain = scanned * _BYTE_GAIN + (steps - tops) * _STEP_GAIN + tops * _TOP_GAIN
    exchanging = _exchanged_texts(part, nodes) * _EXCHANGED_BYTE_COST
    gain += _step_rows(nodes) * _STEP_ROW_GAIN - exchanging
    sorting = rows * _sort_gain(part) if is_sorted(part.optimized) else 0.0
    gain += sorting
    if gain < cost:
        sentence = "Too little work for the engine to win"
        if sorting < 0:
            sentence = "Spark's tasks share the sort, which one task of the engine would do"
        elif gain + exchanging >= cost:
            sentence = "Long texts would go from stage to stage, which takes Spark no longer"
        return Decision(False, f"{sentence}: {numbers}.")
    beyond = ""
    if planned.moment is not None:
        beyond = " What is made of the rows is Spark's, as the tables may change before it is run."
    elif part.only_shared:
        beyond = " What is made of the sorted rows is Spark's (spark.kquery.sortRows)."
    return Decision(True, f"The engine should win: {numbers}.{beyond}")


def _step_rows(nodes: Sequence[LogicalPlan]) -> float:
    """Rows that go into the largest join, aggregate or window, but no more than are read."""
    estimator = Estimator()
    steps = [n for n in nodes if isinstance(n, Join | Aggregate | Window | SetOperation)]
    taken = max((estimator.estimate(c).rows for n in steps for c in n.children), default=0.0)
    return min(taken, sum(estimator.estimate(n).rows for n in nodes if isinstance(n, Scan)))


def _exchanged_texts(part: Part, nodes: Sequence[LogicalPlan]) -> float:
    """Bytes of long texts that go from stage to stage, all taken to be as long as those of the scans; not for a sort."""
    scans = [n for n in nodes if isinstance(n, Scan)]
    widths = [w for n in scans for f, w in zip(n.schema, stored_widths(n), strict=True) if _is_text(f)]
    width = sum(widths) / max(len(widths), 1)
    if width <= _SHORT_TEXT:
        return 0.0
    exchanges = [
        n
        for n, _ in walk_operators(part.physical)
        if isinstance(n, ExchangeExec) and not n.partitioning.bounds
    ]
    rows = ((n.nbytes / row_width(n.schema)) * sum(map(_is_text, n.schema)) for n in exchanges)
    return sum(rows) * width


def _is_text(field: pa.Field) -> bool:
    return field.type in (t.STRING, t.BINARY)


def _brought_gain(part: Part) -> float:
    """Seconds that a scan takes less where the rows come to the driver as Arrow; less than none where texts are long."""
    plan = part.optimized
    columns = zip(plan.schema, stored_widths(plan), strict=True)
    texts = sum(width for field, width in columns if _is_text(field))
    brought = part.estimate.rows * (len(plan.schema) * _BROUGHT_VALUE_GAIN - texts * _BROUGHT_BYTE_COST)
    scans = [n for n in walk_plan(plan) if isinstance(n, Scan) and n.filters]
    return brought + sum(map(_filtered_bytes, scans)) * _BYTE_GAIN


def _filtered_bytes(scan: Scan) -> float:
    """Bytes that a scan with filters decodes, but for those of texts that it only passes on."""
    asked = columns_of(*scan.filters)
    read = [f.name for f in scan.source.schema if f.name in asked or f.name in scan.schema.names]
    short = [n for n in read if n in asked or scan.source.schema.field(n).type not in (t.STRING, t.BINARY)]
    share = scan.source.column_bytes(short) / max(scan.source.column_bytes(read), 1)
    return Estimator().estimate(scan).scanned * share


def _sort_gain(part: Part) -> float:
    """Seconds a row that a sort in the engine's tasks saves, where all of Spark's share it; less than none for wide rows."""
    cores = part.config.parallelism
    moved = (
        len(part.graph.result.plan.schema) * _SORTED_COLUMN_COST
        + sum(stored_widths(part.optimized)) * _SORTED_BYTE_COST
    )
    return _SPARKS_SORT_COST / cores - (_SORT_COST + moved) / min(cores, len(part.graph.result.tasks))
