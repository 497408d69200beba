"""The operators at which a plan is cut into stages: ExchangeExec and ReadExec.

An ExchangeExec never runs: the stage builder replaces it by a ReadExec, and its child becomes a stage of its own.
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
    """How rows are distributed over ``count`` tasks. Rows with equal keys are sent to the same task.

    There are four kinds:

    - Single: without keys, all rows are sent to one task.
    - Hash: by the hash of the keys. This is the default.
    - Range: ``bounds`` has the first key of each range but the first (see ``key_ranges``). There is a single key.
      descending: the first range has the largest keys. nulls_last: NULL is in the last range instead of the first.
    - Bucket: by the bucket of a table that is bucketed by the keys. ``buckets`` has the task that reads each bucket.

    With ranges and buckets, every task gets at least one batch, even an empty one, from which it learns its number.
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
    """Redistributes the rows of the child. nbytes: the expected bytes of these rows."""

    child: PhysicalPlan
    partitioning: Partitioning
    nbytes: float

    @override
    def label(self) -> str:
        return f"ExchangeExec: {self.partitioning}"


@dataclass(frozen=True)
class ReadExec(PhysicalPlan):
    """Reads the rows that the task receives under ``input_id``: the output of an earlier stage, or rows from Spark."""

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
