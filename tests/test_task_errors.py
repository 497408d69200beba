"""Errors of tasks travel as one line of JSON, and are distinguished by it."""

from __future__ import annotations

import pickle
import traceback

import pytest

from kquery_spark.errors import ExecutionError, KQueryError, SourceError, UserFunctionError
from kquery_spark.task_errors import TaskError, parse_task_error, task_error

RAISED = {
    "query": ExecutionError("DIVIDE_BY_ZERO", 'Division by zero.\nUse `try_divide`, "quoted" and é.'),
    "user function": UserFunctionError("f raised ValueError: no (f.py:3 in f)"),
    "source": SourceError("/data/a.parquet does not exist any more"),
    "engine": ZeroDivisionError("a bug\n\tat org.apache.spark"),
}


def text_of(error: Exception) -> str:
    """What Spark makes of an error that a worker raises."""
    try:
        try:
            raise error
        except Exception as cause:
            raise task_error(cause) from cause
    except TaskError as raised:
        lines = "".join(traceback.format_exception(raised))
    return f"An exception was thrown from the Python worker.\nTraceback:\n{lines}\n\tat org.apache.spark.api.python.X"


@pytest.mark.parametrize("kind", RAISED)
def test_an_error_survives_its_way_as_text(kind: str) -> None:
    actual = parse_task_error(text_of(RAISED[kind]))
    assert actual is not None
    assert (actual.kind, actual.name, actual.message) == (
        kind,
        type(RAISED[kind]).__name__,
        str(RAISED[kind]),
    )
    assert actual.error_class == ("DIVIDE_BY_ZERO" if kind == "query" else None)
    expected = type(RAISED[kind]) if isinstance(RAISED[kind], KQueryError) else KQueryError
    assert actual.original_class is expected


def test_other_strings_have_none() -> None:
    assert parse_task_error("ValueError: of a function of the user's") is None


def test_a_text_that_was_cut_is_the_engines() -> None:
    text = text_of(RAISED["query"])
    cut = text[: text.rindex("DIVIDE")]
    actual = parse_task_error(cut)
    assert actual is not None
    assert actual.kind == "engine"


def test_a_task_error_can_be_pickled_and_is_not_wrapped_twice() -> None:
    error = task_error(RAISED["query"])
    assert task_error(error) is error
    again = pickle.loads(pickle.dumps(error))
    assert (again.kind, again.error_class, again.message) == (error.kind, error.error_class, error.message)
