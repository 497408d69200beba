"""TaskMeter: receives the operator metrics of each finished task."""

from __future__ import annotations

from typing import Protocol

from kquery_spark.physical.operators import TaskContext
from kquery_spark.stages.graph import Stage


class TaskMeter(Protocol):
    """Receives a report for each finished task of a stage, in the process that ran the task."""

    def add(self, stage: Stage, context: TaskContext, sent: int) -> None:
        """Report a finished task. sent: the bytes of its output."""
