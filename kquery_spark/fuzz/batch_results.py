"""Compares the results of a batch, expression by expression."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.fuzz.batches import Batch
from kquery_spark.fuzz.expressions import Expr
from kquery_spark.fuzz.oracle import CaseOutcome
from kquery_spark.verify import compare_tables


@dataclass
class JudgedExpr:
    """One expression of a batch and its outcome. in_process: True if the engine without Spark had the same result."""

    expr: Expr
    outcome: CaseOutcome | None = None
    in_process: bool = False


def differences(batch: Batch, expected: pa.Table, actual: pa.Table) -> list[CaseOutcome]:
    """Return the outcome of each expression of a query. expected, actual: the results of Spark and of the engine."""
    count = len(batch.exprs)
    if batch.shape == "condition":
        pairs = zip(rows_by_condition(expected, count), rows_by_condition(actual, count), strict=True)
        return [condition_outcome(theirs, ours) for theirs, ours in pairs]
    theirs, ours = _by_id(expected), _by_id(actual)
    if theirs.num_rows != ours.num_rows:
        what = f"Spark gives {theirs.num_rows} rows, the engine {ours.num_rows}"
        return [CaseOutcome("rows", what)] * count
    return [_column_outcome(theirs.select([n + 1]), ours.select([n + 1])) for n in range(count)]


def part_of(batch: Batch, result: pa.Table, start: int, stop: int) -> pa.Table:
    """Return the result of the expressions ``start`` to ``stop`` alone, taken from the result of the whole batch."""
    if batch.shape != "condition":
        names = [result.column_names[0], *(f"c{n}" for n in range(stop - start))]
        return result.select([0, *range(start + 1, stop + 1)]).rename_columns(names)
    number = result.column(0)
    kept = result.filter(pc.and_(pc.greater_equal(number, start), pc.less(number, stop)))
    return kept.set_column(
        0, kept.schema.field(0), pc.subtract(kept.column(0), pa.scalar(start, kept.schema.field(0).type))
    )


def rows_by_condition(table: pa.Table, count: int) -> list[list[int]]:
    """Return the row numbers that passed each condition."""
    passed: list[list[int]] = [[] for _ in range(count)]
    for condition, row in zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True):
        passed[condition].append(row)
    return [sorted(rows) for rows in passed]


def condition_outcome(theirs: list[int], ours: list[int]) -> CaseOutcome:
    """Return the outcome of a condition. theirs, ours: the rows that passed it in Spark and in the engine."""
    if theirs == ours:
        return CaseOutcome("same")
    return CaseOutcome("rows", f"rows {theirs} pass in Spark, {ours} in the engine")


def _by_id(table: pa.Table) -> pa.Table:
    return table.take(pc.sort_indices(table.column(0).combine_chunks()))


def _column_outcome(expected: pa.Table, actual: pa.Table) -> CaseOutcome:
    if expected.schema.equals(actual.schema) and expected.equals(actual):
        return CaseOutcome("same")
    differences = compare_tables(expected, actual, ordered=True)
    if not differences:
        return CaseOutcome("same")
    return CaseOutcome("schema" if expected.schema != actual.schema else "rows", str(differences[0]))
