"""Operator metrics for ``kq.explain(df, analyze=True)``. A Spark accumulator collects them from the workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from pyspark import Accumulator, AccumulatorParam, SparkContext
from typing_extensions import override

from kquery_spark.physical.operators import Metrics, TaskContext
from kquery_spark.physical.operators.base import walk_operators
from kquery_spark.runtime.task_meter import TaskMeter
from kquery_spark.stages.graph import Stage

T = TypeVar("T")


@dataclass(frozen=True)
class TaskReport:
    """The metrics of one task: those of its stage's operators in the order of ``walk_operators``, and the bytes it sent.

    part: the index of the query's part that the stage belongs to.
    """

    part: int
    stage_id: str
    operators: tuple[Metrics, ...]
    sent: int


@dataclass(frozen=True)
class SeveralMeters(TaskMeter):
    """Forwards each report to several meters."""

    meters: tuple[TaskMeter, ...]

    @override
    def add(self, stage: Stage, context: TaskContext, sent: int) -> None:
        for meter in self.meters:
            meter.add(stage, context, sent)


class ListParam(AccumulatorParam[list[T]]):
    """An accumulator that concatenates lists."""

    @override
    def zero(self, value: list[T]) -> list[T]:
        return []

    @override
    def addInPlace(self, value1: list[T], value2: list[T]) -> list[T]:
        value1.extend(value2)
        return value1


class Meter(TaskMeter):
    """Reports the tasks of one part of the query. It is pickled and sent to the workers with the tasks."""

    def __init__(self, reports: Accumulator[list[TaskReport]], part: int) -> None:
        self._reports = reports
        self._part = part

    @override
    def add(self, stage: Stage, context: TaskContext, sent: int) -> None:
        metrics = tuple(context.metrics.get(id(node), Metrics()) for node, _ in walk_operators(stage.plan))
        self._reports.add([TaskReport(self._part, stage.stage_id, metrics, sent)])


@dataclass(frozen=True)
class StageMetrics:
    """The sums over all tasks of a stage: the number of tasks, the bytes sent, and the metrics of its operators by label."""

    tasks: int
    sent: int
    operators: tuple[tuple[str, Metrics], ...]


@dataclass
class Metering:
    """The driver's side: creates the meters for the parts of a query, and sums up their reports."""

    context: SparkContext
    reports: Accumulator[list[TaskReport]] = field(init=False)

    def __post_init__(self) -> None:
        self.reports = self.context.accumulator([], ListParam[TaskReport]())

    def part(self, index: int) -> Meter:
        """Return the meter of a part of the query."""
        return Meter(self.reports, index)

    def stage(self, part: int, stage: Stage) -> StageMetrics | None:
        """Return the metrics of a stage; None if none of its tasks ran."""
        mine = [r for r in self.reports.value if r.part == part and r.stage_id == stage.stage_id]
        if not mine:
            return None
        labels = ["  " * depth + node.label() for node, depth in walk_operators(stage.plan)]
        operators = [(label, _sum(r.operators[i] for r in mine)) for i, label in enumerate(labels)]
        return StageMetrics(len(mine), sum(r.sent for r in mine), tuple(operators))


def _sum(parts: Iterator[Metrics]) -> Metrics:
    total = Metrics()
    for metrics in parts:
        total.merge(metrics)
    return total
