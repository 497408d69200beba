"""The table of the scalar functions that plans may call. ``scalar_builders.py`` builds the expressions of their calls."""

from __future__ import annotations

from types import MappingProxyType

from kquery_spark.frontends.substrait import mapping as m
from kquery_spark.frontends.substrait import scalar_builders as b
from kquery_spark.frontends.substrait.mapping import Behaviors, ScalarMapping
from kquery_spark.types import names as t

_RAISES_ON_OVERFLOW: Behaviors = MappingProxyType({"overflow": ("ERROR",), "rounding": ("TIE_TO_EVEN",)})
_WRAPS_ON_OVERFLOW: Behaviors = MappingProxyType({"overflow": ("SILENT",), "rounding": ("TIE_TO_EVEN",)})
_NO_OPTIONS: Behaviors = MappingProxyType({})
_CASE_SENSITIVE: Behaviors = MappingProxyType({"case_sensitivity": ("CASE_SENSITIVE",)})
_DIVISION: Behaviors = MappingProxyType(
    {
        "overflow": ("ERROR",),
        "on_domain_error": ("NAN", "ERROR"),
        "on_division_by_zero": ("ERROR",),
        "rounding": ("TIE_TO_EVEN",),
    }
)
_LEGACY_DIVISION: Behaviors = MappingProxyType(
    {"on_domain_error": ("NAN", "NULL"), "on_division_by_zero": ("NULL",), "rounding": ("TIE_TO_EVEN",)}
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
            extensions,
            b.arithmetic(function),
            arity,
            _RAISES_ON_OVERFLOW,
            _WRAPS_ON_OVERFLOW,
            function,
        )
        for name, function, arity, extensions in (
            ("add", "add", (2, 2), (*m.ARITHMETIC, *m.DATETIME)),
            ("subtract", "subtract", (2, 2), (*m.ARITHMETIC, *m.DATETIME)),
            ("multiply", "multiply", (2, 2), m.ARITHMETIC),
            ("negate", "negative", (1, 1), m.ARITHMETIC),
            ("abs", "abs", (1, 1), m.ARITHMETIC),
        )
    ]
    division = [
        ScalarMapping("divide", m.ARITHMETIC, b.divide, (2, 2), _DIVISION, _LEGACY_DIVISION, "divide"),
        ScalarMapping(
            "modulus", m.ARITHMETIC, b.arithmetic("mod"), (2, 2), _REMAINDER, _LEGACY_REMAINDER, "mod"
        ),
    ]
    rounding: Behaviors = MappingProxyType({"rounding": ("TIE_TO_EVEN",), "on_domain_error": ("NAN",)})
    doubles = [
        ScalarMapping(name, m.ARITHMETIC, b.only_for(t.DOUBLE, name), (1, 1), rounding, rounding, name)
        for name in ("sqrt", "exp")
    ]
    bits = [
        ScalarMapping(f"bitwise_{name}", m.ARITHMETIC, b.unchanged(function), arity, function=function)
        for name, function, arity in (
            ("and", "bitand", (2, 2)),
            ("or", "bitor", (2, 2)),
            ("xor", "bitxor", (2, 2)),
            ("not", "bitnot", (1, 1)),
        )
    ]
    comparisons = [
        ScalarMapping(name, m.COMPARISON, b.cast_arguments(function), (2, 2), function=function)
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
        ScalarMapping(name, m.COMPARISON, b.cast_arguments(function), (2, None), function=function)
        for name, function in (
            ("coalesce", "coalesce"),
            ("least_skip_null", "least"),
            ("greatest_skip_null", "greatest"),
        )
    ]
    tests = [
        ScalarMapping("is_distinct_from", m.COMPARISON, b.is_distinct, (2, 2)),
        ScalarMapping("between", m.COMPARISON, b.between, (3, 3)),
        ScalarMapping("nullif", m.COMPARISON, b.cast_arguments("nullif"), (2, 2), function="nullif"),
        ScalarMapping("is_null", m.COMPARISON, b.unchanged("isnull"), (1, 1), function="isnull"),
        ScalarMapping("is_not_null", m.COMPARISON, b.unchanged("isnotnull"), (1, 1), function="isnotnull"),
        ScalarMapping("is_true", m.COMPARISON, b.truth_test(True, False), (1, 1)),
        ScalarMapping("is_not_true", m.COMPARISON, b.truth_test(True, True), (1, 1)),
        ScalarMapping("is_false", m.COMPARISON, b.truth_test(False, False), (1, 1)),
        ScalarMapping("is_not_false", m.COMPARISON, b.truth_test(False, True), (1, 1)),
    ]
    logic = [
        ScalarMapping("and", m.BOOLEAN, b.connective("and"), (1, None), function="and"),
        ScalarMapping("or", m.BOOLEAN, b.connective("or"), (1, None), function="or"),
        ScalarMapping("not", m.BOOLEAN, b.unchanged("not"), (1, 1), function="not"),
    ]
    negative_start: Behaviors = MappingProxyType({"negative_start": ("WRAP_FROM_END",)})
    accepts_nulls: Behaviors = MappingProxyType({"null_handling": ("ACCEPT_NULLS",)})
    char_set: Behaviors = MappingProxyType({"char_set": ("UTF8",)})
    strings = [
        ScalarMapping("like", m.STRING, b.like, (2, 3), _CASE_SENSITIVE, _CASE_SENSITIVE, "like"),
        ScalarMapping(
            "substring", m.STRING, b.substring, (2, 3), negative_start, negative_start, "substring"
        ),
        ScalarMapping("concat", m.STRING, b.concat, (1, None), accepts_nulls, accepts_nulls, "concat"),
        ScalarMapping("char_length", m.STRING, b.char_length, (1, 1), function="length"),
        *(
            ScalarMapping(name, m.STRING, b.only_for(t.STRING, function), (n, n), own, own, function)
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
        ScalarMapping("extract", m.DATETIME, b.extract, (1, 1)),
        ScalarMapping("date_part", m.DATAFUSION, b.date_part, (2, 2)),
    ]
    datafusion = [
        ScalarMapping("btrim", m.DATAFUSION, b.only_for(t.STRING, "trim"), (1, 1)),
        ScalarMapping("character_length", m.DATAFUSION, b.only_for(t.STRING, "length"), (1, 1)),
        ScalarMapping("str_concat", m.DATAFUSION, b.only_for(t.STRING, "concat"), (2, 2)),
        ScalarMapping("greatest", m.DATAFUSION, b.cast_arguments("greatest"), (2, None)),
        ScalarMapping("least", m.DATAFUSION, b.cast_arguments("least"), (2, None)),
    ]
    half_up: Behaviors = MappingProxyType({"rounding": ("TIE_AWAY_FROM_ZERO",)})
    numbers = [ScalarMapping("round", m.ROUNDING, b.round_number, (2, 2), half_up, half_up, "round")]
    return [
        *arithmetic, *division, *doubles, *bits, *comparisons, *of_one_type, *tests, *logic,
        *strings, *dates, *datafusion, *numbers
    ]  # fmt: skip


SCALARS = {entry.name: entry for entry in _scalar_mappings()}
"""The mapping of each scalar function, by its name in Substrait."""

WRITTEN_SCALARS = {entry.function: entry for entry in SCALARS.values() if entry.function}
"""The mapping that each of the engine's functions is written as."""
