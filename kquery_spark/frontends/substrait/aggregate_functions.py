"""The table of the aggregate functions and window functions that plans may call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow as pa

from kquery_spark.expr import Expr, Literal
from kquery_spark.frontends.substrait import mapping as m
from kquery_spark.frontends.substrait.mapping import Behaviors, CallRequest
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t

_COUNT_EXTENSIONS = ("functions_aggregate_generic", "functions_aggregate_decimal_output")
_RAISES_ON_OVERFLOW: Behaviors = MappingProxyType({"overflow": ("ERROR",)})
_WRAPS_ON_OVERFLOW: Behaviors = MappingProxyType({"overflow": ("SILENT",)})
#: For counts, which cannot overflow, so that every value of the option is right.
_ANY_OVERFLOW: Behaviors = MappingProxyType({"overflow": ("ERROR", "SILENT", "SATURATE")})
_NO_OPTIONS: Behaviors = MappingProxyType({})


@dataclass(frozen=True)
class AggregateMapping:
    """An aggregate function or window function of Substrait.

    function: the engine's function. extensions, ansi, legacy: as in ScalarMapping. required_options: options that a call
    must have, with the values that mean this function: Substrait has one ``std_dev`` for samples and populations.
    check_call: raises PlanError for a call that the engine's function does not compute. is_aggregate: whether it
    can be called without a window.
    result: the type that Substrait says the function returns, if the engine's function returns another one.
    """

    name: str
    function: str
    extensions: tuple[str, ...]
    ansi: Behaviors = field(default_factory=dict)
    legacy: Behaviors = field(default_factory=dict)
    required_options: Mapping[str, str] = field(default_factory=dict)
    check_call: Callable[[CallRequest], None] = lambda request: None
    is_aggregate: bool = True
    result: pa.DataType | None = None

    def behaviors(self, mode: EvalMode) -> Behaviors:
        """Return the behavior of the engine in a mode."""
        behaviors = self.ansi if mode is EvalMode.ANSI else self.legacy
        return {**behaviors, **{option: (value,) for option, value in self.required_options.items()}}

    def matches(self, preferences: Mapping[str, Sequence[str]]) -> bool:
        """Return whether a call has the required options."""
        return all(value in preferences.get(option, ()) for option, value in self.required_options.items())


def _check_avg(request: CallRequest) -> None:
    (arg,) = request.args
    if t.is_integral(arg.dtype) and request.declared != t.DOUBLE:
        raise request.decline("the average of integers is a double in Spark, so the plan must declare fp64")
    if arg.dtype == t.FLOAT:
        raise request.decline("the average of fp32 is a double in Spark; cast the argument to fp64")


def _check_doubles(request: CallRequest) -> None:
    if any(a.dtype != t.DOUBLE for a in request.args):
        raise request.decline("it is supported for fp64 only")


def _distribution(name: str, function: str, value: str) -> AggregateMapping:
    required = MappingProxyType({"distribution": value})
    rounding: Behaviors = MappingProxyType({"rounding": ("TIE_TO_EVEN",)})
    return AggregateMapping(name, function, m.ARITHMETIC, rounding, rounding, required, _check_doubles)


def _window(name: str, result: pa.DataType | None = None) -> AggregateMapping:
    return AggregateMapping(name, name, m.ARITHMETIC, is_aggregate=False, result=result)


AGGREGATES = (
    AggregateMapping("count", "count", _COUNT_EXTENSIONS, _ANY_OVERFLOW, _ANY_OVERFLOW),
    AggregateMapping(
        "sum",
        "sum",
        m.ARITHMETIC,
        _RAISES_ON_OVERFLOW,
        _WRAPS_ON_OVERFLOW,
        check_call=m.check_number_options,
    ),
    AggregateMapping("avg", "avg", m.ARITHMETIC, _RAISES_ON_OVERFLOW, _NO_OPTIONS, check_call=_check_avg),
    AggregateMapping("min", "min", (*m.ARITHMETIC, *m.DATETIME)),
    AggregateMapping("max", "max", (*m.ARITHMETIC, *m.DATETIME)),
    AggregateMapping("bool_and", "bool_and", m.BOOLEAN),
    AggregateMapping("bool_or", "bool_or", m.BOOLEAN),
    _distribution("std_dev", "stddev_samp", "SAMPLE"),
    _distribution("std_dev", "stddev_pop", "POPULATION"),
    _distribution("variance", "var_samp", "SAMPLE"),
    _distribution("variance", "var_pop", "POPULATION"),
    *(
        AggregateMapping(name, function, m.DATAFUSION, check_call=_check_doubles)
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
"""The mappings of all aggregate functions and window functions."""


def counts_rows(function: str, args: Sequence[Expr]) -> bool:
    """Return whether a call is COUNT(*), which other engines write as a count of a constant that is not NULL."""
    return function == "count" and all(isinstance(a, Literal) and a.value is not None for a in args)


def aggregate_mapping(
    name: str, preferences: Mapping[str, Sequence[str]], over_window: bool
) -> AggregateMapping | None:
    """Return the mapping for a call; None for an unknown function or without its required options."""
    candidates = [e for e in AGGREGATES if e.name == name and (over_window or e.is_aggregate)]
    return next((e for e in candidates if e.matches(preferences)), None)


def required_option_names(name: str) -> list[str]:
    """Return the names of the options that decide which of several functions a name of Substrait means."""
    return sorted({option for entry in AGGREGATES if entry.name == name for option in entry.required_options})


WRITTEN_AGGREGATES = {entry.function: entry for entry in AGGREGATES if entry.extensions}
"""The mapping that each of the engine's functions is written as; never one of DATAFUSION."""
