"""The registry of aggregate functions: names, Catalyst class, type rule, and the accumulator that computes the function.

An accumulator's phases (update, merge, finish) and its state types are declared together in ``physical/aggregates``. An
entry refers to it by name only, so that frontends do not depend on the physical layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from kquery_spark.errors import PlanError
from kquery_spark.functions.call_form import ONE_COLUMN, CallForm, register_calls
from kquery_spark.functions.registry import (
    NO_PARAMETERS,
    CatalystParameters,
    Coercion,
    TypeRule,
    VersionChange,
)
from kquery_spark.kernels.compiled import CompiledLoops


class ConstantArgument(Enum):
    """The meaning of an argument that must be a constant."""

    DELIMITER = "a string between two values; empty if it is missing"
    SHARES = "the shares of percentiles: a number from 0 to 1, or an array of them"
    RELATIVE_ERROR = "the relative error of an estimate"
    NUMBER_OF_VALUES = "the number of values to return"


@dataclass(frozen=True)
class AggregateFunction:
    """The entry of an aggregate function.

    nullable: whether the result can be NULL (that of COUNT cannot). ordered: the result depends on the order of rows.
    duplicate_free: DISTINCT does not change the result (MIN, MAX). over_windows: it can be computed over windows.
    accumulator: the name of its accumulator in ``physical/aggregates``.
    takes_null_treatment: SQL allows IGNORE NULLS and RESPECT NULLS, also as a flag after the argument.
    over_window: the window function that computes it over a window. ignores_nulls: it is that function with IGNORE NULLS.
    internal: SQL has no function with its names. raises: some values of its arguments are errors.
    counts: it counts rows or values, and returns 0 for an empty group. counts_true: it counts rows whose argument is TRUE.
    takes_star: ``*`` as its argument counts rows.
    adds: it adds values, so it can overflow. adds_as_doubles: it adds values of bigint as doubles, so they cannot.
    fills_rows: dropDuplicates uses it for the columns that are not keys.
    extreme: "least" or "greatest" if it returns that one of the values. repeatable: it returns the same result for the same
    integers in any order. keeps_nulls: it treats NULL as a value, so a NULL must not stand for a missing row.
    constants: positions of arguments that must be constants. constant_meaning: what the first one means, if SQL checks it.
    weighted: the name of the entry that implements it with a frequency for each value.
    variants: a field of the Catalyst class, a value of the field,
    and the name of the entry that implements the class with that value.
    overload: a number of arguments, and the entry that implements calls with that number. loops: the compiled loops that it
    needs to be faster than Spark; until they are loaded, queries with it fall back.
    calls: how calls are written in DataFrames and shown in column names.
    parameters: the required values of fields of the Catalyst class. changes: results that differ in earlier Spark releases.
    """

    name: str
    result: TypeRule
    accumulator: str
    catalyst: tuple[str, ...] = ()
    arity: tuple[int, int | None] = (1, 1)
    nullable: bool = True
    coerce: Coercion | None = None
    aliases: tuple[str, ...] = ()
    ordered: bool = False
    duplicate_free: bool = False
    over_windows: bool = True
    takes_null_treatment: bool = False
    over_window: str = ""
    ignores_nulls: bool = False
    internal: bool = False
    raises: bool = False
    counts: bool = False
    counts_true: bool = False
    takes_star: bool = False
    adds: bool = False
    adds_as_doubles: bool = False
    fills_rows: bool = False
    extreme: str = ""
    repeatable: bool = False
    keeps_nulls: bool = False
    constants: tuple[int, ...] = ()
    constant_meaning: ConstantArgument | None = None
    weighted: str = ""
    variants: tuple[tuple[str, object, str], ...] = ()
    overload: tuple[int, str] | None = None
    loops: CompiledLoops | None = None
    calls: CallForm = ONE_COLUMN
    parameters: CatalystParameters = NO_PARAMETERS
    changes: tuple[VersionChange, ...] = ()

    def check_arity(self, count: int) -> None:
        """Raise PlanError unless ``count`` arguments are allowed."""
        low, high = self.arity
        if count < low or (high is not None and count > high):
            raise PlanError(f"{self.name} cannot take {count} argument(s)")


_AGGREGATES: dict[str, AggregateFunction] = {}
_NAMES: dict[str, str] = {}
_CATALYST: dict[str, str] = {}


def register_aggregate(*entries: AggregateFunction) -> None:
    """Add entries; names are unique."""
    for entry in entries:
        register_calls(entry.name, entry.aliases, entry.calls)
        _NAMES.update(dict.fromkeys((entry.name, *entry.aliases), entry.name))
        _CATALYST.update(dict.fromkeys(entry.catalyst, entry.name))
        _AGGREGATES[entry.name] = entry


def aggregate_function(name: str) -> AggregateFunction:
    """The entry for a name or alias. Raises PlanError if there is none."""
    key = _NAMES.get(name.lower())
    if key is None:
        raise PlanError(f"unknown aggregate function {name}")
    return _AGGREGATES[key]


def overload_name(name: str, count: int) -> str:
    """Return the name of the aggregate that implements a call of ``name`` with ``count`` arguments."""
    overload = aggregate_function(name).overload
    return overload[1] if overload is not None and overload[0] == count else name


def has_aggregate(name: str) -> bool:
    """Return whether an aggregate of that name exists."""
    return name.lower() in _NAMES


def takes_null_treatment(name: str) -> bool:
    """Return whether ``name`` is an aggregate that SQL allows IGNORE NULLS and RESPECT NULLS for."""
    return has_aggregate(name) and aggregate_function(name).takes_null_treatment


def null_ignoring_variant(name: str) -> str | None:
    """Return the name of the aggregate that implements ``name`` with IGNORE NULLS; None if there is none."""
    ignoring = f"{name}_ignore_nulls"
    return ignoring if has_aggregate(ignoring) else None


def window_function_of(name: str) -> str:
    """Return the window function that computes an aggregate over a window; other names are returned unchanged."""
    over_window = aggregate_function(name).over_window if has_aggregate(name) else ""
    return over_window or name


def aggregate_for_catalyst(cls: str) -> AggregateFunction | None:
    """The entry for a Catalyst aggregate class, by its simple name."""
    name = _CATALYST.get(cls)
    return None if name is None else _AGGREGATES[name]


def aggregate_functions() -> Mapping[str, AggregateFunction]:
    """All entries by name."""
    return MappingProxyType(_AGGREGATES)
