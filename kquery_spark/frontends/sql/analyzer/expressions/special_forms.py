"""Special forms: calls that are written as functions and are no function of the registry."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.expr.lambdas import HIGHER_ORDER
from kquery_spark.frontends.sql.analyzer.expressions.access import struct_of
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import EXPRESSIONS, ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.expressions.conditional import as_try_cast
from kquery_spark.frontends.sql.analyzer.expressions.grouping import grouping_call
from kquery_spark.frontends.sql.analyzer.expressions.lambdas import higher_order
from kquery_spark.frontends.sql.analyzer.expressions.session_values import SESSION_VALUES, session_value
from kquery_spark.frontends.sql.analyzer.types import arrow_type
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast.types import NamedType
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t

Form = Callable[[ExpressionAnalyzer, ast.Call], Expr]

_DATE_FIELDS = {
    "YEAR": "year", "Y": "year", "YEARS": "year", "YR": "year", "YRS": "year",
    "QUARTER": "quarter", "QTR": "quarter",
    "MONTH": "month", "MON": "month", "MONS": "month", "MONTHS": "month",
    "WEEK": "weekofyear", "W": "weekofyear", "WEEKS": "weekofyear",
    "DAY": "day", "D": "day", "DAYS": "day",
    "DAYOFWEEK": "dayofweek", "DOW": "dayofweek",
    "DOY": "dayofyear", "YEAROFWEEK": "yearofweek",
    "HOUR": "hour", "H": "hour", "HOURS": "hour", "HR": "hour", "HRS": "hour",
    "MINUTE": "minute", "M": "minute", "MIN": "minute", "MINS": "minute", "MINUTES": "minute",
    "SECOND": "second_with_fraction", "S": "second_with_fraction", "SEC": "second_with_fraction",
    "SECONDS": "second_with_fraction", "SECS": "second_with_fraction",
}  # fmt: skip
_TRY_FUNCTIONS = (
    "try_add",
    "try_subtract",
    "try_multiply",
    "try_divide",
    "try_mod",
    "try_element_at",
)
_CAST_TYPES = (
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal",
    "date",
    "timestamp",
    "binary",
    "string",
)
_TRIM_FUNCTIONS = {"LEADING": "ltrim", "TRAILING": "rtrim"}


@EXPRESSIONS.handles(ast.Extract)
def extract(analyzer: ExpressionAnalyzer, node: ast.Extract) -> Expr:
    """EXTRACT(field FROM source)."""
    return _date_field(analyzer, node.field, node.source)


@EXPRESSIONS.handles(ast.Trim)
def trim(analyzer: ExpressionAnalyzer, node: ast.Trim) -> Expr:
    """TRIM(side characters FROM source)."""
    args = [analyzer.expr(node.source)]
    if node.characters is not None:
        args.append(analyzer.expr(node.characters))
    return analyzer.call(_TRIM_FUNCTIONS.get(node.side.upper(), "trim"), *args)


def _date_field(analyzer: ExpressionAnalyzer, field: str, source: ast.Expression) -> Expr:
    name = _DATE_FIELDS.get(field.upper())
    if name is None:
        raise Unsupported(f"EXTRACT of {field} is not supported.")
    return analyzer.call(name, analyzer.expr(source))


def _date_part(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    if len(node.arguments) != 2 or not isinstance(node.arguments[0], ast.StringLiteral):
        raise PlanError("[NON_FOLDABLE_ARGUMENT] date_part takes a field's name and a date or timestamp")
    return _date_field(analyzer, node.arguments[0].value, node.arguments[1])


def _if(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    if len(node.arguments) != 3:
        raise PlanError(
            f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] if takes 3 arguments, not {len(node.arguments)}"
        )
    condition = analyzer.condition(node.arguments[0], "IF")
    if condition == Literal(True, t.BOOL):
        # TRUE decides whether a CASE can be NULL; an IF can whatever its condition
        condition = Call.of("and", condition, condition)
    yes, no = (analyzer.expr(a) for a in node.arguments[1:])
    return analyzer.case([condition], [yes], no)


def _to_date(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """``to_date(x)`` and ``to_date(text, pattern)``."""
    if len(node.arguments) == 2:
        return _by_pattern(analyzer, node, t.DATE)
    return analyzer.convert.cast(analyzer.expr(node.arguments[0]), t.DATE, implicit=False)


def _to_timestamp(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """``to_timestamp(x)`` and ``to_timestamp(text, pattern)``."""
    target = t.timestamp(analyzer.facts.time_zone)
    if len(node.arguments) == 2:
        return _by_pattern(analyzer, node, target)
    operand = analyzer.expr(node.arguments[0])
    if operand.dtype not in (t.STRING, t.DATE, t.NULL, target):
        raise Unsupported(f"to_timestamp of {t.spark_name(operand.dtype)} is not supported.")
    return analyzer.convert.cast(operand, target, implicit=False)


def _by_pattern(analyzer: ExpressionAnalyzer, node: ast.Call, target: pa.DataType) -> Expr:
    """``to_date`` and ``to_timestamp`` of a text by a pattern; of what is no text the pattern decides nothing."""
    operand, pattern = analyzer.arguments(node)
    if operand.dtype not in (t.STRING, t.NULL):
        return analyzer.convert.cast(operand, target, implicit=False)
    zone = analyzer.facts.time_zone
    zoned = t.timestamp(zone)
    gives_null = node.name[0].lower().startswith("try_")
    mode = EvalMode.LEGACY if gives_null else analyzer.facts.mode
    text = analyzer.convert.cast(operand, t.STRING, implicit=False)
    timestamp = Call.of("parse_timestamp", text, pattern, mode=mode, tz=zone, dtype=zoned)
    return timestamp if target == zoned else analyzer.convert.cast(timestamp, target, implicit=False)


def _by_unit(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """``timestampadd(MONTH, 1, ts)``: the unit is a constant to the engine."""
    unit = node.arguments[0] if node.arguments else None
    if not isinstance(unit, ast.DateTimeUnit):
        raise PlanError(f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] {node.name[0]} takes a unit and two arguments")
    operands = [analyzer.expr(a) for a in node.arguments[1:]]
    return analyzer.call(node.name[0].lower(), Literal(unit.unit, t.STRING), *operands)


def _nvl2(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    if len(node.arguments) != 3:
        raise PlanError(
            f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] nvl2 takes 3 arguments, not {len(node.arguments)}"
        )
    tested, present, absent = analyzer.arguments(node)
    return analyzer.case([analyzer.call("isnotnull", tested)], [present], absent)


def _struct(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    return struct_of(analyzer, node.arguments)


def _trim_call(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """``trim(characters, text)``: the characters come first in a plain call."""
    return analyzer.call(node.name[0], *analyzer.arguments(node)[::-1])


def _binary_function(name: str) -> Form:
    def form(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
        if len(node.arguments) != 2:
            raise PlanError(
                f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] {node.name[0]} takes 2 arguments, not {len(node.arguments)}"
            )
        return analyzer.call(name, *analyzer.arguments(node))

    return form


def _extremum(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """greatest and least, which do not turn strings into other types."""
    args = analyzer.arguments(node)
    types = {a.dtype for a in args if a.dtype != t.NULL}
    if t.STRING in types and len(types) > 1:
        raise PlanError(f"[DATATYPE_MISMATCH.DATA_DIFF_TYPES] {node.name[0]} needs arguments of one type")
    return analyzer.call(node.name[0], *args)


def _operator(op: str) -> Form:
    def form(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
        if len(node.arguments) != 2:
            raise PlanError(f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] {op} takes 2 arguments")
        return analyzer.expr(ast.Binary(op, *node.arguments, pos=node.pos))

    return form


def _generator(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    analyzer.fail(
        f"[UNSUPPORTED_GENERATOR.NESTED_IN_EXPRESSIONS] {node.name[0]} must stand alone in the select list",
        node,
    )


def _nullifzero(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    (operand,) = analyzer.arguments(node)
    return analyzer.case([analyzer.call("eq", operand, Literal(0, t.INT))], [Literal(None, t.NULL)], operand)


def _tried(form: Form) -> Form:
    """The form, whose cast gives NULL where the value does not fit."""
    return lambda analyzer, node: as_try_cast(form(analyzer, node))


def _try_function(name: str) -> Form:
    """The function ``name``, which gives NULL where it would raise."""
    return lambda analyzer, node: analyzer.call(name, *analyzer.arguments(node), mode=EvalMode.TRY)


def _session_value(name: str) -> Form:
    def form(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
        if node.arguments:
            analyzer.fail(no_such_function(name), node)
        return session_value(analyzer, name)

    return form


def _cast_function(type_name: str) -> Form:
    """``int(x)`` and its like."""

    def form(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
        if len(node.arguments) != 1:
            analyzer.fail(no_such_function(type_name), node)
        parameters = (10, 0) if type_name == "decimal" else ()
        target = arrow_type(NamedType(type_name, parameters), analyzer.facts.time_zone)
        assert target is not None
        return analyzer.convert.cast(analyzer.expr(node.arguments[0]), target, implicit=False)

    return form


def no_such_function(name: str) -> str:
    """The error message for a function that SQL or the engine does not have."""
    return f"[UNRESOLVED_ROUTINE] there is no function {name}, or the engine does not have it"


FORMS: dict[str, Form] = {
    "if": _if,
    "trim": _trim_call,
    "ltrim": _trim_call,
    "rtrim": _trim_call,
    "nvl": _binary_function("coalesce"),
    "ifnull": _binary_function("coalesce"),
    "greatest": _extremum,
    "least": _extremum,
    "div": _operator("DIV"),
    "date_part": _date_part,
    "datepart": _date_part,
    "extract": _date_part,
    "to_date": _to_date,
    "to_timestamp": _to_timestamp,
    "try_to_date": _tried(_to_date),
    "try_to_timestamp": _tried(_to_timestamp),
    "struct": _struct,
    "nvl2": _nvl2,
    "timestampadd": _by_unit,
    "timestampdiff": _by_unit,
    "nullifzero": _nullifzero,
    "explode": _generator,
    "explode_outer": _generator,
    "posexplode": _generator,
    "posexplode_outer": _generator,
    "grouping": grouping_call,
    "grouping_id": grouping_call,
    **{name: _try_function(name.removeprefix("try_")) for name in _TRY_FUNCTIONS},
    **{name: _session_value(name) for name in SESSION_VALUES},
    **dict.fromkeys(HIGHER_ORDER, higher_order),
}
#: Casts that are written as functions.
CAST_FUNCTIONS: dict[str, Form] = {name: _cast_function(name) for name in _CAST_TYPES}
