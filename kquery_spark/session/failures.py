"""Telling apart what went wrong at run time: the query's own error, the engine's failure, anything else."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa
import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from kquery_spark.errors import FallbackWarning

# The last line of a Python worker's traceback, for an error this package raised on purpose.
_RAISED = re.compile(r"^kquery_spark\.errors\.(\w+): ([^\n]*)", re.MULTILINE)
_ERROR_CLASS = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
_ANY_RAISED = re.compile(r"^(\w[\w.]*(?:Error|Exception|Interrupt|Exit)\b[^\n]*)", re.MULTILINE)
# What stopped on request must not start again.
_CANCELLED = re.compile(r"SPARK_JOB_CANCELLED|[Jj]ob (?:group )?\S+ cancelled|cancelled because SparkContext")
# A frame of this package in a worker's traceback, or Spark's side of a worker that died or spoke nonsense.
_OURS = re.compile(
    r'File "[^"\n]*kquery_spark/(?:runtime|physical|stages|sources|functions|types|expr)/|No module named \'kquery_spark|'
    r"Python worker exited unexpectedly|org\.apache\.arrow\.vector"
)

R = TypeVar("R")

_TOO_MUCH = "spark.driver.maxResultSize"

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What a Spark action raises; PySpark turns most of the JVM's errors into its own and lets the others through."""


def error_class(error: BaseException) -> str | None:
    """Spark's error class (``DIVIDE_BY_ZERO`` ...) of an error of either engine; None when it has none."""
    text = str(error)
    raised = _RAISED.findall(text)
    if raised:
        kind, message = raised[-1]
        found = _ERROR_CLASS.match(message)
        return found[1] if kind == "ExecutionError" and found else None
    if isinstance(error, PySparkException):
        condition = error.getCondition()
        if condition is not None:
            return str(condition)
    found = _ERROR_CLASS.search(text)
    return found[1] if found else None


def query_error(error: BaseException) -> str | None:
    """The engine's sentence about an error that the query causes on its data; None for other errors."""
    raised = _RAISED.findall(str(error))
    return raised[-1][1] if raised and raised[-1][0] == "ExecutionError" else None


def engine_failure(error: BaseException) -> str | None:
    """One line about a failure of the engine itself, which Spark alone may not have; None for other errors.

    Not the engine's failure: an error the query causes on its data (``DIVIDE_BY_ZERO``), a cancelled job, a
    failing user function, Spark's own errors.
    """
    text = str(error)
    if isinstance(error, pa.ArrowException):  # of rows that came to the driver
        return f"{type(error).__name__}: {text}"
    if _CANCELLED.search(text):
        return None
    raised = _RAISED.findall(text)
    if raised:
        kind, message = raised[-1]
        return None if kind == "ExecutionError" else f"{kind}: {message}"
    if not _OURS.search(text):
        return None
    lines = _ANY_RAISED.findall(text.split("\n\tat ", 1)[0])
    return lines[-1] if lines else text.strip().split("\n", 1)[0][:300]


def unless_too_much(make: Callable[[], R]) -> R | None:
    """What ``make`` gives, or None where Spark does not let the driver have so much at once."""
    try:
        return make()
    except SPARK_ERRORS as error:
        if _TOO_MUCH not in str(error):
            raise
        return None


_LIBRARIES = (
    os.path.dirname(os.path.dirname(__file__)) + os.sep,
    os.path.dirname(str(pyspark.__file__)) + os.sep,
)


def warn_user(message: str) -> None:
    """Give a FallbackWarning at the line of the user's code that led here."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, FallbackWarning, stacklevel=level)
