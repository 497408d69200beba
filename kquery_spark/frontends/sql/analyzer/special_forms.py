"""Special forms: calls that are written as functions and are no function of the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Call, Cast, Expr, Literal
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.expressions import ExpressionAnalyzer

_FIELDS = {
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
# Registry entries that are operators or made by Spark's optimizer: SQL has no function of these names.


def arguments(analyzer: ExpressionAnalyzer, node: ast.Call) -> list[Expr]:
    """A call's arguments as expressions."""
    return [analyzer.expr(a) for a in node.arguments]


def extract(analyzer: ExpressionAnalyzer, field: str, source: ast.Expression) -> Expr:
    """EXTRACT(field FROM source)."""
    name = _FIELDS.get(field.upper())
    if name is None:
        raise Unsupported(f"EXTRACT of {field} is not supported.")
    return analyzer.call(name, analyzer.expr(source))


def _date_part(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    if len(node.arguments) != 2 or not isinstance(node.arguments[0], ast.StringLiteral):
        raise PlanError("[NON_FOLDABLE_ARGUMENT] date_part takes a field's name and a date or timestamp")
    return extract(analyzer, node.arguments[0].value, node.arguments[1])


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


def _parsed(kind: str) -> Callable[[ExpressionAnalyzer, ast.Call], Expr]:
    def form(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
        if len(node.arguments) == 2:
            return _by_pattern(analyzer, node, kind)
        operand = analyzer.expr(node.arguments[0])
        target = t.DATE if kind == "date" else t.timestamp(analyzer.facts.time_zone)
        if (
            kind == "timestamp"
            and operand.dtype not in (t.STRING, t.DATE, t.NULL)
            and operand.dtype != target
        ):
            raise Unsupported(f"to_timestamp of {t.spark_name(operand.dtype)} is not supported.")
        return analyzer.convert.cast(operand, target, implicit=False)

    return form


def _by_pattern(analyzer: ExpressionAnalyzer, node: ast.Call, kind: str) -> Expr:
    """``to_date`` and ``to_timestamp`` of a text by a pattern; of what is no text the pattern decides nothing."""
    operand, pattern = arguments(analyzer, node)
    zoned = t.timestamp(analyzer.facts.time_zone)
    target = t.DATE if kind == "date" else zoned
    if operand.dtype not in (t.STRING, t.NULL):
        return analyzer.convert.cast(operand, target, implicit=False)
    gentle = node.name[0].lower().startswith("try_")
    mode = EvalMode.LEGACY if gentle else analyzer.facts.mode
    text = analyzer.convert.cast(operand, t.STRING, implicit=False)
    zone = analyzer.facts.time_zone
    moment = Call.of("parse_timestamp", text, pattern, mode=mode, tz=zone, dtype=zoned)
    return moment if target == zoned else analyzer.convert.cast(moment, target, implicit=False)


def _by_unit(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """``timestampadd(MONTH, 1, ts)``: the unit is a constant to the engine."""
    unit = node.arguments[0] if node.arguments else None
    if not isinstance(unit, ast.DateTimeUnit):
        raise PlanError(f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] {node.name[0]} takes a unit and two arguments")
    rest = [analyzer.expr(a) for a in node.arguments[1:]]
    return analyzer.call(node.name[0].lower(), Literal(unit.unit, t.STRING), *rest)


def _nvl2(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    if len(node.arguments) != 3:
        raise PlanError(
            f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] nvl2 takes 3 arguments, not {len(node.arguments)}"
        )
    tested, present, absent = arguments(analyzer, node)
    return analyzer.case([analyzer.call("isnotnull", tested)], [present], absent)


def _struct(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    return analyzer.struct(node.arguments)


def _trim_call(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """``trim(characters, text)``: the characters come first in a plain call."""
    return analyzer.call(node.name[0], *arguments(analyzer, node)[::-1])


def _two(name: str) -> Callable[[ExpressionAnalyzer, ast.Call], Expr]:
    def form(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
        if len(node.arguments) != 2:
            raise PlanError(
                f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] {node.name[0]} takes 2 arguments, not {len(node.arguments)}"
            )
        return analyzer.call(name, *arguments(analyzer, node))

    return form


def _one_kind(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """greatest and least, which do not turn strings into other types."""
    args = arguments(analyzer, node)
    types = {a.dtype for a in args if a.dtype != t.NULL}
    if t.STRING in types and len(types) > 1:
        raise PlanError(f"[DATATYPE_MISMATCH.DATA_DIFF_TYPES] {node.name[0]} needs arguments of one type")
    return analyzer.call(node.name[0], *args)


def _operator(op: str) -> Callable[[ExpressionAnalyzer, ast.Call], Expr]:
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
    (operand,) = arguments(analyzer, node)
    return analyzer.case([analyzer.call("eq", operand, Literal(0, t.INT))], [Literal(None, t.NULL)], operand)


def _try_cast_form(kind: str) -> Callable[[ExpressionAnalyzer, ast.Call], Expr]:
    inner = _parsed(kind)

    def form(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
        made = inner(analyzer, node)
        return Cast(made.child, made.to, EvalMode.TRY, made.tz) if isinstance(made, Cast) else made

    return form


FORMS: dict[str, Callable[[ExpressionAnalyzer, ast.Call], Expr]] = {
    "if": _if,
    "trim": _trim_call,
    "ltrim": _trim_call,
    "rtrim": _trim_call,
    "nvl": _two("coalesce"),
    "ifnull": _two("coalesce"),
    "greatest": _one_kind,
    "least": _one_kind,
    "div": _operator("DIV"),
    "date_part": _date_part,
    "datepart": _date_part,
    "extract": _date_part,
    "to_date": _parsed("date"),
    "to_timestamp": _parsed("timestamp"),
    "try_to_date": _try_cast_form("date"),
    "try_to_timestamp": _try_cast_form("timestamp"),
    "struct": _struct,
    "nvl2": _nvl2,
    "timestampadd": _by_unit,
    "timestampdiff": _by_unit,
    "nullifzero": _nullifzero,
    "explode": _generator,
    "explode_outer": _generator,
    "posexplode": _generator,
    "posexplode_outer": _generator,
}
