"""The errors that kquery_spark raises. Each message says what is wrong and what would be right."""

from __future__ import annotations


class KQueryError(Exception):
    """Base class of every error raised on purpose by this package."""


class Unsupported(KQueryError):
    """The engine declines a plan, an expression or a type.

    ``reason`` is one sentence; fallback, ``explain`` and the generated docs print exactly it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class UnsupportedQuery(Unsupported):
    """The engine declines the whole query, because running only a part of it would change Spark's answer."""


class BatchTooLarge(Unsupported):
    """A result for one batch exceeds Arrow's 32-bit offsets: 2 GiB of strings or 2^31 elements. Fewer rows may fit."""


class PlanError(KQueryError):
    """The plan is invalid: an unknown or ambiguous column, wrong argument types, or the wrong number of arguments."""


class SourceError(KQueryError):
    """A file or table is missing, changed, unreadable, or corrupt; the message names it."""


class SpillError(KQueryError):
    """State that exceeds the memory budget cannot be written to local disk; the message names the directory."""


class ConfigError(KQueryError):
    """A setting or an option has a value that is not allowed."""


class SerializationError(KQueryError):
    """The bytes are not a plan that this version can read."""


class UserFunctionError(KQueryError):
    """A user-defined function raised an error or returned a wrong result; the message names the function."""


class VerifyError(KQueryError):
    """Spark and the engine disagree although agreement was required."""


class FallbackWarning(UserWarning):
    """The engine failed during planning or at run time, and Spark ran the query instead; the message says what failed."""


class ConfigWarning(UserWarning):
    """A ``spark.kquery.*`` setting of a session is invalid; the message says what is right and which default is used."""


class SqlError(PlanError):
    """The SQL is invalid. The message has the position (1-based line and column) and a caret."""

    def __init__(self, message: str, sql: str = "", position: int | None = None) -> None:
        self.message = message
        self.position = position
        self.line: int | None = None
        self.column: int | None = None
        text = message
        if position is not None:
            before = sql[:position]
            self.line = before.count("\n") + 1
            start = before.rfind("\n") + 1
            self.column = position - start + 1
            source_line = sql[start:].split("\n", 1)[0]
            caret = " " * (self.column - 1) + "^"
            text = f"{message} (line {self.line}, column {self.column})\n{source_line}\n{caret}"
        super().__init__(text)


class SubstraitError(PlanError):
    """A Substrait plan is malformed, or it asks for something that the engine cannot do exactly as it says.

    The message names the relation, the function, or the type.
    """


class ExecutionError(KQueryError):
    """An error the query itself causes on its data, with Spark's error class (``DIVIDE_BY_ZERO`` ...).

    The text starts with ``[ERROR_CLASS]`` as Spark's own messages do.
    """

    def __init__(self, error_class: str, message: str) -> None:
        super().__init__(f"[{error_class}] {message}")
        self.error_class = error_class

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_execution_error, (self.error_class, str(self)))


def _rebuild_execution_error(error_class: str, text: str) -> ExecutionError:
    return ExecutionError(error_class, text.removeprefix(f"[{error_class}] "))


def type_name(value: object) -> str:
    """Return the type of a value for a message: with its package unless it is built in, as in ``pandas.DataFrame``."""
    cls = type(value)
    package = cls.__module__.partition(".")[0]
    return cls.__name__ if package == "builtins" else f"{package}.{cls.__name__}"
