"""The errors users of kquery_spark can meet, each naming the thing that is wrong and what would be right."""

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
    """The engine declines the whole query: Spark gives another answer where the engine runs only a part of it."""


class PlanError(KQueryError):
    """A plan that cannot be right: an unknown or ambiguous column, wrong argument types, wrong arity."""


class SourceError(KQueryError):
    """A file or table that is missing, changed, unreadable or corrupt; the message names it."""


class SpillError(KQueryError):
    """State that passed the memory budget could not be written to local disk; the message names the directory."""


class ConfigError(KQueryError):
    """A setting or an option with a value that is not allowed."""


class SerializationError(KQueryError):
    """Bytes that are not a plan this version can read."""


class UserFunctionError(KQueryError):
    """A function of the user's own raised, or gave something else than it has to; the text names both."""


class VerifyError(KQueryError):
    """Two engines disagreed where agreement was required."""


class FallbackWarning(UserWarning):
    """The engine failed, in planning or at run time, and Spark ran the query instead; the text says what failed."""


class ConfigWarning(UserWarning):
    """A ``spark.kquery.*`` setting of a session cannot be used; the message says what is right and which default holds."""


class SqlError(PlanError):
    """SQL text that cannot be understood, with a position (1-based line and column) and a caret."""

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
