"""The scalar functions that plans may call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType

from kquery_spark.expr import Case, Expr, Literal
from kquery_spark.expr.properties import chain
from kquery_spark.frontends.substrait import mapping as m
from kquery_spark.frontends.substrait.mapping import (
    Behaviors,
    Build,
    Request,
    ScalarMapping,
    literal_value,
    same_type,
)
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t

_OVERFLOW: Behaviors = MappingProxyType({"overflow": ("ERROR",), "rounding": ("TIE_TO_EVEN",)})
_WRAPS: Behaviors = MappingProxyType({"overflow": ("SILENT",), "rounding": ("TIE_TO_EVEN",)})
_CASE: Behaviors = MappingProxyType({"case_sensitivity": ("CASE_SENSITIVE",)})


def _plain(function: str) -> Build:
    """Build a call whose arguments are those of the engine's function."""
    return lambda request: request.call(function, *request.args)


def _of_one_type(function: str) -> Build:
    """Build a call whose arguments are of one type."""
    return lambda request: request.call(function, *same_type(request, request.args))


def _on_types(function: str, allowed: Callable[[object], bool], names: str) -> Build:
    def build(request: Request) -> Expr:
        if not all(allowed(a.dtype) for a in request.args):
            raise request.decline(f"it is supported for {names} only")
        return request.call(function, *request.args)

    return build


def _arithmetic(function: str) -> Build:
    def build(request: Request) -> Expr:
        is_decimal = [t.is_decimal(a.dtype) for a in request.args]
        if any(is_decimal) and request.mode is not EvalMode.ANSI and "overflow" in request.preferences:
            raise request.decline(
                "decimals that overflow are NULL outside of ANSI mode, which no option says"
            )
        is_integral = all(t.is_integral(a.dtype) for a in request.args)
        return request.call(function, *(same_type(request, request.args) if is_integral else request.args))

    return build


def _divide(request: Request) -> Expr:
    left, right = request.args
    if t.is_decimal(left.dtype) and t.is_decimal(right.dtype):
        declared = request.declared
        if declared is not None and t.is_decimal(declared):
            if declared.scale - left.dtype.scale + right.dtype.scale > 38:
                raise request.decline(f"a quotient of type {t.spark_name(declared)} needs too many digits")
            # rounded once, to the scale that the plan declares
            return request.call("divide", left, right, dtype=declared)
        return request.call("divide", left, right)
    (dtype,) = {a.dtype for a in same_type(request, request.args)}
    if t.is_integral(dtype):
        return request.cast(request.call("div", left, right), dtype)
    if dtype == t.FLOAT:  # the quotient of two floats as double, rounded to float, is the rounded quotient
        quotient = request.call("divide", request.cast(left, t.DOUBLE), request.cast(right, t.DOUBLE))
        return request.cast(quotient, t.FLOAT)
    return request.call("divide", left, right)


def _connective(word: str) -> Build:
    return lambda request: chain(word, list(request.args))


def _like(request: Request) -> Expr:
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


def _substring(request: Request) -> Expr:
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


def _as_int(request: Request, number: Expr) -> Expr:
    value = literal_value(number)
    if isinstance(value, int) and abs(value) < 2**31:
        return Literal(value, t.INT)
    raise request.decline(f"{number} must be a literal of 32 bits")


def _concat(request: Request) -> Expr:
    says_null = "ACCEPT_NULLS" in request.preferences.get("null_handling", ())
    if not says_null and any(a.nullable for a in request.args):
        raise request.decline(
            "engines disagree about NULL arguments, so the option null_handling must be ACCEPT_NULLS, as in Spark"
        )
    return request.call("concat", *request.args)


def _between(request: Request) -> Expr:
    value, low, high = same_type(request, request.args)
    return request.call("and", request.call("gteq", value, low), request.call("lteq", value, high))


def _truth_test(value: bool, negated: bool) -> Build:
    def build(request: Request) -> Expr:
        (arg,) = request.args
        test = request.call("eq_null_safe", arg, Literal(value, t.BOOL))
        return request.call("not", test) if negated else test

    return build


