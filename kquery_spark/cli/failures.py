"""The exit codes of commands and jobs, and the conversion of every error to one clear line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum

import click
from pyspark.errors import AnalysisException, ParseException

from kquery_spark import errors
from kquery_spark.spark_bridge.jvm.output import print_by_jvm
from kquery_spark.spark_bridge.session.failures import (
    SPARK_ERRORS,
    java_root_cause,
    task_error_of,
    without_error_log,
)


class Exit(IntEnum):
    """The exit codes, on which pipelines can rely. 1 is for unexpected errors."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    MISSING_PATH = 3
    BAD_SQL = 4
    UNREADABLE = 5
    QUERY_FAILED = 6
    DIFFERENT_ANSWERS = 7
    OUTPUT = 8
    DECLINED = 9
    INTERRUPTED = 130


class Failure(Exception):
    """Ends the command with an exit code and one line, which says what is wrong and, if helpful, what would be right."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Convert the errors of reading a file that is missing or unreadable to Failures."""
    try:
        yield
    except FileNotFoundError:
        raise Failure(Exit.MISSING_PATH, f"path does not exist: {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(Exit.UNREADABLE, f"cannot read {path}: {error}") from error


# Exit codes by the first part of Spark's error condition. All other conditions are invalid SQL if Spark's analysis
# raised them, and otherwise a failed query.
_CONDITIONS: tuple[tuple[str, Exit], ...] = (
    ("PATH_NOT_FOUND", Exit.MISSING_PATH),
    ("FAILED_READ_FILE.FILE_NOT_EXIST", Exit.MISSING_PATH),
    ("FAILED_READ_FILE", Exit.UNREADABLE),
    ("UNABLE_TO_INFER_SCHEMA", Exit.UNREADABLE),
    ("CANNOT_READ", Exit.UNREADABLE),
    ("MALFORMED_", Exit.UNREADABLE),
)

_EXIT_CODES: tuple[tuple[type[errors.KQueryError], Exit], ...] = (
    (errors.Unsupported, Exit.DECLINED),
    (errors.PlanError, Exit.BAD_SQL),
    (errors.SourceError, Exit.UNREADABLE),
    (errors.VerifyError, Exit.DIFFERENT_ANSWERS),
    (errors.ConfigError, Exit.USAGE),
    (errors.KQueryError, Exit.QUERY_FAILED),
)

_SPARK_ERROR = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\] ([^\n]*)")
_POSITION = re.compile(r"(?:; |\()line (\d+),? pos (\d+)[;)]?")
# The position in run-time errors. Unlike in ``_POSITION``, columns are counted from 1.
_CONTEXT = re.compile(r"== SQL[^\n]*\(line (\d+), position (\d+)\)")
_NO_FILE = re.compile(r"does not exist|no such file", re.IGNORECASE)


def explain_failure(error: BaseException) -> Failure:
    """Convert any exception to a Failure with an exit code and one line."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, click.ClickException):
        return Failure(Exit.USAGE, _one_line(error.format_message()))
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return Failure(Exit.INTERRUPTED, "interrupted")
    if isinstance(error, errors.KQueryError):
        # The engine's SQL parser also raises SqlError for valid SQL that it does not support.
        declined = isinstance(error, errors.SqlError) and isinstance(error.__context__, errors.Unsupported)
        return _engine_failure(errors.Unsupported if declined else type(error), str(error))
    if isinstance(error, SPARK_ERRORS):
        return _spark(error)
    if isinstance(error, FileNotFoundError):
        return Failure(Exit.MISSING_PATH, _one_line(f"path does not exist: {error.filename}"))
    return Failure(Exit.UNEXPECTED, _one_line(f"{type(error).__name__}: {error}"))


def _engine_failure(kind: type[errors.KQueryError], text: str) -> Failure:
    code = next(code for base, code in _EXIT_CODES if issubclass(kind, base))
    if code is Exit.UNREADABLE and _NO_FILE.search(text):
        code = Exit.MISSING_PATH
    return Failure(code, _one_line(text))


def _spark(error: BaseException) -> Failure:
    text = str(error)
    raised = task_error_of(error)
    if raised is not None:
        return _engine_failure(raised.original_class, raised.message)
    match = _SPARK_ERROR.search(text)
    if match is None:
        return Failure(Exit.QUERY_FAILED, _one_line(java_root_cause(error)))
    condition, message = match.groups()
    default = Exit.BAD_SQL if isinstance(error, (AnalysisException, ParseException)) else Exit.QUERY_FAILED
    code = next((code for start, code in _CONDITIONS if condition.startswith(start)), default)
    position = _position(text)
    # Spark 3.5 repeats the position in the message.
    message = _POSITION.sub("", re.sub(r"\s*SQLSTATE: \w+.*$", "", message))
    return Failure(code, _one_line(f"[{condition}] {message}") + position)


def _position(text: str) -> str:
    """Return the position of an error in the SQL, such as " (line 1, column 8)"; an empty string if it has none."""
    where = _POSITION.search(text.split("\n'", 1)[0])
    if where is not None:
        return f" (line {where[1]}, column {int(where[2]) + 1})"
    where = _CONTEXT.search(text)
    return "" if where is None else f" (line {where[1]}, column {where[2]})"


def _one_line(text: str, limit: int = 500) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def print_error(line: str) -> None:
    """Print a line on stderr; under ``spark-submit``, on the stderr of ``spark-submit`` itself."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # spark-submit redirects the stderr of this process to its own stdout. Only the JVM has the real stderr.
        try:
            print_by_jvm(line)
            return
        except Exception:
            pass  # the JVM has ended: print to the redirected stderr
    print(line, file=sys.stderr, flush=True)


def run(name: str, command: Callable[[], object]) -> int:
    """Run ``command`` and return its exit code. A failure is printed as one line ``name: error: ...`` on stderr."""
    try:
        # PySpark logs a page of JSON for each error of a query. ``print_error`` prints one line instead.
        with without_error_log():
            command()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (Exception, KeyboardInterrupt) as error:
        failure = explain_failure(error)
        print_error(f"{name}: error: {failure.message}")
        return int(failure.code)
    return int(Exit.OK)
