"""The aggregate functions and window functions that plans may call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow as pa

from kquery_spark.frontends.substrait import mapping as m
from kquery_spark.frontends.substrait.mapping import Behaviors, Request
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t

_COUNTS = ("functions_aggregate_generic", "functions_aggregate_decimal_output")
_OVERFLOW: Behaviors = MappingProxyType({"overflow": ("ERROR",)})
_WRAPS: Behaviors = MappingProxyType({"overflow": ("SILENT",)})
#: The count of rows cannot overflow.
_COUNT: Behaviors = MappingProxyType({"overflow": ("ERROR", "SILENT", "SATURATE")})
_NONE: Behaviors = MappingProxyType({})


@dataclass(frozen=True)
class AggregateMapping:
    """A function of Substrait over groups or windows.

    function: the engine's function. fixed: options that the call must have, and the values that mean this function.
    accepts: raises PlanError for calls that the engine's function does not compute. over_groups: groups have it, too.
    """

    name: str
    function: str
    extensions: tuple[str, ...]
    ansi: Behaviors = field(default_factory=dict)
    legacy: Behaviors = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    accepts: Callable[[Request], None] = lambda request: None
    over_groups: bool = True
    result: pa.DataType | None = None
    """The type that Substrait says the function returns, if it is not that of the engine."""

    def behaviors(self, mode: EvalMode) -> Behaviors:
        """Return what the engine does in a mode."""
        own = self.ansi if mode is EvalMode.ANSI else self.legacy
        return {**own, **{option: (value,) for option, value in self.fixed.items()}}

    def matches(self, preferences: Mapping[str, Sequence[str]]) -> bool:
        """Return whether a call has the fixed options."""
        return all(value in preferences.get(option, ()) for option, value in self.fixed.items())


def _check_sum(request: Request) -> None:
    (arg,) = request.args
    if t.is_decimal(arg.dtype) and request.mode is not EvalMode.ANSI and "overflow" in request.preferences:
        raise request.decline("decimals that overflow are NULL outside of ANSI mode, which no option says")


def _check_avg(request: Request) -> None:
    (arg,) = request.args
    if t.is_integral(arg.dtype) and request.declared != t.DOUBLE:
        raise request.decline("the average of integers is a double in Spark, so the plan must declare fp64")
    if arg.dtype == t.FLOAT:
        raise request.decline("the average of fp32 is a double in Spark; cast the argument to fp64")


def _check_floats(request: Request) -> None:
    if any(a.dtype != t.DOUBLE for a in request.args):
        raise request.decline("it is supported for fp64 only")


def _distribution(name: str, function: str, value: str) -> AggregateMapping:
    fixed = MappingProxyType({"distribution": value})
    rounding: Behaviors = MappingProxyType({"rounding": ("TIE_TO_EVEN",)})
    return AggregateMapping(name, function, m.ARITHMETIC, rounding, rounding, fixed, _check_floats)


def _window(name: str, function: str = "", result: pa.DataType | None = None) -> AggregateMapping:
    return AggregateMapping(name, function or name, m.ARITHMETIC, over_groups=False, result=result)


_ENTRIES = (
    AggregateMapping("count", "count", _COUNTS, _COUNT, _COUNT),
    AggregateMapping("sum", "sum", m.ARITHMETIC, _OVERFLOW, _WRAPS, accepts=_check_sum),
    AggregateMapping("avg", "avg", m.ARITHMETIC, _OVERFLOW, _NONE, accepts=_check_avg),
    AggregateMapping("min", "min", (*m.ARITHMETIC, *m.DATETIME)),
    AggregateMapping("max", "max", (*m.ARITHMETIC, *m.DATETIME)),
    AggregateMapping("bool_and", "bool_and", m.BOOLEAN),
    AggregateMapping("bool_or", "bool_or", m.BOOLEAN),
    _distribution("std_dev", "stddev_samp", "SAMPLE"),
    _distribution("std_dev", "stddev_pop", "POPULATION"),
    _distribution("variance", "var_samp", "SAMPLE"),
    _distribution("variance", "var_pop", "POPULATION"),
    *(
        AggregateMapping(name, function, m.DATAFUSION, accepts=_check_floats)
        for name, function in (
            ("stddev", "stddev_samp"),
            ("stddev_pop", "stddev_pop"),
            ("var", "var_samp"),
            ("var_pop", "var_pop"),
        )
    ),
    _window("row_number", result=t.LONG),
    _window("rank", result=t.LONG),
    _window("dense_rank", result=t.LONG),
    _window("percent_rank"),
    _window("cume_dist"),
    _window("ntile"),
    _window("lag"),
    _window("lead"),
    _window("first_value"),
    _window("last_value"),
)


def entries() -> tuple[AggregateMapping, ...]:
    """Return all functions over groups or windows."""
    return _ENTRIES


def aggregate_mapping(
    name: str, preferences: Mapping[str, Sequence[str]], over_window: bool
) -> AggregateMapping | None:
    """Return the entry for a call; None if there is none. over_window: whether it is called over a window."""
    candidates = [e for e in _ENTRIES if e.name == name and (over_window or e.over_groups)]
    return next((e for e in candidates if e.matches(preferences)), None)


def fixed_options(name: str) -> list[str]:
    """Return the options that decide which of several functions a name of Substrait means."""
    return sorted({option for entry in _ENTRIES if entry.name == name for option in entry.fixed})


WRITTEN_AGGREGATES = {entry.function: entry for entry in _ENTRIES if entry.extensions}
