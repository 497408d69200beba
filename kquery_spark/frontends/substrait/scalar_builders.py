"""Builds the engine's expressions for calls of scalar functions; the table in ``functions.py`` refers to these builders.

A call is declined where the engine would return something else than the plan means: for argument types, values or options
on which engines disagree. The options are checked before (``mapping.check_options``), except where builders look at them.
"""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.expr import Expr, Literal
from kquery_spark.expr.properties import chain
from kquery_spark.frontends.substrait.mapping import (
    Build,
    CallRequest,
    cast_to_common_type,
    check_number_options,
    integer_literal,
    string_literal,
)
from kquery_spark.types import names as t


def unchanged(function: str) -> Build:
    """Return a builder that passes the arguments to one of the engine's functions unchanged."""
    return lambda request: request.call(function, *request.args)


def cast_arguments(function: str) -> Build:
    """Return a builder that casts the arguments to their common type."""
    return lambda request: request.call(function, *cast_to_common_type(request, request.args))


def only_for(dtype: pa.DataType, function: str) -> Build:
    """Return a builder that declines arguments of other types than ``dtype``."""

    def build(request: CallRequest) -> Expr:
        if any(a.dtype != dtype for a in request.args):
            raise request.decline(f"it is supported for {'strings' if dtype == t.STRING else 'fp64'} only")
        return request.call(function, *request.args)

    return build


def arithmetic(function: str) -> Build:
    """Return a builder that casts integers to their common type and passes other arguments unchanged."""

    def build(request: CallRequest) -> Expr:
        check_number_options(request)
        args = request.args
        if all(t.is_integral(a.dtype) for a in args):
            args = tuple(cast_to_common_type(request, args))
        return request.call(function, *args)

    return build


def divide(request: CallRequest) -> Expr:
    """Build a division by the type of the arguments: decimals, integers (``DIV``), floats, or doubles."""
    check_number_options(request)
    left, right = request.args
    if t.is_decimal(left.dtype) and t.is_decimal(right.dtype):
        declared = request.declared
        if declared is not None and t.is_decimal(declared):
            if declared.scale - left.dtype.scale + right.dtype.scale > 38:
                raise request.decline(f"a quotient of type {t.spark_name(declared)} needs too many digits")
            # Division at Spark's own scale and then a cast would round twice.
            return request.call("divide", left, right, dtype=declared)
        return request.call("divide", left, right)
    (dtype,) = {a.dtype for a in cast_to_common_type(request, request.args)}
    if t.is_integral(dtype):
        # DIV returns a bigint, Substrait's function the type of its arguments.
        return request.cast(request.call("div", left, right), dtype)
    if dtype == t.FLOAT:
        # The engine divides doubles. The double quotient of two floats, rounded to float, is the correctly rounded quotient.
        quotient = request.call("divide", request.cast(left, t.DOUBLE), request.cast(right, t.DOUBLE))
        return request.cast(quotient, t.FLOAT)
    return request.call("divide", left, right)


def connective(word: str) -> Build:
    """Return a builder for AND or OR of any number of arguments."""
    return lambda request: chain(word, list(request.args))


def like(request: CallRequest) -> Expr:
    """Build LIKE; only for literal patterns without a backslash, on which all engines agree."""
    pattern = string_literal(request.args[1])
    if pattern is None or "\\" in pattern:
        raise request.decline(
            "its pattern must be a literal without a backslash, which escapes characters in Spark only"
        )
    if len(request.args) == 3 and not (
        isinstance(request.args[2], Literal) and request.args[2].value is None
    ):
        raise request.decline("an escape character is not supported")
    return request.call("like", *request.args[:2])


def substring(request: CallRequest) -> Expr:
    """Build a substring; only for literal positions on which all engines agree."""
    string, *numbers = request.args
    values = [integer_literal(n) for n in numbers]
    start, length = values[0], values[1] if len(values) > 1 else 0
    if start is None or length is None:
        raise request.decline("start and length must be integer literals")
    counts_from_end = "WRAP_FROM_END" in request.preferences.get("negative_start", ())
    if start == 0 or (start < 0 and not counts_from_end) or length < 0:
        range_text = " and length ".join(str(v) for v in values)
        raise request.decline(f"start {range_text} is not supported, as engines disagree about it")
    return request.call("substring", string, *(_as_int(request, n) for n in numbers))


