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
    """One call of chained functions: the first one gets the arguments, each other one the result of the previous one.

    offsets: the positions of the arguments among the columns. names: the names of the arguments, "" for positional ones.
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
