"""Implicit casts of the arguments of functions and operators, as Spark's type coercion inserts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Call, Cast, Expr, Literal
from kquery_spark.expr.properties import can_raise
from kquery_spark.frontends.sql.analyzer.catalog import SessionFacts
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.functions import casts
from kquery_spark.functions.aggregate_registry import AggregateFunction
from kquery_spark.functions.math.overflow import mode_for_types
from kquery_spark.functions.registry import (
    ArgumentTypeError,
    Coercion,
    Constructor,
    EvalMode,
    Function,
    function,
)
from kquery_spark.functions.sql_form import Logic
from kquery_spark.types import names as t
from kquery_spark.types.coercion import as_floats, common_type

# Clauses in which an untyped NULL is not a condition, with Spark's error class for expressions that are not conditions.
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
_NESTED = (pa.types.is_list, pa.types.is_struct, pa.types.is_map)


def check_arity(entry: Function | AggregateFunction, count: int) -> None:
    """Raise PlanError, with Spark's class of error, unless a function takes ``count`` arguments."""
    try:
        entry.check_arity(count)
    except PlanError as error:
        raise PlanError(f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] {error}") from None


def check_argument_count(node: ast.Call, *counts: int) -> None:
    """Raise PlanError unless the call has one of these numbers of arguments."""
    if len(node.arguments) not in counts:
        takes = " or ".join(map(str, counts)) + (" argument" if counts == (1,) else " arguments")
        raise PlanError(
            f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] {node.name[0]} takes {takes}, not {len(node.arguments)}"
        )


class Conversions:
    """Inserts implicit casts by a session's rules."""

    def __init__(self, facts: SessionFacts) -> None:
        self.facts = facts

    def cast(self, expr: Expr, target: pa.DataType, implicit: bool = True) -> Expr:
        """Cast ``expr`` to ``target``; raises Unsupported if the engine has no such cast."""
        if expr.dtype == target:
            return expr
        if t.is_timestamp(target) and target.tz != self.facts.time_zone:
            return self.cast(expr, t.timestamp(self.facts.time_zone), implicit)
        # An untyped call such as raise_error() must be evaluated: it gets the target type and does not become NULL.
        if expr.dtype == t.NULL and can_raise(expr):
            if isinstance(expr, Call):
                return replace(expr, type=target)
            raise Unsupported("a cast of an untyped expression that can raise an error is not supported")
        is_null = isinstance(expr, Literal) and expr.value is None
        if expr.dtype == t.NULL or (is_null and implicit):
            return Literal(None, target)
        if implicit:
            self._check_implicit(expr.dtype, target)
        casts.check_cast(expr.dtype, target)
        if is_null:
            return Literal(None, target)
        return Cast(expr, target, self.facts.mode, self.facts.time_zone)

    def _check_implicit(self, source: pa.DataType, target: pa.DataType) -> None:
        if source == t.STRING and not self.facts.ansi:
            raise Unsupported("implicit casts of strings outside ANSI mode are not supported")
        if not _is_implicit(source, target):
            raise PlanError(
                f"[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] {t.spark_name(source)} cannot stand where "
                f"{t.spark_name(target)} is needed"
            )

    def call(self, name: str, *args: Expr, mode: EvalMode | None = None) -> Expr:
        """Call a function with Spark's implicit casts; raises PlanError for invalid arguments."""
        entry = function(name)
        check_arity(entry, len(args))
        if entry.is_comparison and _are_all(t.NULL, args):
            return Literal(True if entry.operator.logic is Logic.EQUAL_NULL_SAFE else None, t.BOOL)
        if entry.operator.arithmetic and _are_all(t.STRING, args):
            raise PlanError(
                f"[DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE] {entry.name} needs numbers, not strings"
            )
        # in decimal arithmetic, integer literals become decimals with just the digits they have (Spark's DecimalPrecision)
        cast_args = self.arguments(entry.coerce, args, operator=entry.is_strict_operator)
        if entry.parameters.builds_map:
            mode = self.facts.map_mode
        else:
            mode = mode_for_types([a.dtype for a in cast_args], mode or self.facts.mode)
        build = partial(Call.of, name, *cast_args, mode=mode, tz=self.facts.time_zone)
        try:
            call = build()
        except ArgumentTypeError as error:
            raise PlanError(f"{name}: {error}") from None
        dtype = self._session_type(call)
        return call if dtype is None else build(dtype=dtype)

    def _session_type(self, call: Call) -> pa.DataType | None:
        """Return the type of a call that depends on the nullability of arguments or on the session's time zone."""
        match call:
            case Call(entry=Function(builds=Constructor.ARRAY), args=[_, *_]):
                return _array_type(call)
            case Call(entry=Function(builds=Constructor.STRUCT)):
                return _struct_type(call)
            case Call(entry=Function(builds=Constructor.MAP), args=[_, *_]):
                return _map_type(call)
        zone = self.facts.time_zone
        if t.is_timestamp(call.dtype) and call.dtype.tz != zone:
            return t.timestamp(zone)
        return None

    def arguments(self, coerce: Coercion | None, args: Sequence[Expr], operator: bool = False) -> list[Expr]:
        """Cast arguments to the types of a coercion rule. operator: True if integer literals keep just their own digits."""
        if operator and len(args) == 2:
            args = _literal_digits(args)
        if coerce is None:
            return list(args)
        types = [a.dtype for a in args]
        targets = coerce(types)
        # Outside ANSI mode, integers next to a float are cast to float, not to double. The rule is applied again with
        # these types; functions that take doubles only, such as sqrt, still get doubles.
        if not self.facts.ansi and set(targets) == {t.DOUBLE}:
            targets = coerce(as_floats(types))
        return [self.cast(a, target) for a, target in zip(args, targets, strict=True)]

    def common(self, exprs: Sequence[Expr], what: str) -> list[Expr]:
        """Cast expressions to their common type; raises PlanError if there is none. what: the construct, for the message."""
        types = [expr.dtype for expr in exprs]
        dtype, *others = types if self.facts.ansi else as_floats(types)
        for other in others:
            wider = common_type(dtype, other)
            if wider is None:
                raise PlanError(
                    f"[DATATYPE_MISMATCH.DATA_DIFF_TYPES] {what} mixes {t.spark_name(dtype)} and "
                    f"{t.spark_name(other)}"
                )
            dtype = wider
        return [self.cast(e, dtype) for e in exprs]

    def boolean(self, expr: Expr, clause: str) -> Expr:
        """Convert an expression to a condition; raises PlanError if it is not Boolean."""
        if expr.dtype == t.BOOL:
            return expr
        if expr.dtype == t.NULL and clause not in _NEVER_NULL:
            return Literal(None, t.BOOL)
        if expr.dtype == t.STRING and clause in ("NOT", "AND", "OR"):
            raise Unsupported(f"strings as operands of {clause} are not supported")
        error = _NOT_BOOLEAN.get(clause, "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN")
        raise PlanError(f"[{error}] {clause} must be boolean, not {t.spark_name(expr.dtype)}")