def _as_int(request: CallRequest, number: Expr) -> Expr:
    """Return an integer literal as an int, the type of positions and digits in the engine."""
    value = integer_literal(number)
    if value is not None and abs(value) < 2**31:
        return Literal(value, t.INT)
    raise request.decline(f"{number} must be an integer literal that fits 32 bits")


def concat(request: CallRequest) -> Expr:
    """Build a concatenation, which is NULL if an argument is NULL."""
    declares_nulls = "ACCEPT_NULLS" in request.preferences.get("null_handling", ())
    if not declares_nulls and any(a.nullable for a in request.args):
        raise request.decline(
            "engines disagree about NULL arguments, so the option null_handling must be ACCEPT_NULLS, as in Spark"
        )
    return request.call("concat", *request.args)


def between(request: CallRequest) -> Expr:
    """Build ``low <= value AND value <= high``."""
    value, low, high = cast_to_common_type(request, request.args)
    return request.call("and", request.call("gteq", value, low), request.call("lteq", value, high))


def truth_test(value: bool, negated: bool) -> Build:
    """Return a builder for IS [NOT] TRUE and IS [NOT] FALSE, which are never NULL."""

    def build(request: CallRequest) -> Expr:
        (arg,) = request.args
        test = request.call("eq_null_safe", arg, Literal(value, t.BOOL))
        return request.call("not", test) if negated else test

    return build


def is_distinct(request: CallRequest) -> Expr:
    """Build NOT of null-safe equality."""
    return request.call("not", request.call("eq_null_safe", *cast_to_common_type(request, request.args)))


def char_length(request: CallRequest) -> Expr:
    """Build the length of a string as a bigint, which is the type in Substrait."""
    return request.cast(request.call("length", *request.args), t.LONG)


#: For each component of ``extract``: the engine's function, and whether the call has a second enum argument, which says
#: whether the component counts from ONE or from ZERO.
_COMPONENTS = {
    "YEAR": ("year", False),
    "HOUR": ("hour", False),
    "MINUTE": ("minute", False),
    "SECOND": ("second", False),
    "QUARTER": ("quarter", True),
    "MONTH": ("month", True),
    "DAY": ("day", True),
    "DAY_OF_YEAR": ("dayofyear", True),
}
#: For each of the engine's functions that the writer writes as ``extract``: the component, and whether it has that argument.
COMPONENT_OF = {function: (component, indexed) for component, (function, indexed) in _COMPONENTS.items()}


def extract(request: CallRequest) -> Expr:
    """Build a component of a date or timestamp, as the declared type or as a bigint, which is the type in Substrait."""
    component, *indexing = request.enums or ("",)
    function, indexed = _COMPONENTS.get(component, ("", False))
    if not function or indexing != (["ONE"] if indexed else []):
        raise request.decline(f"{' '.join(request.enums) or 'a call without a component'} is not supported")
    value = _datetime_field(request, function, request.args[0])
    return value if request.declared == value.dtype else request.cast(value, t.LONG)


def date_part(request: CallRequest) -> Expr:
    """Build a call of ``date_part``, which DataFusion writes for EXTRACT; its first argument names the component."""
    component = string_literal(request.args[0])
    function, _ = _COMPONENTS.get((component or "").upper(), ("", False))
    if not function or function == "second":
        raise request.decline(f"the part {component} is not supported")
    return _datetime_field(request, function, request.args[1])


def _datetime_field(request: CallRequest, function: str, value: Expr) -> Expr:
    """Build a call such as ``year(value)``.

    The engine's functions take timestamps for hours, minutes and seconds, and dates for longer components.
    """
    if value.dtype != t.DATE and value.dtype != t.TIMESTAMP_NTZ:
        raise request.decline(f"a field of {t.spark_name(value.dtype)} is not supported")
    if value.dtype == t.DATE and function in ("hour", "minute", "second"):
        raise request.decline(f"a date has no {function}")
    if value.dtype != t.DATE and function not in ("hour", "minute", "second"):
        value = request.cast(value, t.DATE)
    return request.call(function, value)


def round_number(request: CallRequest) -> Expr:
    """Build ROUND to a literal number of digits, for doubles and integers."""
    value, digits = request.args
    if value.dtype != t.DOUBLE and not t.is_integral(value.dtype):
        raise request.decline(f"it is not supported for {t.spark_name(value.dtype)}")
    return request.call("round", value, _as_int(request, digits))
