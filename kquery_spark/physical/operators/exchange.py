"""Where a plan is cut into stages: ExchangeExec before the cut, ReadExec after it.

An ExchangeExec never runs: the stage builder replaces it by a ReadExec and makes its child a stage of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.types.batch import Batch


@dataclass(frozen=True)
class Partitioning:
    """Rows with equal keys meet in one of ``count`` tasks; no keys (count 1): all rows in one task.

    bounds: not by hash, but by the range that the only key is in: each bound is the first key of the next range (see
    ``key_ranges``). Every task gets at least one batch, empty or not, which identifies the task. descending: the
    first range has the largest keys. nulls_last: NULL is in the last range, not in the first. buckets: not by hash, but by
    the bucket of a table that is bucketed by the keys: the task that reads each bucket. Every task gets a batch, too.
    """

    keys: tuple[Expr, ...]
    count: int
    bounds: tuple[Any, ...] = ()
    descending: bool = False
    nulls_last: bool = False
    buckets: tuple[int, ...] = ()

    def __str__(self) -> str:
        how = "range" if self.bounds else "bucket" if self.buckets else "hash"
        return f"{how}({', '.join(map(str, self.keys))}) into {self.count}" if self.keys else "single"


@dataclass(frozen=True)
class ExchangeExec(UnaryExec):
    """Redistribute the child's rows, about ``nbytes`` of them."""

    child: PhysicalPlan
    partitioning: Partitioning
    nbytes: float

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.child.schema

    @override
    def label(self) -> str:
        return f"ExchangeExec: {self.partitioning}"


@dataclass(frozen=True)
class ReadExec(PhysicalPlan):
    """The rows that reach this task under ``input_id``: an earlier stage's output, or rows Spark hands over."""

    input_id: str
    columns: pa.Schema

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.columns

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        return task.inputs[self.input_id]()

    @override
    def label(self) -> str:
        return f"ReadExec: {self.input_id}"
