"""Implicit casts: the types a function's arguments are brought to before it is applied."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Call, Cast, Expr, Literal
from kquery_spark.frontends.sql.analyzer.catalog import SessionFacts
from kquery_spark.functions import casts
from kquery_spark.functions.registry import ArgumentTypeError, Coercion, EvalMode, function
from kquery_spark.types import names as t
from kquery_spark.types.coercion import common_type

# Operators whose integer literals take part in decimal arithmetic with just the digits they have
# (Spark's DecimalPrecision): ``1 - discount`` has a decimal(1,0) on its left.
_DECIMAL_OPERATORS = frozenset(
    {"add", "subtract", "multiply", "divide", "mod", "pmod", "eq", "neq", "lt", "lteq", "gt", "gteq", "div"}
)
_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "div", "mod", "pmod"})
_COMPARISONS = frozenset({"eq", "neq", "lt", "lteq", "gt", "gteq", "eq_null_safe"})

# Where a NULL without a type is no condition, and Spark's class of error for what is none.
_NEVER_NULL = frozenset({"WHERE", "ON", "FILTER", "WHEN"})
_NOT_BOOLEAN = {
    "ON": "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE",
    "FILTER": "INVALID_AGGREGATE_FILTER.NOT_BOOLEAN",
    "WHEN": "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
    "IF": "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
    "NOT": "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
    "AND": "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
    "OR": "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
}


class Conversions:
    """Casts under a session's rules."""

    def __init__(self, facts: SessionFacts) -> None:
        self.facts = facts

    def cast(self, expr: Expr, target: pa.DataType, implicit: bool = True) -> Expr:
        """``expr`` as ``target``; Unsupported where the engine has no such cast."""
        if expr.dtype == target:
            return expr
        if t.is_timestamp(target) and target.tz != self.facts.time_zone:
            return self.cast(expr, t.timestamp(self.facts.time_zone), implicit)
        if expr.dtype == t.NULL or (isinstance(expr, Literal) and expr.value is None):
            return Literal(None, target)
        if implicit and expr.dtype == t.STRING and not self.facts.ansi:
            raise Unsupported("Implicit casts of strings outside ANSI mode are not supported.")
        if implicit and not _is_implicit(expr.dtype, target):
            raise PlanError(
                f"[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] {t.spark_name(expr.dtype)} cannot stand where "
                f"{t.spark_name(target)} is needed"
            )
        casts.check_cast(expr.dtype, target)
        return Cast(expr, target, self.facts.mode, self.facts.time_zone)

    def call(self, name: str, *args: Expr, mode: EvalMode | None = None) -> Expr:
        """A function applied with Spark's implicit casts; PlanError for arguments it does not take."""
        entry = function(name)
        try:
            entry.check_arity(len(args))
        except PlanError as error:
            raise PlanError(f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] {error}") from None
        if entry.name in _COMPARISONS and all(a.dtype == t.NULL for a in args):
            return Literal(True if entry.name == "eq_null_safe" else None, t.BOOL)
        if entry.name in _ARITHMETIC and all(a.dtype == t.STRING for a in args):
            raise PlanError(
                f"[DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE] {entry.name} needs numbers, not strings"
            )
        cast_args = self.arguments(entry.coerce, args, entry.name in _DECIMAL_OPERATORS)
        zone = self.facts.time_zone
        try:
            made = Call.of(name, *cast_args, mode=mode or self.facts.mode, tz=zone)
        except ArgumentTypeError as error:
            raise PlanError(f"{name}: {error}") from None
        if made.function in _MADE_OF and args:
            return Call.of(name, *cast_args, mode=made.mode, tz=zone, dtype=_MADE_OF[made.function](made))
        if t.is_timestamp(made.dtype) and made.dtype.tz != zone:
            # entries that make timestamps do not know the session's zone
            return Call.of(name, *cast_args, mode=mode or self.facts.mode, tz=zone, dtype=t.timestamp(zone))
        return made

    def arguments(self, coerce: Coercion | None, args: Sequence[Expr], operator: bool = False) -> list[Expr]:
        """The arguments cast to the types a rule asks for."""
        if operator and len(args) == 2:
            args = _literal_digits(args)
        if coerce is None:
            return list(args)
        targets = coerce([a.dtype for a in args])
        return [self.cast(a, target) for a, target in zip(args, targets, strict=True)]

    def common(self, exprs: Sequence[Expr], what: str) -> list[Expr]:
        """Expressions brought to one type; PlanError when there is none."""
        wanted = exprs[0].dtype
        for expr in exprs[1:]:
            meet = common_type(wanted, expr.dtype)
            if meet is None:
                raise PlanError(
                    f"[DATATYPE_MISMATCH.DATA_DIFF_TYPES] {what} mixes {t.spark_name(wanted)} and "
                    f"{t.spark_name(expr.dtype)}"
                )
            wanted = meet
        return [self.cast(e, wanted) for e in exprs]

    def boolean(self, expr: Expr, what: str) -> Expr:
        """An expression that must be a condition."""
        if expr.dtype == t.BOOL:
            return expr
        if expr.dtype == t.NULL and what not in _NEVER_NULL:
            return Literal(None, t.BOOL)
        if expr.dtype == t.STRING and what in ("NOT", "AND", "OR"):
            raise Unsupported(f"Strings as operands of {what} are not supported.")
        error = _NOT_BOOLEAN.get(what, "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN")
        raise PlanError(f"[{error}] {what} must be boolean, not {t.spark_name(expr.dtype)}")


def _array_of(made: Call) -> pa.DataType:
    return pa.list_(pa.field("element", made.dtype.value_type, any(a.nullable for a in made.args)))


def _struct_of(made: Call) -> pa.DataType:
    values = made.args[1::2]
    return pa.struct([f.with_nullable(v.nullable) for f, v in zip(made.dtype, values, strict=True)])


# What can be NULL inside of the values these functions make.
_MADE_OF = {"array": _array_of, "named_struct": _struct_of}


def _literal_digits(args: Sequence[Expr]) -> list[Expr]:
    left, right = args
    return [_digits(left, right), _digits(right, left)]


def _digits(expr: Expr, other: Expr) -> Expr:
    if (
        isinstance(expr, Literal)
        and expr.value is not None
        and t.is_integral(expr.dtype)
        and t.is_decimal(other.dtype)
    ):
        from_value = t.decimal(max(1, len(str(abs(expr.value)))), 0)
        return Cast(expr, from_value)
    return expr


def _is_implicit(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether Spark's ANSI rules cast without being asked."""
    if source == t.NULL or (t.is_numeric(source) and t.is_numeric(target)):
        return True
    if t.is_nested(source) or t.is_nested(target):
        return any(kind(source) and kind(target) for kind in (pa.types.is_list, pa.types.is_struct))
    if source == t.STRING:
        return True
    if target == t.STRING:
        return bool(source != t.BINARY)
    return all(x == t.DATE or pa.types.is_timestamp(x) for x in (source, target))
