"""Special forms: calls with the syntax of functions that are not entries of the function registry."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.frontends.sql.analyzer.conversions import check_argument_count
from kquery_spark.frontends.sql.analyzer.expressions.access import struct_of
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import CALLS, EXPRESSIONS, ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.expressions.conditional import as_try_cast
from kquery_spark.frontends.sql.analyzer.expressions.lambdas import higher_order
from kquery_spark.frontends.sql.analyzer.expressions.session_values import session_value
from kquery_spark.frontends.sql.analyzer.types import arrow_type
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast.types import NamedType
from kquery_spark.frontends.sql.suggestions import did_you_mean
from kquery_spark.functions.call_form import registered_names, trim_function
from kquery_spark.functions.nested.higher_order import HigherOrderFunction
from kquery_spark.functions.registry import (
    EvalMode,
    date_field_function,
    interval_field_function,
    is_internal,
)
from kquery_spark.functions.special_forms import (
    CastFunction,
    GeneratorFunction,
    SessionValue,
    TimeWindowFunction,
    TryFunction,
    special_form,
)
from kquery_spark.types import names as t


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
    return analyzer.call(trim_function(node.side.upper()), *args)


def _date_field(analyzer: ExpressionAnalyzer, field: str, source: ast.Expression) -> Expr:
    value = analyzer.expr(source)
    name = (interval_field_function if value.dtype == t.DAY_TIME else date_field_function)(field.upper())
    if name is None:
        raise Unsupported(f"EXTRACT of {field} from {t.spark_name(value.dtype)} is not supported")
    return analyzer.call(name, value)


@CALLS.handles("extract", "date_part", "datepart")
def _date_part(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    if len(node.arguments) != 2 or not isinstance(node.arguments[0], ast.StringLiteral):
        raise PlanError("[NON_FOLDABLE_ARGUMENT] date_part takes a field's name and a date or timestamp")
    return _date_field(analyzer, node.arguments[0].value, node.arguments[1])


@CALLS.handles("if")
def _if(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    check_argument_count(node, 3)
    condition = analyzer.condition(node.arguments[0], "IF")
    if condition == Literal(True, t.BOOL):
        # with the condition TRUE, a CASE is nullable only if this branch is, but an IF if any branch is
        condition = Call.of("and", condition, condition)
    yes, no = (analyzer.expr(a) for a in node.arguments[1:])
    return analyzer.case([condition], [yes], no)


@CALLS.handles("to_date")
def _to_date(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """``to_date(x)`` and ``to_date(text, pattern)``."""
    check_argument_count(node, 1, 2)
    if len(node.arguments) == 2:
        return _parse_with_pattern(analyzer, node, t.DATE)
    return analyzer.convert.cast(analyzer.expr(node.arguments[0]), t.DATE, implicit=False)


@CALLS.handles("to_timestamp")
def _to_timestamp(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """``to_timestamp(x)`` and ``to_timestamp(text, pattern)``."""
    check_argument_count(node, 1, 2)
    target = t.timestamp(analyzer.facts.time_zone)
    if len(node.arguments) == 2:
        return _parse_with_pattern(analyzer, node, target)
    operand = analyzer.expr(node.arguments[0])
    if operand.dtype not in (t.STRING, t.DATE, t.NULL, target):
        raise Unsupported(f"to_timestamp of {t.spark_name(operand.dtype)} is not supported")
    return analyzer.convert.cast(operand, target, implicit=False)


def _parse_with_pattern(analyzer: ExpressionAnalyzer, node: ast.Call, target: pa.DataType) -> Expr:
    """``to_date`` and ``to_timestamp`` of a string by a pattern; for other types the pattern is ignored."""
    operand, pattern = analyzer.arguments(node)
    if operand.dtype == t.TIMESTAMP_NTZ:
        # Spark reads the local time as UTC here, not in the session's time zone as a cast does.
        raise Unsupported(f"{node.name[0].lower()} of a timestamp_ntz with a pattern is not supported")
    if operand.dtype not in (t.STRING, t.NULL):
        return analyzer.convert.cast(operand, target, implicit=False)
    zone = analyzer.facts.time_zone
    zoned = t.timestamp(zone)
    gives_null = node.name[0].lower().startswith("try_")
    mode = EvalMode.LEGACY if gives_null else analyzer.facts.mode
    text = analyzer.convert.cast(operand, t.STRING, implicit=False)
    timestamp = Call.of("parse_timestamp", text, pattern, mode=mode, tz=zone, dtype=zoned)
    return timestamp if target == zoned else analyzer.convert.cast(timestamp, target, implicit=False)


@CALLS.handles("timestampadd", "timestampdiff")
def _timestamp_call_with_unit(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """``timestampadd(MONTH, 1, ts)``: the unit is a constant to the engine."""
    unit = node.arguments[0] if node.arguments else None
    if not isinstance(unit, ast.DateTimeUnit):
        raise PlanError(f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] {node.name[0]} takes a unit and two arguments")
    operands = [analyzer.expr(a) for a in node.arguments[1:]]
    return analyzer.call(node.name[0].lower(), Literal(unit.unit, t.STRING), *operands)


@CALLS.handles("nvl2")
def _nvl2(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    check_argument_count(node, 3)
    tested, present, absent = analyzer.arguments(node)
    return analyzer.case([analyzer.call("isnotnull", tested)], [present], absent)


@CALLS.handles("struct")
def _struct(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    return struct_of(analyzer, node.arguments)


@CALLS.handles("arrays_zip")
def _arrays_zip(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """ARRAYS_ZIP. Fields have the names of columns and struct fields; other arguments are named by position, from 0."""
    parts: list[Expr] = []
    for place, argument in enumerate(node.arguments):
        match argument:
            case ast.Name():
                name = argument.parts[-1]
            case ast.Field():
                name = argument.name
            case _:
                name = str(place)
        parts += [Literal(name, t.STRING), analyzer.expr(argument)]
    return analyzer.call("arrays_zip", *parts)


@CALLS.handles("map_contains_key")
def _map_contains_key(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    check_argument_count(node, 2)
    entries, key = analyzer.arguments(node)
    return analyzer.call("array_contains", analyzer.call("map_keys", entries), key)


@CALLS.handles("trim", "ltrim", "rtrim")
def _trim_call(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """``trim(characters, text)``: the characters come first in a plain call."""
    return analyzer.call(node.name[0], *analyzer.arguments(node)[::-1])


@CALLS.handles("nvl", "ifnull")
def _nvl(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    check_argument_count(node, 2)
    return analyzer.call("coalesce", *analyzer.arguments(node))


@CALLS.handles("greatest", "least")
def _extremum(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """GREATEST and LEAST, which do not cast strings to other types."""
    args = analyzer.arguments(node)
    types = {a.dtype for a in args if a.dtype != t.NULL}
    if t.STRING in types and len(types) > 1:
        raise PlanError(f"[DATATYPE_MISMATCH.DATA_DIFF_TYPES] {node.name[0]} needs arguments of one type")
    return analyzer.call(node.name[0], *args)


@CALLS.handles("div")
def _div(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    check_argument_count(node, 2)
    return analyzer.expr(ast.Binary("DIV", *node.arguments, pos=node.pos))


@CALLS.handles("nullifzero")
def _nullifzero(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    check_argument_count(node, 1)
    (operand,) = analyzer.arguments(node)
    return analyzer.case([analyzer.call("eq", operand, Literal(0, t.INT))], [Literal(None, t.NULL)], operand)


@CALLS.handles("try_to_date")
def _try_to_date(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    return as_try_cast(_to_date(analyzer, node))


@CALLS.handles("try_to_timestamp")
def _try_to_timestamp(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    return as_try_cast(_to_timestamp(analyzer, node))


def special_call(analyzer: ExpressionAnalyzer, name: str, node: ast.Call) -> Expr | None:
    """A call of a special form; None if the function is a registry entry applied to its arguments."""
    handler = CALLS.get(name)
    if handler is not None:
        return handler(analyzer, node)
    form = special_form(name)
    match form:
        case GeneratorFunction():
            analyzer.fail(
                f"[UNSUPPORTED_GENERATOR.NESTED_IN_EXPRESSIONS] {node.name[0]} must stand alone in the select list",
                node,
            )
        case TimeWindowFunction():
            column = analyzer.time_windows.get(node)
            if column is None:
                analyzer.fail(f"{form.name} can be used only in the select list and in GROUP BY", node)
            return column
        case TryFunction():
            return analyzer.call(form.wrapped, *analyzer.arguments(node), mode=EvalMode.TRY)
        case SessionValue():
            if node.arguments:
                analyzer.fail(no_such_function(form.name), node)
            return session_value(analyzer, form)
        case CastFunction():
            return _cast_function(analyzer, form.name, node)
        case HigherOrderFunction():
            return higher_order(analyzer, form, node)
    return None


def _cast_function(analyzer: ExpressionAnalyzer, type_name: str, node: ast.Call) -> Expr:
    """A cast written as a function, such as ``int(x)``."""
    if len(node.arguments) != 1:
        analyzer.fail(no_such_function(type_name), node)
    parameters = (10, 0) if type_name == "decimal" else ()
    target = arrow_type(NamedType(type_name, parameters), analyzer.facts.time_zone)
    assert target is not None
    return analyzer.convert.cast(analyzer.expr(node.arguments[0]), target, implicit=False)


def no_such_function(name: str) -> str:
    """The error message for a function that SQL or the engine does not have."""
    nearest = did_you_mean(name, (known for known in registered_names() if not is_internal(known)))
    return f"[UNRESOLVED_ROUTINE] unknown function {name}, or the engine does not have it{nearest}"