def _is_distinct(request: Request) -> Expr:
    return request.call("not", request.call("eq_null_safe", *same_type(request, request.args)))


def _nullif(request: Request) -> Expr:
    left, right = same_type(request, request.args)
    return Case(((request.call("eq", left, right), Literal(None, left.dtype)),), left)


def _char_length(request: Request) -> Expr:
    return request.cast(request.call("length", *request.args), t.LONG)


#: For each component, the engine's function, and whether the call says if it counts from ONE or ZERO.
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
COMPONENT_OF = {function: (component, indexed) for component, (function, indexed) in _COMPONENTS.items()}


def _extract(request: Request) -> Expr:
    component, *indexing = request.enums or ("",)
    function, indexed = _COMPONENTS.get(component, ("", False))
    if not function or indexing != (["ONE"] if indexed else []):
        raise request.decline(f"{' '.join(request.enums) or 'a call without a component'} is not supported")
    value = _field_of(request, function, request.args[0])
    return value if request.declared == value.dtype else request.cast(value, t.LONG)


def _date_part(request: Request) -> Expr:
    component = literal_value(request.args[0])
    function, _ = _COMPONENTS.get(component.upper() if isinstance(component, str) else "", ("", False))
    if not function or function == "second":
        raise request.decline(f"the part {component} is not supported")
    return _field_of(request, function, request.args[1])


def _field_of(request: Request, function: str, value: Expr) -> Expr:
    if value.dtype != t.DATE and value.dtype != t.TIMESTAMP_NTZ:
        raise request.decline(f"a field of {t.spark_name(value.dtype)} is not supported")
    if value.dtype == t.DATE and function in ("hour", "minute", "second"):
        raise request.decline("a date has no time")
    if value.dtype != t.DATE and function not in ("hour", "minute", "second"):
        value = request.cast(value, t.DATE)
    return request.call(function, value)


def _round(request: Request) -> Expr:
    value, digits = request.args
    if value.dtype != t.DOUBLE and not t.is_integral(value.dtype):
        raise request.decline(f"it is not supported for {t.spark_name(value.dtype)}")
    return request.call("round", value, _as_int(request, digits))


def _is(*types: object) -> Callable[[object], bool]:
    return lambda dtype: dtype in types


_DOUBLES = _is(t.DOUBLE)
_STRINGS = _is(t.STRING)
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


