"""TaskMeter: takes what the operators of each finished task did."""

from __future__ import annotations

from typing import Protocol

from kquery_spark.physical.operators import TaskContext
from kquery_spark.stages.graph import Stage


class TaskMeter(Protocol):
    """Takes the report of each finished task of a stage, where the task runs."""

    def add(self, stage: Stage, context: TaskContext, sent: int) -> None:
        """Report a finished task. sent: bytes that it emitted."""
