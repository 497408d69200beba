"""One call of a Python function of Spark's users, as Spark describes it to a Python worker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PythonCall:
    """One call: functions of which each gets the value of the one before, the first one the arguments.

    commands: the pickled functions. offsets: of the arguments among the columns. names: of the arguments, "" without one.
    """

    commands: tuple[bytes, ...]
    offsets: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def unnamed(cls, command: bytes, offsets: tuple[int, ...]) -> PythonCall:
        """A call of one function whose arguments have no names."""
        return cls((command,), offsets, ("",) * len(offsets))
