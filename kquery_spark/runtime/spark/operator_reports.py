"""What the operators of a stage did, in reports that explain themselves: sums over tasks need no plan at hand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kquery_spark.physical.operators import Metrics, PhysicalPlan, ReadExec, ScanExec, TaskContext
from kquery_spark.runtime.spark.metering import walk_operators
from kquery_spark.spark_bridge.session.task_execution import SparkExecution
from kquery_spark.stages.graph import Stage

SplitCount = tuple[int, int]
"""How many splits a scan reads, and how many there are before pruning."""


@dataclass(frozen=True)
class OperatorReport:
    """An operator: its line in printing order, the stage that it reads, and the splits if it reads files."""

    label: str
    depth: int
    metrics: Metrics
    reads: str | None = None
    splits: SplitCount | None = None

    def merged(self, other: OperatorReport) -> OperatorReport:
        """The operator in further tasks, too."""
        total = Metrics()
        total.merge(self.metrics)
        total.merge(other.metrics)
        return replace(self, metrics=total)


@dataclass(frozen=True)
class StageReport:
    """Finished tasks of a stage.

    query: the number of the query in this driver. execution: the one of Spark's that ran them; None in the driver.
    times: when the first task started and the last one ended, in seconds since 1970.
    """

    query: int
    stage_id: str
    execution: SparkExecution | None
    operators: tuple[OperatorReport, ...]
    tasks: int
    sent_bytes: int
    started: float
    ended: float

    def merged(self, other: StageReport) -> StageReport:
        """These tasks and those of another report of the stage."""
        operators = [a.merged(b) for a, b in zip(self.operators, other.operators, strict=True)]
        return replace(
            self,
            operators=tuple(operators),
            tasks=self.tasks + other.tasks,
            sent_bytes=self.sent_bytes + other.sent_bytes,
            started=min(self.started, other.started),
            ended=max(self.ended, other.ended),
        )


def stage_report(
    query: int,
    stage: Stage,
    context: TaskContext,
    sent_bytes: int,
    execution: SparkExecution | None,
    splits: Sequence[SplitCount | None],
) -> StageReport:
    """The report of one task. splits: as in ``split_counts``."""
    operators = tuple(
        OperatorReport(
            node.label(),
            depth,
            context.metrics.get(id(node), Metrics()),
            node.input_id if isinstance(node, ReadExec) else None,
            counted,
        )
        for (node, depth), counted in zip(walk_operators(stage.plan), splits, strict=True)
    )
    return StageReport(
        query, stage.stage_id, execution, operators, 1, sent_bytes, context.started, time.time()
    )


def split_counts(stage: Stage) -> tuple[SplitCount | None, ...]:
    """For each operator of a stage in printing order: the splits that its scan reads, and those before pruning."""
    return tuple(_split_count(stage, node) for node, _ in walk_operators(stage.plan))


def _split_count(stage: Stage, node: PhysicalPlan) -> SplitCount | None:
    if not isinstance(node, ScanExec):
        return None
    if node.splits is not None:
        own = len(node.splits)
    else:
        own = sum(len(task.as_dict()[node.scan_id]) for task in stage.tasks)
    return own, len(node.source.splits())
