"""One call of a Python function of Spark's users, as Spark describes it to a Python worker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PythonFunction:
    """A function, pickled. broadcasts: ids of the broadcast variables that the worker must have to unpickle it."""

    command: bytes
    broadcasts: tuple[int, ...] = ()


@dataclass(frozen=True)
class PythonCall:
    """One call: functions of which each gets the value of the one before, the first one the arguments.

    offsets: of the arguments among the columns. names: of the arguments, "" without one.
    """

    functions: tuple[PythonFunction, ...]
    offsets: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def unnamed(cls, function: PythonFunction, offsets: tuple[int, ...]) -> PythonCall:
        """A call of one function whose arguments have no names."""
        return cls((function,), offsets, ("",) * len(offsets))

    @property
    def commands(self) -> tuple[bytes, ...]:
        """The pickled functions."""
        return tuple(function.command for function in self.functions)
