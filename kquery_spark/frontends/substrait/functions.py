"""The table of the scalar functions that plans may call, and how their calls are built.

A function is declined where the engine would return something else than the plan means: for argument types, values or
options on which engines disagree. Functions such as ``_divide``
and ``_like`` build the calls that need such checks.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa

from kquery_spark.expr import Case, Expr, Literal
from kquery_spark.expr.properties import chain
from kquery_spark.frontends.substrait import mapping as m
from kquery_spark.frontends.substrait.mapping import (
    Behaviors,
    Build,
    CallRequest,
    ScalarMapping,
    cast_to_common_type,
    check_decimal_overflow,
    literal_value,
)
from kquery_spark.types import names as t

_RAISES_ON_OVERFLOW: Behaviors = MappingProxyType({"overflow": ("ERROR",), "rounding": ("TIE_TO_EVEN",)})
_WRAPS_ON_OVERFLOW: Behaviors = MappingProxyType({"overflow": ("SILENT",), "rounding": ("TIE_TO_EVEN",)})
_NO_OPTIONS: Behaviors = MappingProxyType({})
_CASE_SENSITIVE: Behaviors = MappingProxyType({"case_sensitivity": ("CASE_SENSITIVE",)})


def _unchanged(function: str) -> Build:
    """Return a builder that passes the arguments to one of the engine's functions unchanged."""
    return lambda request: request.call(function, *request.args)


def _cast_arguments(function: str) -> Build:
    """Return a builder that casts the arguments to their common type."""
    return lambda request: request.call(function, *cast_to_common_type(request, request.args))


def _only_for(dtype: pa.DataType, function: str) -> Build:
    """Return a builder that declines arguments of other types than ``dtype``."""

    def build(request: CallRequest) -> Expr:
        if any(a.dtype != dtype for a in request.args):
            raise request.decline(f"it is supported for {'strings' if dtype == t.STRING else 'fp64'} only")
        return request.call(function, *request.args)

    return build


def _arithmetic(function: str) -> Build:
    """Return a builder that casts integers to their common type and passes other arguments unchanged."""

    def build(request: CallRequest) -> Expr:
        check_decimal_overflow(request)
        args = request.args
        if all(t.is_integral(a.dtype) for a in args):
            args = tuple(cast_to_common_type(request, args))
        return request.call(function, *args)

    return build


def _divide(request: CallRequest) -> Expr:
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


def _connective(word: str) -> Build:
    """Return a builder for AND or OR of any number of arguments."""
    return lambda request: chain(word, list(request.args))


def _like(request: CallRequest) -> Expr:
    pattern = literal_value(request.args[1])
    if not isinstance(pattern, str) or "\\" in pattern:
        raise request.decline(
            "its pattern must be a literal without a backslash, which escapes characters in Spark only"
        )
    if len(request.args) == 3 and not (
        isinstance(request.args[2], Literal) and request.args[2].value is None
    ):
        raise request.decline("an escape character is not supported")
    return request.call("like", *request.args[:2])


def _substring(request: CallRequest) -> Expr:
    string, *numbers = request.args
    values = [literal_value(n) for n in numbers]
    start, length = values[0], values[1] if len(values) > 1 else 0
    if not isinstance(start, int) or not isinstance(length, int):
        raise request.decline("start and length must be literals")
    counts_from_end = "WRAP_FROM_END" in request.preferences.get("negative_start", ())
    if start == 0 or (start < 0 and not counts_from_end) or length < 0:
        raise request.decline(
            f"start {start} and length {length} are not supported, as engines disagree about them"
        )
    return request.call("substring", string, *(_as_int(request, n) for n in numbers))


def _as_int(request: CallRequest, number: Expr) -> Expr:
    value = literal_value(number)
    if isinstance(value, int) and abs(value) < 2**31:
        return Literal(value, t.INT)
    raise request.decline(f"{number} must be an integer literal that fits 32 bits")


def _concat(request: CallRequest) -> Expr:
    declares_nulls = "ACCEPT_NULLS" in request.preferences.get("null_handling", ())
    if not declares_nulls and any(a.nullable for a in request.args):
        raise request.decline(
            "engines disagree about NULL arguments, so the option null_handling must be ACCEPT_NULLS, as in Spark"
        )
    return request.call("concat", *request.args)


def _between(request: CallRequest) -> Expr:
    value, low, high = cast_to_common_type(request, request.args)
    return request.call("and", request.call("gteq", value, low), request.call("lteq", value, high))


def _truth_test(value: bool, negated: bool) -> Build:
    """Return a builder for IS [NOT] TRUE and IS [NOT] FALSE, which are never NULL."""

    def build(request: CallRequest) -> Expr:
        (arg,) = request.args
        test = request.call("eq_null_safe", arg, Literal(value, t.BOOL))
        return request.call("not", test) if negated else test

    return build


def _is_distinct(request: CallRequest) -> Expr:
    return request.call("not", request.call("eq_null_safe", *cast_to_common_type(request, request.args)))


