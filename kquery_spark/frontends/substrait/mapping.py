"""Describes how a function of Substrait is a function of the engine, and when it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from kquery_spark.errors import SubstraitError
from kquery_spark.expr import Call, Cast, Expr, Literal
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import decimals
from kquery_spark.types import names as t

ARITHMETIC = ("functions_arithmetic", "functions_arithmetic_decimal")
COMPARISON = ("functions_comparison", "functions_datetime")
BOOLEAN = ("functions_boolean",)
STRING = ("functions_string",)
DATETIME = ("functions_datetime",)
ROUNDING = ("functions_rounding", "functions_rounding_decimal")
DATAFUSION: tuple[str, ...] = ()
"""For names that DataFusion uses without an extension, and that no standard extension has, or with another meaning."""


@dataclass(frozen=True)
class Request:
    """A call in a plan: the expressions of its arguments, the values of its enum arguments, and its options.

    declared: the type that the plan says it returns, if it says so.
    """

    name: str
    args: tuple[Expr, ...]
    mode: EvalMode
    time_zone: str
    enums: tuple[str, ...] = ()
    preferences: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    declared: pa.DataType | None = None

    def call(self, function: str, *args: Expr, dtype: pa.DataType | None = None) -> Expr:
        """Return a call of one of the engine's functions, without implicit casts of its arguments."""
        return Call.of(function, *args, mode=self.mode, tz=self.time_zone, dtype=dtype)

    def cast(self, expr: Expr, dtype: pa.DataType) -> Expr:
        """Return the expression as another type."""
        return expr if expr.dtype == dtype else Cast(expr, dtype, self.mode, self.time_zone)

    def decline(self, reason: str) -> SubstraitError:
        """Return the error that the call is declined with."""
        return SubstraitError(f"function {self.name}: {reason}")


Behaviors = Mapping[str, tuple[str, ...]]
"""For each option of a function, the values that describe what the engine does."""
Build = Callable[[Request], Expr]


@dataclass(frozen=True)
class ScalarMapping:
    """A function of Substrait.

    extensions: the standard extensions that define it; DATAFUSION: only plans of DataFusion may call it.
    build: makes the engine's expression, or raises PlanError. ansi, legacy: what the engine does, in both modes.
    function: the engine's function that is written as this one; empty: none.
    """

    name: str
    extensions: tuple[str, ...]
    build: Build
    arity: tuple[int, int | None]
    ansi: Behaviors = field(default_factory=dict)
    legacy: Behaviors = field(default_factory=dict)
    function: str = ""

    def behaviors(self, mode: EvalMode) -> Behaviors:
        """Return what the engine does in a mode."""
        return self.ansi if mode is EvalMode.ANSI else self.legacy


def check_options(name: str, preferences: Mapping[str, tuple[str, ...]], behaviors: Behaviors) -> None:
    """Raise SubstraitError unless every option of a call allows what the engine does."""
    for option, allowed in preferences.items():
        own = behaviors.get(option)
        if own is None or not set(own) & set(allowed):
            raise SubstraitError(
                f"function {name} with {option} {' or '.join(allowed) or 'unset'} is not supported"
                + (f"; the engine has {' or '.join(own)}" if own else "")
            )


def check_arity(name: str, arity: tuple[int, int | None], count: int) -> None:
    """Raise SubstraitError unless the number of arguments is allowed."""
    low, high = arity
    if count < low or (high is not None and count > high):
        raise SubstraitError(f"function {name} with {count} argument(s) is not supported")


def same_type(request: Request, args: Sequence[Expr]) -> list[Expr]:
    """Return arguments that Substrait requires to be of one type.

    Some producers mix integers, or decimals, of several types; they become the type that has room for all of them.
    """
    types = {a.dtype for a in args}
    if len(types) == 1:
        return list(args)
    if all(map(t.is_integral, types)):
        widest = max(types, key=lambda dtype: dtype.bit_width)
        return [_widened(request, a, widest) for a in args]
    if not all(map(t.is_decimal, types)):
        raise request.decline(
            f"its arguments are of different types: {', '.join(sorted(map(t.spark_name, types)))}"
        )
    common = _exact_common(request, [a.dtype for a in args])
    return [request.cast(a, common) for a in args]


def _widened(request: Request, arg: Expr, dtype: pa.DataType) -> Expr:
    """Return an integer as a wider type."""
    return Literal(arg.value, dtype) if isinstance(arg, Literal) else request.cast(arg, dtype)


def _exact_common(request: Request, types: Sequence[pa.DataType]) -> pa.DataType:
    common = types[0]
    for dtype in types[1:]:
        common = decimals.wider(common, dtype)
    whole = max(d.precision - d.scale for d in types)
    if common.scale < max(d.scale for d in types) or common.precision - common.scale < whole:
        raise request.decline("no decimal type has room for all digits of its arguments")
    return common


def adapt(name: str, expr: Expr, declared: pa.DataType | None, mode: EvalMode, time_zone: str) -> Expr:
    """Return a result as the type that a plan declares for it; raises SubstraitError unless it has the same values."""
    if declared is None or expr.dtype == declared:
        return expr
    own = expr.dtype
    if _is_wider(own, declared):
        return Cast(expr, declared, mode, time_zone)
    if (
        pa.types.is_timestamp(own)
        and pa.types.is_timestamp(declared)
        and (own.tz is None) == (declared.tz is None)
    ):
        return expr
    raise SubstraitError(
        f"function {name} returns {t.spark_name(own)}, but the plan says {t.spark_name(declared)}"
    )


def _is_wider(own: pa.DataType, other: pa.DataType) -> bool:
    """Return whether a cast to the other type changes no value."""
    if t.is_integral(own) and t.is_integral(other):
        return bool(own.bit_width < other.bit_width)
    if t.is_integral(own) and t.is_decimal(other):
        return bool(other.precision - other.scale >= decimals.for_integral(own).precision)
    if t.is_decimal(own) and t.is_decimal(other):
        return bool(other.scale >= own.scale and other.precision - other.scale >= own.precision - own.scale)
    return False


def literal_value(expr: Expr) -> object:
    """Return the value of a literal; None for NULL and other expressions."""
    return expr.value if isinstance(expr, Literal) else None