def _are_all(dtype: pa.DataType, args: Sequence[Expr]) -> bool:
    return all(a.dtype == dtype for a in args)


def _array_type(call: Call) -> pa.DataType:
    """The type of ``array(...)``, whose elements are nullable if an argument is."""
    return pa.list_(pa.field("element", call.dtype.value_type, any(a.nullable for a in call.args)))


def _struct_type(call: Call) -> pa.DataType:
    """The type of ``named_struct(...)``, whose fields are nullable if their values are."""
    values = call.args[1::2]
    return pa.struct([f.with_nullable(v.nullable) for f, v in zip(call.dtype, values, strict=True)])


def _map_type(call: Call) -> pa.DataType:
    """The type of ``map(...)``, whose values are nullable if an argument is."""
    nullable = any(value.nullable for value in call.args[1::2])
    return pa.map_(call.dtype.key_field, call.dtype.item_field.with_nullable(nullable))


def _literal_digits(args: Sequence[Expr]) -> list[Expr]:
    left, right = args
    return [_as_decimal_beside(left, right), _as_decimal_beside(right, left)]


def _as_decimal_beside(expr: Expr, other: Expr) -> Expr:
    if (
        isinstance(expr, Literal)
        and expr.value is not None
        and t.is_integral(expr.dtype)
        and t.is_decimal(other.dtype)
    ):
        return Cast(expr, t.decimal(len(str(abs(expr.value))), 0))
    return expr


def _is_implicit(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether Spark's ANSI rules allow an implicit cast."""
    if source == t.NULL or (t.is_numeric(source) and t.is_numeric(target)):
        return True
    if t.is_nested(source) or t.is_nested(target):
        return any(kind(source) and kind(target) for kind in _NESTED)
    if t.STRING in (source, target):
        return bool(source != t.BINARY)
    return _is_date_or_timestamp(source) and _is_date_or_timestamp(target)


def _is_date_or_timestamp(dtype: pa.DataType) -> bool:
    return bool(dtype == t.DATE or pa.types.is_timestamp(dtype))