def _nullif(request: CallRequest) -> Expr:
    left, right = cast_to_common_type(request, request.args)
    return Case(((request.call("eq", left, right), Literal(None, left.dtype)),), left)


def _char_length(request: CallRequest) -> Expr:
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


def _extract(request: CallRequest) -> Expr:
    component, *indexing = request.enums or ("",)
    function, indexed = _COMPONENTS.get(component, ("", False))
    if not function or indexing != (["ONE"] if indexed else []):
        raise request.decline(f"{' '.join(request.enums) or 'a call without a component'} is not supported")
    value = _datetime_field(request, function, request.args[0])
    return value if request.declared == value.dtype else request.cast(value, t.LONG)


def _date_part(request: CallRequest) -> Expr:
    """Build a call of ``date_part``, which DataFusion writes for EXTRACT; its first argument names the component."""
    component = literal_value(request.args[0])
    function, _ = _COMPONENTS.get(component.upper() if isinstance(component, str) else "", ("", False))
    if not function or function == "second":
        raise request.decline(f"the part {component} is not supported")
    return _datetime_field(request, function, request.args[1])


def _datetime_field(request: CallRequest, function: str, value: Expr) -> Expr:
    if value.dtype != t.DATE and value.dtype != t.TIMESTAMP_NTZ:
        raise request.decline(f"a field of {t.spark_name(value.dtype)} is not supported")
    if value.dtype == t.DATE and function in ("hour", "minute", "second"):
        raise request.decline(f"a date has no {function}")
    if value.dtype != t.DATE and function not in ("hour", "minute", "second"):
        value = request.cast(value, t.DATE)
    return request.call(function, value)


def _round(request: CallRequest) -> Expr:
    value, digits = request.args
    if value.dtype != t.DOUBLE and not t.is_integral(value.dtype):
        raise request.decline(f"it is not supported for {t.spark_name(value.dtype)}")
    return request.call("round", value, _as_int(request, digits))


_DIVISION: Behaviors = MappingProxyType(
    {
        "overflow": ("ERROR",),
        "on_domain_error": ("ERROR",),
        "on_division_by_zero": ("ERROR",),
        "rounding": ("TIE_TO_EVEN", "TRUNCATE"),
    }
)
_LEGACY_DIVISION: Behaviors = MappingProxyType(
    {"on_domain_error": ("NULL",), "on_division_by_zero": ("NULL",), "rounding": ("TIE_TO_EVEN", "TRUNCATE")}
)
_REMAINDER: Behaviors = MappingProxyType(
    {
        "division_type": ("TRUNCATE",),
        "overflow": ("ERROR", "SILENT", "SATURATE"),
        "on_domain_error": ("ERROR",),
    }
)
_LEGACY_REMAINDER: Behaviors = MappingProxyType({**_REMAINDER, "on_domain_error": ("NULL",)})


