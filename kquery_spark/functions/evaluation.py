"""The facet of a function for its evaluation: the modes in which it raises errors, argument order, and compiled loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import pyarrow as pa

from kquery_spark.functions.invalid_utf8 import InvalidUtf8, RowRule
from kquery_spark.kernels.compiled import CompiledLoops
from kquery_spark.types.str_enum import StrEnum
from kquery_spark.types.vector import Data, Vector


class EvalMode(StrEnum):
    """The effect of overflow, division by zero and malformed casts: an error, NULL, or Java's result (wrap around)."""

    ANSI = "ansi"
    TRY = "try"
    LEGACY = "legacy"


class Branching(Enum):
    """Which rows need an argument after the first."""

    FIRST_PRESENT = "the rows in which all arguments before it are NULL"
    IF_NAN = "the rows in which the first argument is NaN"
    NUMBERED = "the rows whose first argument is its number"


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a kernel receives besides its arguments."""

    dtype: pa.DataType
    mode: EvalMode = EvalMode.ANSI
    tz: str = "UTC"
    num_rows: int = 0


COLUMN: Final = object()
"""Stands for the value of an argument that is not a literal."""

Kernel = Callable[[Sequence[Vector], CallContext], Data]
ArgumentTest = Callable[[Sequence[pa.DataType], Sequence[object]], bool]
"""Takes argument types and literal values (COLUMN for other arguments)."""
SafetyTest = Callable[[Sequence[pa.DataType], Sequence[object], EvalMode], bool]
"""Takes argument types, literal values (COLUMN for other arguments), and the evaluation mode."""

ANSI_RAISES = frozenset({EvalMode.ANSI})
ALWAYS_RAISES = frozenset(EvalMode)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How a call is evaluated.

    encoded: True if the kernel handles narrow decimals and dictionaries itself; otherwise it receives plain data.
    check_values: raises Unsupported for literal arguments that the kernel does not support (COLUMN stands for others).
    raises: the modes in which a row can raise an error. The call must not see rows that a branch or AND excludes.
    safe_for: returns True if no row of a call with these arguments can raise an error in a mode of ``raises``.
    evaluates: argument positions in the order in which Spark evaluates them until one is NULL. Empty: from left to right if
    any NULL argument makes the result NULL, otherwise all arguments. stops_at_zero: outside of ANSI mode, a zero also ends
    the evaluation.
    lazy: True if Spark evaluates the arguments after the first only if it needs them. branching: which rows need them, if
    they must not see the other rows.
    loops: compiled loops that the function needs to be fast; it falls back to Spark until they are compiled.
    invalid_utf8: the treatment of strings that are not valid UTF-8, or a function that computes such rows one by one.
    """

    encoded: bool = False
    check_values: Callable[[Sequence[object]], None] | None = None
    raises: frozenset[EvalMode] = frozenset()
    safe_for: SafetyTest | None = None
    evaluates: tuple[int, ...] = ()
    stops_at_zero: bool = False
    lazy: bool = False
    branching: Branching | None = None
    loops: CompiledLoops | None = None
    invalid_utf8: InvalidUtf8 | RowRule = InvalidUtf8.DECLINED
