"""Errors of tasks as data: of what a worker raises only the text reaches the driver, so the text is a line of JSON."""

from __future__ import annotations

import json
from typing import Literal

from kquery_spark import errors

Kind = Literal["query", "user function", "source", "engine"]
"""query: the query causes the error on its data, so Spark raises it, too. user function: it raised, or gave something wrong.
source: a file is missing, changed or corrupt. engine: everything else."""


class TaskError(errors.KQueryError):
    """What a task of the engine ended with.

    kind: whose fault it is. name: the class of the error. error_class: Spark's, of the kind "query". message: its text.
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
        """The class of this package that was raised; KQueryError for one of others."""
        raised = getattr(errors, self.name, None)
        if isinstance(raised, type) and issubclass(raised, errors.KQueryError):
            return raised
        return errors.KQueryError


_MARK = f"{TaskError.__module__}.{TaskError.__qualname__}: "


def task_error(error: Exception) -> TaskError:
    """An error of a task as data."""
    if isinstance(error, TaskError):
        return error
    name, message = type(error).__name__, str(error)
    if isinstance(error, errors.ExecutionError):
        return TaskError("query", name, message, error.error_class)
    if isinstance(error, errors.UserFunctionError):
        return TaskError("user function", name, message)
    return TaskError("source" if isinstance(error, errors.SourceError) else "engine", name, message)


def parse_task_error(text: str) -> TaskError | None:
    """The last error of a task in a text of Spark's; None where there is none."""
    _, mark, rest = text.rpartition(_MARK)
    if not mark:
        return None
    try:
        facts = json.loads(rest.split("\n", 1)[0])
        return TaskError(facts["kind"], facts["name"], facts["message"], facts["error_class"])
    except (ValueError, KeyError, TypeError):  # a text that Spark has cut
        return TaskError("engine", "KQueryError", rest.split("\n", 1)[0][:300])
