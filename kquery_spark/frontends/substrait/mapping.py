"""How calls of Substrait functions are translated to the engine's expressions, and which calls are declined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from kquery_spark.errors import PlanError, SubstraitError, Unsupported
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
"""No extension: for names in plans of DataFusion that no standard extension defines with the same meaning."""


@dataclass(frozen=True)
class CallRequest:
    """A call of a function in a plan, with its arguments translated: what a mapping gets to build the engine's expression.

    args: the value arguments. enums: the enum arguments, such as the component of ``extract``. preferences: for each option
    of the call, the behaviors that the plan allows. declared: the type that the plan says the call returns, if it says so.
    mode and time_zone: those of the session.
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
        """Return the error for a call that the engine cannot compute exactly; the caller raises it."""
        return SubstraitError(f"function {self.name}: {reason}")


Behaviors = Mapping[str, tuple[str, ...]]
"""For each option of a function: the values that describe what the engine does."""
Build = Callable[[CallRequest], Expr]


@dataclass(frozen=True)
class ScalarMapping:
    """A scalar function of Substrait.

    extensions: the standard extensions that define it; DATAFUSION if only plans of DataFusion may call it. build: builds the
    engine's expression for a call, or raises PlanError. arity: the minimum and the maximum number of arguments; no maximum
    if it is None. ansi, legacy: the behavior of the engine in each mode. function: the engine's function that the writer
    writes as this one; "" if it never does.
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


@contextmanager
def as_substrait_errors(what: str) -> Iterator[None]:
    """Convert the engine's errors in the block to SubstraitErrors. what: the part of the plan that the messages name."""
    try:
        yield
    except SubstraitError:
        raise
    except (PlanError, Unsupported) as error:
        raise SubstraitError(f"{what}: {error}") from None


def check_options(request: CallRequest, behaviors: Behaviors) -> None:
    """Raise SubstraitError unless every option of a call allows the behavior of the engine."""
    for option, allowed in request.preferences.items():
        supported = behaviors.get(option)
        if supported is None or not set(supported) & set(allowed):
            raise SubstraitError(
                f"function {request.name} with {option} {' or '.join(allowed) or 'unset'} is not supported"
                + (f"; the engine has {' or '.join(supported)}" if supported else "")
            )


def check_number_options(request: CallRequest) -> None:
    """Raise SubstraitError if the engine does not do what the options mean for arguments of these types.

    - overflow: outside of ANSI mode, decimals that overflow are NULL, which no value of the option means.
    - rounding: supported only for floats. The engine rounds decimals half up, and truncates quotients of integers.
    - on_domain_error: must allow NAN for floats, because the engine returns NaN, for example for infinity / infinity.
    """
    types = [a.dtype for a in request.args]
    if (
        any(map(t.is_decimal, types))
        and request.mode is not EvalMode.ANSI
        and "overflow" in request.preferences
    ):
        raise request.decline(
            "decimals that overflow are NULL outside of ANSI mode, which no value of the option overflow means"
        )
    are_floats = all(map(t.is_fractional, types))
    if "rounding" in request.preferences and not are_floats:
        raise request.decline("the option rounding is supported only for floating-point numbers")
    if are_floats and "NAN" not in request.preferences.get("on_domain_error", ("NAN",)):
        raise request.decline("the engine returns NaN, so the option on_domain_error must allow NAN")


def check_arity(request: CallRequest, arity: tuple[int, int | None]) -> None:
    """Raise SubstraitError unless the number of arguments of a call is allowed."""
    (low, high), count = arity, len(request.args)
    if count < low or (high is not None and count > high):
        raise SubstraitError(f"function {request.name} with {count} argument(s) is not supported")


def cast_to_common_type(request: CallRequest, args: Sequence[Expr]) -> list[Expr]:
    """Return the arguments of a function whose arguments must all have one type.

    Some producers mix integers, or decimals, of several types. They are cast to a type that has room for all of them. Other
    mixtures are declined.
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
    common = _common_decimal(request, [a.dtype for a in args])
    return [request.cast(a, common) for a in args]


def _widened(request: CallRequest, arg: Expr, dtype: pa.DataType) -> Expr:
    """Return an integer as a wider type. A literal stays a literal."""
    return Literal(arg.value, dtype) if isinstance(arg, Literal) else request.cast(arg, dtype)


def _common_decimal(request: CallRequest, types: Sequence[pa.DataType]) -> pa.DataType:
    """Return a decimal type with room for all digits of these types; declines the call if they need more than 38."""
    common = types[0]
    for dtype in types[1:]:
        common = decimals.wider(common, dtype)
    whole = max(d.precision - d.scale for d in types)
    if common.scale < max(d.scale for d in types) or common.precision - common.scale < whole:
        raise request.decline("no decimal type has room for all digits of its arguments")
    return common


def cast_to_declared(request: CallRequest, expr: Expr) -> Expr:
    """Return the result of a call as the type that the plan declares for it.

    Raises SubstraitError unless every value of the result fits the declared type unchanged.
    """
    own, declared = expr.dtype, request.declared
    if declared is None or own == declared:
        return expr
    if _is_widening(own, declared):
        return request.cast(expr, declared)
    if (
        pa.types.is_timestamp(own)
        and pa.types.is_timestamp(declared)
        and (own.tz is None) == (declared.tz is None)
    ):
        return expr
    raise SubstraitError(
        f"function {request.name} returns {t.spark_name(own)}, but the plan says {t.spark_name(declared)}"
    )


def _is_widening(own: pa.DataType, other: pa.DataType) -> bool:
    """Return whether a cast of numbers from one type to the other changes no value."""
    if t.is_integral(own) and t.is_integral(other):
        return bool(own.bit_width < other.bit_width)
    if t.is_integral(own) and t.is_decimal(other):
        return bool(other.precision - other.scale >= decimals.for_integral(own).precision)
    if t.is_decimal(own) and t.is_decimal(other):
        return bool(other.scale >= own.scale and other.precision - other.scale >= own.precision - own.scale)
    return False


def string_literal(expr: Expr) -> str | None:
    """Return the value of a string literal; None for NULL and for other expressions."""
    value: str | None = expr.value if isinstance(expr, Literal) and expr.dtype == t.STRING else None
    return value


def integer_literal(expr: Expr) -> int | None:
    """Return the value of a literal of an integer type; None for NULL and for other expressions, such as dates."""
    value: int | None = expr.value if isinstance(expr, Literal) and t.is_integral(expr.dtype) else None
    return value
