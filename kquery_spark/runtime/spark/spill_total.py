"""Counts the bytes that tasks spill: in Spark's task metrics, and in total while ``kq.export_metrics`` is active."""

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
    """Adds up the bytes that tasks wrote to disk because their state exceeded the memory budget."""

    def __init__(self, total: Accumulator[int]) -> None:
        self._total = total

    @override
    def add(self, stage: Stage, context: TaskContext, sent: int) -> None:
        spilled = _spilled_bytes(context)
        if spilled:
            self._total.add(spilled)


class SparkSpillMeter(TaskMeter):
    """Adds the spilled bytes to the metrics of Spark's task, which Spark's UI shows for stages, tasks and executors."""

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
        """Return the meter for tasks of a context; None unless ``begin`` was called."""
        with self._lock:
            if not self._readers:
                return None
            if context not in self._totals:
                self._totals[context] = context.accumulator(0)
            return SpillMeter(self._totals[context])

    def value(self) -> int:
        """Return the bytes so far, including those of stopped contexts."""
        return sum(total.value for total in tuple(self._totals.values()))


SPILL_TOTAL = SpillTotal()
