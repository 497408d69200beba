"""Finds the SQL execution of Spark to which the task of this Python worker belongs."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import TaskContext

_EXECUTION = "spark.sql.execution.id"
_ROOT = "spark.sql.execution.root.id"
_REDACTION_SETTINGS = ("spark.sql.redaction.string.regex", "spark.redaction.string.regex")
"""Settings under which Spark replaces parts of the strings of plans, so that the UI does not show them."""


@dataclass(frozen=True)
class SparkExecution:
    """An execution in the SQL tab of Spark's UI.

    root_id: the execution that it belongs to, or its own id. redacted: whether the session redacts strings of plans.
    """

    execution_id: int
    root_id: int
    redacted: bool


def execution_of_task() -> SparkExecution | None:
    """The execution of the task that runs in this worker; None if no SQL query started its job."""
    task = TaskContext.get()
    text = None if task is None else task.getLocalProperty(_EXECUTION)
    if task is None or text is None:
        return None
    redacted = any(task.getLocalProperty(name) for name in _REDACTION_SETTINGS)
    return SparkExecution(int(text), int(task.getLocalProperty(_ROOT) or text), redacted)
