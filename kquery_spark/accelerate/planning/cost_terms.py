"""The cost terms of running a part in the engine: amounts from estimates, times seconds per unit from the cost model.

Each term is a saving (positive) or a cost (negative) relative to Spark, so the sum of all terms is the time that the engine
should save. For example, at 2 ns per decoded byte and 0.03 s per Python stage, a query that decodes 100 MB in two stages
saves 0.2 s of decoding and pays 0.06 s for the stages.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.accelerate.planning.part import Part
from kquery_spark.cached_property import cached_property
from kquery_spark.compiler.compile import is_ordered
from kquery_spark.config.cost import CostModel
from kquery_spark.expr import columns_of
from kquery_spark.logical import (
    Aggregate,
    Input,
    Join,
    Limit,
    LogicalPlan,
    Scan,
    SetOperation,
    Window,
    walk_plan,
)
from kquery_spark.optimizer.statistics import Estimator, row_width, stored_widths
from kquery_spark.physical.operators import ExchangeExec
from kquery_spark.physical.operators.base import walk_operators
from kquery_spark.sources.memory import MemorySource
from kquery_spark.sources.ranges import RangeSource
from kquery_spark.types import names as t

_LAST_SORT = "rows of the last sort"


@dataclass(frozen=True)
class CostTerm:
    """One line of a decision: an amount and the seconds that it saves (negative: costs)."""

    name: str
    amount: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.seconds * 1000:+10,.1f} ms  {self.name}: {self.amount:,.0f}"


class PartCosts:
    """Computes the cost terms of a part that runs in Spark's Python workers."""

    def __init__(self, part: Part, model: CostModel) -> None:
        self._query = part.compiled
        self._model = model
        self._estimator = Estimator()
        self._nodes = list(walk_plan(self._query.optimized))
        self.rows = self._query.estimate.rows
        self.rows_handed_over = sum(handover.rows for handover in part.imported.inputs)
        self._values_handed_over = sum(h.rows * max(len(h.schema), 1) for h in part.imported.inputs)
        # Each input that Spark computes adds a Python stage that passes its rows to the engine.
        self.python_stages = len(self._query.graph.stages) + len(part.imported.inputs)
        counted = [n for n in self._nodes if _is_counted(n)]
        self._counted_rows = sum(self._estimator.estimate(n).rows for n in counted)
        # Ranges and inline rows are generated, not decoded.
        self.decoded_bytes = self._query.estimate.scanned - sum(
            self._estimator.estimate(n).scanned for n in counted
        )
        self.reads_nothing = bool(counted) and self._reads_only(counted)
        self._steps = part.steps
        self._calls = [n for n in self._nodes if n.calls_python]
        self.is_row_wise = not self._steps and not self._calls

    def _reads_only(self, leaves: list[LogicalPlan]) -> bool:
        return len(leaves) == sum(1 for n in self._nodes if isinstance(n, Scan | Input))

    @cached_property
    def terms(self) -> tuple[CostTerm, ...]:
        """All terms that are not zero, the largest saving first."""
        model, tops = self._model, self._first_rows_in_an_order
        crossing, handed, stages = self.rows, self._values_handed_over, self.python_stages
        terms = [
            CostTerm("planning", 1, -model.planning_seconds),
            CostTerm("Python stages", stages, -stages * model.stage_seconds),
            CostTerm("rows from Arrow to Spark", crossing, -crossing * model.result_row_seconds),
            CostTerm("values handed over", handed, -handed * model.handed_value_seconds),
            CostTerm(
                "rows of Python functions", self._called_rows, self._called_rows * model.called_row_seconds
            ),
            CostTerm("rows counted", self._counted_rows, -self._counted_rows * model.counted_row_seconds),
            CostTerm("bytes decoded", self.decoded_bytes, self.decoded_bytes * model.decoded_byte_seconds),
            CostTerm(
                "joins, aggregates, windows and sorts",
                len(self._steps) - tops,
                (len(self._steps) - tops) * model.step_seconds,
            ),
            CostTerm("first rows in an order", tops, tops * model.top_seconds),
            CostTerm("rows of the largest step", self._step_rows, self._step_rows * model.step_row_seconds),
            self.exchanged_strings,
            self.last_sort,
        ]
        return tuple(sorted((term for term in terms if term.seconds), key=lambda term: -term.seconds))

    @property
    def saved_seconds(self) -> float:
        """Seconds saved by running the part in the engine; negative if Spark is faster."""
        return sum(term.seconds for term in self.terms)

    @property
    def decodes_cached_numbers(self) -> bool:
        """True if most of the work is decoding numbers that Spark's cache already holds as values."""
        cached = [n for n in self._nodes if isinstance(n, Scan) and n.cached]
        rows = sum(n.source.row_count() or 0 for n in cached)
        bytes_of_numbers = sum(map(_number_bytes, cached))
        return (
            bytes_of_numbers > rows * self._model.cached_number_bytes
            and not self._first_rows_in_an_order
            and not any(map(self._outweighs_a_scan, self._steps))
        )

    def _outweighs_a_scan(self, node: LogicalPlan) -> bool:
        """True if a step costs Spark more than reading its input; false for an aggregate with few groups."""
        return not isinstance(node, Aggregate) or self._estimator.estimate(node).rows > self._model.few_groups

    @property
    def _first_rows_in_an_order(self) -> int:
        return sum(1 for n in self._nodes if isinstance(n, Limit) and is_ordered(n.child))

    @cached_property
    def _step_rows(self) -> float:
        """Input rows of the largest join, aggregate, window, or set operation; at most the rows that the scans read."""
        estimate = self._estimator.estimate
        steps = [n for n in self._nodes if isinstance(n, Join | Aggregate | Window | SetOperation)]
        input_rows = max((estimate(c).rows for n in steps for c in n.children), default=0.0)
        return min(input_rows, sum(estimate(n).rows for n in self._nodes if isinstance(n, Scan)))

    @property
    def _called_rows(self) -> float:
        """Rows that Spark sends to Python functions in another process, counted once per node."""
        return sum(self._estimator.estimate(child).rows for n in self._calls for child in n.children)

    @cached_property
    def exchanged_strings(self) -> CostTerm:
        """The term of long strings that are shuffled."""
        exchanged = self._exchanged_string_bytes
        cost = exchanged * self._model.exchanged_string_byte_seconds
        return CostTerm("bytes of long strings exchanged", exchanged, -cost)

    @property
    def _exchanged_string_bytes(self) -> float:
        """Bytes of long strings that are shuffled, estimated from their average length in the scans.

        Exchanges for a sort (those with range bounds) do not count.
        """
        width = self._string_width
        if width <= self._model.short_string_bytes:
            return 0.0
        exchanges = [
            n
            for n, _ in walk_operators(self._query.physical)
            if isinstance(n, ExchangeExec) and not n.partitioning.bounds
        ]
        rows = (
            (n.nbytes / row_width(n.schema)) * sum(map(_is_string_or_binary, n.schema)) for n in exchanges
        )
        return sum(rows) * width

    @property
    def _string_width(self) -> float:
        """Average bytes of a string in the columns of the scans."""
        scans = [n for n in self._nodes if isinstance(n, Scan)]
        widths = [
            w
            for n in scans
            for f, w in zip(n.schema, stored_widths(n), strict=True)
            if _is_string_or_binary(f)
        ]
        return sum(widths) / max(len(widths), 1)

    @cached_property
    def last_sort(self) -> CostTerm:
        """The term for sorting the result; it is a cost for wide rows.

        In Spark, all tasks share the sort. In the engine, a single task may have to sort, and it copies every value of a
        row.
        """
        if not self._query.is_ordered:
            return CostTerm(_LAST_SORT, 0.0, 0.0)
        model, result = self._model, self._query.graph.result
        cores = self._query.config.parallelism
        moved = (
            len(result.plan.schema) * model.sort_value_seconds
            + sum(stored_widths(self._query.optimized)) * model.sort_byte_seconds
        )
        by_engine = (model.sort_row_seconds + moved) / min(cores, len(result.tasks))
        return CostTerm(_LAST_SORT, self.rows, self.rows * (model.spark_sort_row_seconds / cores - by_engine))


