"""Errors of tasks as data. Spark passes only the message of a worker's error to the driver, so the message is JSON."""

from __future__ import annotations

import json
from typing import Literal

from kquery_spark import errors

Kind = Literal["query", "user function", "source", "engine"]
"""The cause of an error. query: the query and its data, so Spark raises an error as well. user function: it raised an error
or returned an invalid result. source: a file is missing, changed or corrupt. engine: everything else."""


class TaskError(errors.KQueryError):
    """The error with which a task of the engine ended.

    kind: the cause. name: the Python class of the error. message: its message. error_class: Spark's error class, if the kind
    is "query".
    """

    def __init__(self, kind: Kind, name: str, message: str, error_class: str | None = None) -> None:
        facts = {"kind": kind, "name": name, "error_class": error_class, "message": message}
        super().__init__(json.dumps(facts, ensure_ascii=False))
        self.kind = kind
        self.name = name
        self.message = message
        self.error_class = error_class

    def __reduce__(self) -> tuple[object, ...]:
        return TaskError, (self.kind, self.name, self.message, self.error_class)

    @property
    def original_class(self) -> type[errors.KQueryError]:
        """The class of the original error, if it is one of this package; otherwise KQueryError."""
        raised = getattr(errors, self.name, None)
        if isinstance(raised, type) and issubclass(raised, errors.KQueryError):
            return raised
        return errors.KQueryError


_MARK = f"{TaskError.__module__}.{TaskError.__qualname__}: "


def task_error(error: Exception) -> TaskError:
    """Convert any error of a task to a TaskError."""
    if isinstance(error, TaskError):
        return error
    name, message = type(error).__name__, str(error)
    if isinstance(error, errors.ExecutionError):
        return TaskError("query", name, message, error.error_class)
    if isinstance(error, errors.UserFunctionError):
        return TaskError("user function", name, message)
    return TaskError("source" if isinstance(error, errors.SourceError) else "engine", name, message)


def parse_task_error(text: str) -> TaskError | None:
    """Return the last TaskError in an error message of Spark; None if there is none."""
    _, mark, rest = text.rpartition(_MARK)
    if not mark:
        return None
    try:
        facts = json.loads(rest.split("\n", 1)[0])
        return TaskError(facts["kind"], facts["name"], facts["message"], facts["error_class"])
    except (ValueError, KeyError, TypeError):  # Spark has truncated the message
        return TaskError("engine", "KQueryError", rest.split("\n", 1)[0][:300])
