"""Reports of operator metrics that contain everything needed to display them, so that the driver needs no plan."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kquery_spark.physical.operators import Metrics, PhysicalPlan, ReadExec, ScanExec, TaskContext
from kquery_spark.physical.operators.base import walk_operators
from kquery_spark.spark_bridge.session.task_execution import SparkExecution
from kquery_spark.stages.graph import Stage

SplitCount = tuple[int, int]
"""The number of splits that a scan reads, and the number before pruning."""


@dataclass(frozen=True)
class OperatorReport:
    """The metrics of an operator.

    label and depth: how to print it. reads: the id of the stage that it reads, if any. splits: the splits of a scan.
    """

    label: str
    depth: int
    metrics: Metrics
    reads: str | None = None
    splits: SplitCount | None = None

    def merged(self, other: OperatorReport) -> OperatorReport:
        """Return the report with the metrics of the same operator in other tasks added."""
        total = Metrics()
        total.merge(self.metrics)
        total.merge(other.metrics)
        return replace(self, metrics=total)


@dataclass(frozen=True)
class StageReport:
    """The report of one or more finished tasks of a stage.

    query: the number of the query in this driver. execution: the Spark execution that ran the tasks; None for the driver.
    started and ended: when the first task started and the last one ended, in seconds since 1970.
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
        """Return a report of these tasks and those of another report of the same stage."""
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
    """Return the report of one task. splits: as in ``split_counts``."""
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
    """Return the split counts of each operator in the order of ``walk_operators``; None for operators other than scans."""
    return tuple(_split_count(stage, node) for node, _ in walk_operators(stage.plan))


def _split_count(stage: Stage, node: PhysicalPlan) -> SplitCount | None:
    if not isinstance(node, ScanExec):
        return None
    if node.splits is not None:
        own = len(node.splits)
    else:
        own = sum(len(task.as_dict()[node.scan_id]) for task in stage.tasks)
    return own, len(node.source.splits())