def arrow_result_saves(plan: LogicalPlan, rows: float, model: CostModel) -> float:
    """Return the seconds saved by collecting the rows of a scan as Arrow; negative if strings are long."""
    columns = zip(plan.schema, stored_widths(plan), strict=True)
    strings = sum(width for field, width in columns if _is_string_or_binary(field))
    a_row = len(plan.schema) * model.arrow_value_seconds - strings * model.arrow_string_byte_seconds
    scans = [n for n in walk_plan(plan) if isinstance(n, Scan) and n.filters]
    filtered = sum(map(_filtered_bytes, scans)) * model.decoded_byte_seconds
    return rows * a_row + filtered - model.arrow_result_seconds


def _filtered_bytes(scan: Scan) -> float:
    """Return the bytes that a filtered scan decodes, except for strings that no filter reads."""
    filter_columns = columns_of(*scan.filters)
    read = [f.name for f in scan.source.schema if f.name in filter_columns or f.name in scan.schema.names]
    short = [
        n for n in read if n in filter_columns or scan.source.schema.field(n).type not in (t.STRING, t.BINARY)
    ]
    share = scan.source.column_bytes(short) / max(scan.source.column_bytes(read), 1)
    return Estimator().estimate(scan).scanned * share


def _number_bytes(scan: Scan) -> int:
    """Return the bytes of the numeric columns that a scan reads, as stored in its files."""
    read = columns_of(*scan.filters).union(scan.schema.names)
    numbers = [f.name for f in scan.source.schema if f.name in read and _is_number(f.type)]
    return scan.source.column_bytes(numbers)


def _is_number(dtype: pa.DataType) -> bool:
    return t.is_integral(dtype) or t.is_fractional(dtype)


def _is_counted(node: LogicalPlan) -> bool:
    return isinstance(node, Scan) and isinstance(node.source, RangeSource | MemorySource)


def _is_string_or_binary(field: pa.Field) -> bool:
    return field.type in (t.STRING, t.BINARY)