def _scalar_mappings() -> list[ScalarMapping]:
    """Return the table of scalar functions. The guide lists them, too; a test compares both."""
    arithmetic = [
        ScalarMapping(
            name,
            m.ARITHMETIC,
            _arithmetic(function),
            arity,
            _RAISES_ON_OVERFLOW,
            _WRAPS_ON_OVERFLOW,
            function,
        )
        for name, function, arity in (
            ("add", "add", (2, 2)),
            ("subtract", "subtract", (2, 2)),
            ("multiply", "multiply", (2, 2)),
            ("negate", "negative", (1, 1)),
            ("abs", "abs", (1, 1)),
        )
    ]
    for i in (0, 1):  # add and subtract: the extension of dates and timestamps has them, too
        arithmetic[i] = replace(arithmetic[i], extensions=(*m.ARITHMETIC, *m.DATETIME))
    division = [
        ScalarMapping("divide", m.ARITHMETIC, _divide, (2, 2), _DIVISION, _LEGACY_DIVISION, "divide"),
        ScalarMapping(
            "modulus", m.ARITHMETIC, _arithmetic("mod"), (2, 2), _REMAINDER, _LEGACY_REMAINDER, "mod"
        ),
    ]
    rounding: Behaviors = MappingProxyType({"rounding": ("TIE_TO_EVEN",), "on_domain_error": ("NAN",)})
    doubles = [
        ScalarMapping(name, m.ARITHMETIC, _only_for(t.DOUBLE, function), arity, rounding, rounding, function)
        for name, function, arity in (("sqrt", "sqrt", (1, 1)), ("exp", "exp", (1, 1)))
    ]
    bits = [
        ScalarMapping(f"bitwise_{name}", m.ARITHMETIC, _unchanged(function), arity, function=function)
        for name, function, arity in (
            ("and", "bitand", (2, 2)),
            ("or", "bitor", (2, 2)),
            ("xor", "bitxor", (2, 2)),
            ("not", "bitnot", (1, 1)),
        )
    ]
    comparisons = [
        ScalarMapping(name, m.COMPARISON, _cast_arguments(function), (2, 2), function=function)
        for name, function in (
            ("equal", "eq"),
            ("not_equal", "neq"),
            ("lt", "lt"),
            ("lte", "lteq"),
            ("gt", "gt"),
            ("gte", "gteq"),
            ("is_not_distinct_from", "eq_null_safe"),
        )
    ]
    of_one_type = [
        ScalarMapping(name, m.COMPARISON, _cast_arguments(function), (2, None), function=function)
        for name, function in (
            ("coalesce", "coalesce"),
            ("least_skip_null", "least"),
            ("greatest_skip_null", "greatest"),
        )
    ]
    tests = [
        ScalarMapping("is_distinct_from", m.COMPARISON, _is_distinct, (2, 2)),
        ScalarMapping("between", m.COMPARISON, _between, (3, 3)),
        ScalarMapping("nullif", m.COMPARISON, _nullif, (2, 2)),
        ScalarMapping("is_null", m.COMPARISON, _unchanged("isnull"), (1, 1), function="isnull"),
        ScalarMapping("is_not_null", m.COMPARISON, _unchanged("isnotnull"), (1, 1), function="isnotnull"),
        ScalarMapping("is_true", m.COMPARISON, _truth_test(True, False), (1, 1)),
        ScalarMapping("is_not_true", m.COMPARISON, _truth_test(True, True), (1, 1)),
        ScalarMapping("is_false", m.COMPARISON, _truth_test(False, False), (1, 1)),
        ScalarMapping("is_not_false", m.COMPARISON, _truth_test(False, True), (1, 1)),
    ]
    logic = [
        ScalarMapping("and", m.BOOLEAN, _connective("and"), (1, None), function="and"),
        ScalarMapping("or", m.BOOLEAN, _connective("or"), (1, None), function="or"),
        ScalarMapping("not", m.BOOLEAN, _unchanged("not"), (1, 1), function="not"),
    ]
    negative_start: Behaviors = MappingProxyType({"negative_start": ("WRAP_FROM_END",)})
    accepts_nulls: Behaviors = MappingProxyType({"null_handling": ("ACCEPT_NULLS",)})
    char_set: Behaviors = MappingProxyType({"char_set": ("UTF8",)})
    strings = [
        ScalarMapping("like", m.STRING, _like, (2, 3), _CASE_SENSITIVE, _CASE_SENSITIVE, "like"),
        ScalarMapping("substring", m.STRING, _substring, (2, 3), negative_start, negative_start, "substring"),
        ScalarMapping("concat", m.STRING, _concat, (1, None), accepts_nulls, accepts_nulls, "concat"),
        ScalarMapping("char_length", m.STRING, _char_length, (1, 1), function="length"),
        *(
            ScalarMapping(name, m.STRING, _only_for(t.STRING, function), (n, n), own, own, function)
            for name, function, n, own in (
                ("starts_with", "startswith", 2, _CASE_SENSITIVE),
                ("ends_with", "endswith", 2, _CASE_SENSITIVE),
                ("contains", "contains", 2, _CASE_SENSITIVE),
                ("upper", "upper", 1, char_set),
                ("lower", "lower", 1, char_set),
                ("trim", "trim", 1, _NO_OPTIONS),
                ("ltrim", "ltrim", 1, _NO_OPTIONS),
                ("rtrim", "rtrim", 1, _NO_OPTIONS),
                ("reverse", "reverse", 1, _NO_OPTIONS),
            )
        ),
    ]
    dates = [
        ScalarMapping("extract", m.DATETIME, _extract, (1, 1)),
        ScalarMapping("date_part", m.DATAFUSION, _date_part, (2, 2)),
    ]
    datafusion = [
        ScalarMapping("btrim", m.DATAFUSION, _only_for(t.STRING, "trim"), (1, 1)),
        ScalarMapping("character_length", m.DATAFUSION, _only_for(t.STRING, "length"), (1, 1)),
        ScalarMapping("str_concat", m.DATAFUSION, _only_for(t.STRING, "concat"), (2, 2)),
        ScalarMapping("greatest", m.DATAFUSION, _cast_arguments("greatest"), (2, None)),
        ScalarMapping("least", m.DATAFUSION, _cast_arguments("least"), (2, None)),
    ]
    half_up: Behaviors = MappingProxyType({"rounding": ("TIE_AWAY_FROM_ZERO",)})
    numbers = [ScalarMapping("round", m.ROUNDING, _round, (2, 2), half_up, half_up, "round")]
    return [
        *arithmetic, *division, *doubles, *bits, *comparisons, *of_one_type, *tests, *logic,
        *strings, *dates, *datafusion, *numbers
    ]  # fmt: skip


SCALARS = {entry.name: entry for entry in _scalar_mappings()}
"""The mapping of each scalar function, by its name in Substrait."""

WRITTEN_SCALARS = {entry.function: entry for entry in SCALARS.values() if entry.function}
"""The mapping that each of the engine's functions is written as."""
