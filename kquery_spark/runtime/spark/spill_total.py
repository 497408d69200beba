"""The bytes that tasks spill: in Spark's metrics of the task, and summed while ``kq.export_metrics`` is active."""

from __future__ import annotations

import threading

from pyspark import Accumulator, SparkContext
from typing_extensions import override

from kquery_spark.physical.operators import TaskContext
from kquery_spark.physical.spill import SPILLED_BYTES
from kquery_spark.runtime.task_meter import TaskMeter
from kquery_spark.spark_bridge.ui.task_metrics import add_spilled_bytes
from kquery_spark.stages.graph import Stage


class SpillMeter(TaskMeter):
    """Adds up the bytes that tasks wrote to disk because their state passed the memory budget."""

    def __init__(self, total: Accumulator[int]) -> None:
        self._total = total

    @override
    def add(self, stage: Stage, context: TaskContext, sent: int) -> None:
        spilled = _spilled_bytes(context)
        if spilled:
            self._total.add(spilled)


class SparkSpillMeter(TaskMeter):
    """Counts them as spilled by Spark's task, as its UI shows for stages, tasks and executors."""

    @override
    def add(self, stage: Stage, context: TaskContext, sent: int) -> None:
        add_spilled_bytes(_spilled_bytes(context))


def _spilled_bytes(context: TaskContext) -> int:
    return sum(metrics.extra.get(SPILLED_BYTES, 0) for metrics in context.metrics.values())


class SpillTotal:
    """The sum over the Spark contexts of this process, with one accumulator for each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers = 0
        self._totals: dict[SparkContext, Accumulator[int]] = {}

    def begin(self) -> None:
        """Count in the stages that are built from now on, until ``end``."""
        with self._lock:
            self._readers += 1

    def end(self) -> None:
        """Undo one ``begin``."""
        with self._lock:
            self._readers -= 1

    def meter(self, context: SparkContext) -> SpillMeter | None:
        """The meter for tasks of a context; None while nobody counts."""
        with self._lock:
            if not self._readers:
                return None
            if context not in self._totals:
                self._totals[context] = context.accumulator(0)
            return SpillMeter(self._totals[context])

    def value(self) -> int:
        """Bytes so far, including those of contexts that have stopped."""
        return sum(total.value for total in tuple(self._totals.values()))


SPILL_TOTAL = SpillTotal()