def _entries() -> list[ScalarMapping]:
    arithmetic = [
        ScalarMapping(name, m.ARITHMETIC, _arithmetic(function), arity, _OVERFLOW, _WRAPS, function)
        for name, function, arity in (
            ("add", "add", (2, 2)),
            ("subtract", "subtract", (2, 2)),
            ("multiply", "multiply", (2, 2)),
            ("negate", "negative", (1, 1)),
            ("abs", "abs", (1, 1)),
        )
    ]
    for i in (0, 1):  # timestamps and intervals have them, too
        arithmetic[i] = replace(arithmetic[i], extensions=(*m.ARITHMETIC, *m.DATETIME))
    division = [
        ScalarMapping("divide", m.ARITHMETIC, _divide, (2, 2), _DIVISION, _LEGACY_DIVISION, "divide"),
        ScalarMapping(
            "modulus", m.ARITHMETIC, _arithmetic("mod"), (2, 2), _REMAINDER, _LEGACY_REMAINDER, "mod"
        ),
    ]
    rounding: Behaviors = MappingProxyType({"rounding": ("TIE_TO_EVEN",), "on_domain_error": ("NAN",)})
    doubles = [
        ScalarMapping(
            name, m.ARITHMETIC, _on_types(function, _DOUBLES, "fp64"), arity, rounding, rounding, function
        )
        for name, function, arity in (("sqrt", "sqrt", (1, 1)), ("exp", "exp", (1, 1)))
    ]
    bits = [
        ScalarMapping(f"bitwise_{name}", m.ARITHMETIC, _plain(function), arity, function=function)
        for name, function, arity in (
            ("and", "bitand", (2, 2)),
            ("or", "bitor", (2, 2)),
            ("xor", "bitxor", (2, 2)),
            ("not", "bitnot", (1, 1)),
        )
    ]
    comparisons = [
        ScalarMapping(name, m.COMPARISON, _of_one_type(function), (2, 2), function=function)
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
        ScalarMapping(name, m.COMPARISON, _of_one_type(function), (2, None), function=function)
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
        ScalarMapping("is_null", m.COMPARISON, _plain("isnull"), (1, 1), function="isnull"),
        ScalarMapping("is_not_null", m.COMPARISON, _plain("isnotnull"), (1, 1), function="isnotnull"),
        ScalarMapping("is_true", m.COMPARISON, _truth_test(True, False), (1, 1)),
        ScalarMapping("is_not_true", m.COMPARISON, _truth_test(True, True), (1, 1)),
        ScalarMapping("is_false", m.COMPARISON, _truth_test(False, False), (1, 1)),
        ScalarMapping("is_not_false", m.COMPARISON, _truth_test(False, True), (1, 1)),
    ]
    logic = [
        ScalarMapping("and", m.BOOLEAN, _connective("and"), (1, None), function="and"),
        ScalarMapping("or", m.BOOLEAN, _connective("or"), (1, None), function="or"),
        ScalarMapping("not", m.BOOLEAN, _plain("not"), (1, 1), function="not"),
    ]
    negative_start: Behaviors = MappingProxyType({"negative_start": ("WRAP_FROM_END",)})
    accepts_nulls: Behaviors = MappingProxyType({"null_handling": ("ACCEPT_NULLS",)})
    char_set: Behaviors = MappingProxyType({"char_set": ("UTF8",)})
    strings = [
        ScalarMapping("like", m.STRING, _like, (2, 3), _CASE, _CASE, "like"),
        ScalarMapping("substring", m.STRING, _substring, (2, 3), negative_start, negative_start, "substring"),
        ScalarMapping("concat", m.STRING, _concat, (1, None), accepts_nulls, accepts_nulls, "concat"),
        ScalarMapping("char_length", m.STRING, _char_length, (1, 1), function="length"),
        *(
            ScalarMapping(
                name, m.STRING, _on_types(function, _STRINGS, "strings"), (n, n), own, own, function
            )
            for name, function, n, own in (
                ("starts_with", "startswith", 2, _CASE),
                ("ends_with", "endswith", 2, _CASE),
                ("contains", "contains", 2, _CASE),
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
        ScalarMapping("btrim", m.DATAFUSION, _on_types("trim", _STRINGS, "strings"), (1, 1)),
        ScalarMapping("character_length", m.DATAFUSION, _on_types("length", _STRINGS, "strings"), (1, 1)),
        ScalarMapping("str_concat", m.DATAFUSION, _on_types("concat", _STRINGS, "strings"), (2, 2)),
        ScalarMapping("greatest", m.DATAFUSION, _of_one_type("greatest"), (2, None)),
        ScalarMapping("least", m.DATAFUSION, _of_one_type("least"), (2, None)),
    ]
    half_up: Behaviors = MappingProxyType({"rounding": ("TIE_AWAY_FROM_ZERO",)})
    numbers = [ScalarMapping("round", m.ROUNDING, _round, (2, 2), half_up, half_up, "round")]
    return [
        *arithmetic, *division, *doubles, *bits, *comparisons, *of_one_type, *tests, *logic,
        *strings, *dates, *datafusion, *numbers
    ]  # fmt: skip


_NO_OPTIONS: Behaviors = MappingProxyType({})


SCALARS = {entry.name: entry for entry in _entries()}


def written_as(functions: Sequence[ScalarMapping]) -> dict[str, ScalarMapping]:
    """Return the mapping that each of the engine's functions is written as."""
    return {entry.function: entry for entry in functions if entry.function}


WRITTEN_SCALARS = written_as(tuple(SCALARS.values()))
