"""Classifies errors at run time: an error of the query, a failure of the engine, or any other error."""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa
import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from kquery_spark import errors
from kquery_spark.errors import FallbackWarning
from kquery_spark.spark_bridge.frames.pyspark_names import error_condition
from kquery_spark.task_errors import TaskError, parse_task_error

try:
    from pyspark.logger import PySparkLogger
except ImportError:  # PySpark 3.5
    PySparkLogger = None  # type: ignore[assignment, misc]

R = TypeVar("R")

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""The errors that a Spark action raises; PySpark converts most errors of the JVM, and the others come from py4j."""

_CONDITION = re.compile(r"\[(_?[A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
_FILE_ERRORS = ("java.io.", "java.nio.file.", "org.apache.hadoop.")
# Where a Java exception begins in the text of an error.
_CAUSED_BY = re.compile(r"^\s*Caused by: (.*)", re.MULTILINE)
_LOST_TASK = re.compile(r"Lost task [^\n]*?\([^()]* executor [^()]*\): (.*)")
_CALL_FAILED = re.compile(r"An error occurred while calling [^\n]*\n: (.*)")
# Errors of cancelled work, which must not run again.
_JOB_CANCELLED = "SPARK_JOB_CANCELLED"
_CANCELLED = (_JOB_CANCELLED, "cancelled because SparkContext", " cancelled")
# Spark's errors for a worker that died, could not start, or wrote bytes that are not an Arrow stream. The worker factory
# raises errors of the JVM if a daemon is dead or cannot fork, and if an idle worker has died.
_WORKER_FAILURES = (
    "Python worker exited unexpectedly",
    "No module named 'kquery_spark",
    "org.apache.arrow.vector",
    "org.apache.spark.api.python.PythonWorkerFactory",
)
_TOO_LARGE_A_RESULT = "spark.driver.maxResultSize"


def task_error_of(error: BaseException) -> TaskError | None:
    """Extract the error that a task of the engine raised from the error that Spark raised; None for other errors."""
    return parse_task_error(str(error))


def error_class(error: BaseException) -> str | None:
    """Spark's error class (``DIVIDE_BY_ZERO`` ...) of an error of either engine; None if it has none."""
    raised = task_error_of(error)
    if raised is not None:
        return raised.error_class
    if isinstance(error, PySparkException):
        condition = error_condition(error)
        if condition is not None:
            return condition
    match = _CONDITION.search(str(error))
    return match[1] if match else None


def java_root_cause(error: BaseException) -> str:
    """The innermost Java exception of an error of Spark, as one line: its class and its message.

    Spark reports the exception of a task as a string, behind "Lost task"; others have "Caused by" lines.
    """
    text = str(error)
    causes = _CAUSED_BY.findall(text) or _LOST_TASK.findall(text) or _CALL_FAILED.findall(text)
    return str(causes[-1]).strip() if causes else text.strip().split("\n")[0]


def is_file_error(error: BaseException) -> bool:
    """True if a file system caused an error: no space, no permission, no connection."""
    return java_root_cause(error).startswith(_FILE_ERRORS)


def query_error(error: BaseException) -> str | None:
    """The engine's message for an error that the query causes on its data; None for other errors."""
    raised = task_error_of(error)
    return raised.message if raised is not None and raised.kind == "query" else None


def is_cancelled(error: BaseException) -> bool:
    """True if a Spark action failed because its job was cancelled, not if the error of a query contains the same words."""
    if task_error_of(error) is not None or error_class(error) not in (None, _JOB_CANCELLED):
        return False
    return any(mark in str(error) for mark in _CANCELLED)


def engine_failure(error: BaseException) -> str | None:
    """One line about a failure of the engine itself, after which Spark may run the query; None for other errors.

    These are not failures of the engine: an error that the query causes on its data (``DIVIDE_BY_ZERO``), an error of a
    PySpark function, a cancelled job, and Spark's own errors.
    """
    text = str(error)
    if isinstance(error, pa.ArrowException):  # of rows that came to the driver
        return f"{type(error).__name__}: {text}"
    # Check the task's own error first, as file names or strings in it may look like a cancellation.
    raised = parse_task_error(text)
    if raised is not None:
        return None if raised.kind == "query" else f"{raised.name}: {raised.message}"
    return None if any(mark in text for mark in _CANCELLED) else _worker_failure(text)


def _worker_failure(text: str) -> str | None:
    """The line about a failed Python worker, or the error above its stack frame; None if no worker failed."""
    error_line = ""
    for line in text.split("\n"):
        if not line.startswith("\tat "):
            error_line = line
        if any(mark in line for mark in _WORKER_FAILURES):
            return error_line[:300]
    return None


def unless_result_too_large(make: Callable[[], R]) -> R | None:
    """Return the result of ``make``, or None if it exceeds Spark's limit for results in the driver."""
    try:
        return make()
    except SPARK_ERRORS as error:
        if _TOO_LARGE_A_RESULT not in str(error):
            raise
        return None


@contextmanager
def without_error_log() -> Iterator[None]:
    """Silence PySpark 4's logger, which prints a page of JSON for each error of a query."""
    with _error_log_level(logging.CRITICAL + 1):
        yield


@contextmanager
def with_error_log() -> Iterator[None]:
    """Let PySpark 4's logger print again within a block of ``without_error_log``."""
    with _error_log_level(logging.WARNING):  # PySpark's own level
        yield


@contextmanager
def _error_log_level(level: int) -> Iterator[None]:
    """Set the level of PySpark 4's logger for errors of queries, and restore it at the end."""
    if PySparkLogger is None:
        yield
        return
    # PySpark calls methods of its own logger class on this logger, so logging.getLogger would break it
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    previous_level = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(previous_level)


_LIBRARIES = (
    os.path.dirname(str(errors.__file__)) + os.sep,
    os.path.dirname(str(pyspark.__file__)) + os.sep,
)


def warn_user(message: str, category: type[Warning] = FallbackWarning) -> None:
    """Warn at the line of the user's code that led here."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
