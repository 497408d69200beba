"""Writes expressions as Substrait messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from kquery_spark.errors import KQueryError, SubstraitError
from kquery_spark.expr import Call, Case, Cast, Column, Expr, InList, Literal, SortKey
from kquery_spark.expr.constants import evaluate_constant
from kquery_spark.expr.properties import is_constant
from kquery_spark.frontends.substrait.aggregate_functions import AggregateMapping
from kquery_spark.frontends.substrait.enums import (
    CAST_RETURN_NULL,
    CAST_THROW_EXCEPTION,
    PREDICATE_EXISTS,
    SORT_DIRECTIONS,
)
from kquery_spark.frontends.substrait.functions import SCALARS, WRITTEN_SCALARS
from kquery_spark.frontends.substrait.literals import write_literal
from kquery_spark.frontends.substrait.mapping import CallRequest, ScalarMapping, check_arity, integer_literal
from kquery_spark.frontends.substrait.messages import Message, proto
from kquery_spark.frontends.substrait.scalar_builders import COMPONENT_OF
from kquery_spark.frontends.substrait.types import write_type
from kquery_spark.frontends.substrait.write_scope import OuterRow, WriteScope
from kquery_spark.functions import casts
from kquery_spark.functions.registry import EvalMode
from kquery_spark.functions.sql_form import Logic
from kquery_spark.logical.subqueries import Exists, InSubquery, OuterColumn, ScalarSubquery, Subquery
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.substrait.writer import PlanWriter

_DIRECTIONS = {order: number for number, order in SORT_DIRECTIONS.items()}
#: The maximum number of arguments of one AND or OR. The reader builds a left-deep chain of that many terms, so a plan is
#: equal to the original after it was written and read. More terms would become a balanced tree (see ``properties.chain``).
_MAX_CONNECTIVE_ARGS = 15
_INTEGER_ARITHMETIC = ("add", "subtract", "multiply", "negative", "abs")

Options = Mapping[str, str]


class ExpressionWriter:
    """Writes the expressions of one plan."""

    def __init__(self, plan: PlanWriter) -> None:
        self._plan = plan

    def write(self, expr: Expr, scope: WriteScope, steps: int = 0) -> Message:
        """Return the message of an expression.

        scope: the columns that it refers to. steps: the number of subqueries between these columns and the place where the
        message goes, as an OuterColumn is written as the expression it stands for, with references that are ``steps`` out.
        """
        match expr:
            case Literal():
                return proto().Expression(literal=write_literal(expr))
            case Column():
                return _reference(scope.position(expr), steps)
            case OuterColumn():
                value, outer_scope = scope.value(expr)
                return self.write(value, outer_scope, steps + 1)
            case Call():
                return self._call(expr, scope, steps)
            case Cast():
                return self._cast(expr, scope, steps)
            case Case():
                return self._case(expr, scope, steps)
            case InList():
                message = proto().Expression()
                message.singular_or_list.value.CopyFrom(self.write(expr.child, scope, steps))
                for value in expr.values:
                    message.singular_or_list.options.append(self.write(value, scope, steps))
                return message
            case Subquery() if steps == 0:
                return self._subquery(expr, scope)
        raise SubstraitError(f"{expr} cannot be written as Substrait")

    def sort_fields(self, keys: Sequence[SortKey], scope: WriteScope) -> list[Message]:
        """Return the messages of sort keys."""
        return [
            proto().SortField(
                expr=self.write(key.expr, scope), direction=_DIRECTIONS[key.ascending, key.nulls_first]
            )
            for key in keys
        ]

    def function_call(
        self,
        message: Message,
        entry: ScalarMapping | AggregateMapping,
        args: Sequence[Expr],
        result: tuple[pa.DataType, bool],
        scope: WriteScope,
        steps: int = 0,
    ) -> None:
        """Fill in a call of any kind of function. result: its type, and whether it is nullable. steps: see ``write``."""
        for arg in args:
            message.arguments.add().value.CopyFrom(self.write(arg, scope, steps))
        types = [a.dtype for a in args]
        message.function_reference = self._plan.functions.anchor(entry.name, entry.extensions, types)
        message.output_type.CopyFrom(write_type(*result))

    def _call(self, call: Call, scope: WriteScope, steps: int) -> Message:
        """Write a call, or its value if Substrait lacks the function and the call is constant."""
        if call.function == "get_struct_field":
            return self._field(call, scope, steps)
        if call.logic in (Logic.AND, Logic.OR):
            return self._connective(call, scope, steps)
        if call.function in COMPONENT_OF:
            return self._extract(call, scope, steps)
        entry = _mapping_for(call)
        if entry is not None:
            options = self._options(call, entry)
            if entry.function == "length":
                return self._char_length(call, entry, scope, steps)
            if self._reads_back(call, entry, options):
                message = self._scalar(entry, call.args, (call.type, call.nullable), scope, steps)
                write_options(message.scalar_function, options)
                return message
        if is_constant(call):
            return proto().Expression(literal=write_literal(_folded_literal(call)))
        raise SubstraitError(
            f"function {call.function} cannot be written as Substrait, which has no function with the same results: {call}"
        )

    def _options(self, call: Call, entry: ScalarMapping) -> Options:
        """Return the options that state Spark's behavior where engines disagree."""
        ansi = call.mode is EvalMode.ANSI
        types = [a.dtype for a in call.args]
        if entry.function == "concat":
            return {"null_handling": "ACCEPT_NULLS"}
        if entry.function == "substring" and (integer_literal(call.args[1]) or 0) < 0:
            return {"negative_start": "WRAP_FROM_END"}
        options: dict[str, str] = {}
        if call.function in _INTEGER_ARITHMETIC and t.is_integral(types[0]):
            options["overflow"] = "ERROR" if ansi else "SILENT"
        if call.function in ("divide", "div"):
            options["on_division_by_zero"] = "ERROR" if ansi else "NULL"
        return options

    def _reads_back(self, call: Call, entry: ScalarMapping, options: Options) -> bool:
        """Return whether the reader would build the same call from the message of a call.

        This is how the writer shares the checks of the reader: a call that the reader would decline is not written.
        """
        facts = self._plan.facts
        preferences = {name: (value,) for name, value in options.items()}
        request = CallRequest(
            entry.name, call.args, facts.mode, facts.time_zone, preferences=preferences, declared=call.type
        )
        try:
            check_arity(request, entry.arity)
            built = entry.build(request)
        except KQueryError:
            return False
        if not isinstance(built, Call):
            return False
        # The mode matters only for functions that can raise errors.
        mode = built.mode if call.entry.raises else call.mode
        return replace(built, tz=call.tz, mode=mode) == call

    def _scalar(
        self,
        entry: ScalarMapping,
        args: Sequence[Expr],
        result: tuple[pa.DataType, bool],
        scope: WriteScope,
        steps: int,
    ) -> Message:
        message = proto().Expression()
        self.function_call(message.scalar_function, entry, args, result, scope, steps)
        return message

    def _connective(self, call: Call, scope: WriteScope, steps: int) -> Message:
        """Write a left-deep chain of AND or OR as one call with many arguments, to limit the nesting of messages.

        Parsers of protobuf accept only 100 levels.
        """
        terms: list[Expr] = []
        left: Expr = call
        while isinstance(left, Call) and left.logic is call.logic and len(terms) < _MAX_CONNECTIVE_ARGS - 1:
            terms.insert(0, left.args[1])
            left = left.args[0]
        terms.insert(0, left)
        result = (call.type, call.nullable)
        return self._scalar(WRITTEN_SCALARS[call.function], terms, result, scope, steps)

    def _char_length(self, call: Call, entry: ScalarMapping, scope: WriteScope, steps: int) -> Message:
        """Write the length of a string, which is an i64 in Substrait and an int in Spark."""
        if call.args[0].dtype != t.STRING:
            raise SubstraitError(
                f"the length of {t.spark_name(call.args[0].dtype)} cannot be written as Substrait"
            )
        message = self._scalar(entry, call.args, (t.LONG, call.nullable), scope, steps)
        return cast_to(message, call.type, call.nullable)

    def _extract(self, call: Call, scope: WriteScope, steps: int) -> Message:
        """Write a component of a date or timestamp, which is an i64 in Substrait and an int in Spark."""
        (value,) = call.args
        if value.dtype != t.DATE and value.dtype != t.TIMESTAMP_NTZ:
            raise SubstraitError(
                f"{call.function} of {t.spark_name(value.dtype)} cannot be written as Substrait"
            )
        component, has_indexing = COMPONENT_OF[call.function]
        message = proto().Expression()
        function = message.scalar_function
        function.arguments.add().enum = component
        if has_indexing:
            function.arguments.add().enum = "ONE"
        self.function_call(function, SCALARS["extract"], [value], (t.LONG, call.nullable), scope, steps)
        return cast_to(message, call.type, call.nullable)

    def _field(self, call: Call, scope: WriteScope, steps: int) -> Message:
        """Write a field of a struct as a reference."""
        base, index = call.args
        path = [index]
        while isinstance(base, Call) and base.function == "get_struct_field":
            path.insert(0, base.args[1])
            base = base.args[0]
        message = proto().Expression()
        selection = message.selection
        if isinstance(base, Column):
            selection.CopyFrom(_reference(scope.position(base), steps).selection)
            field = selection.direct_reference.struct_field
        else:
            selection.expression.CopyFrom(self.write(base, scope, steps))
            field = None
        for each in path:
            if not isinstance(each, Literal):
                raise SubstraitError(f"{call} cannot be written as Substrait")
            field = selection.direct_reference.struct_field if field is None else field.child.struct_field
            field.field = each.value
        return message

    def _cast(self, expr: Cast, scope: WriteScope, steps: int) -> Message:
        """Write a cast; raises SubstraitError if its result depends on a mode or time zone that the plan would not have."""
        source = expr.child.dtype
        facts = self._plan.facts
        depends_on_time_zone = t.is_timestamp(source) != t.is_timestamp(expr.to)
        if depends_on_time_zone and expr.tz != facts.time_zone:
            raise SubstraitError(
                f"{expr} in the time zone {expr.tz} cannot be written as Substrait; the session's is {facts.time_zone}"
            )
        never_fails = not casts.can_raise(source, expr.to, EvalMode.ANSI)
        if expr.mode is EvalMode.LEGACY and not never_fails:
            raise SubstraitError(
                f"{expr} outside of ANSI mode cannot be written as Substrait, whose casts raise an error or return NULL"
            )
        message = cast_to(self.write(expr.child, scope, steps), expr.to, expr.nullable)
        if expr.mode is EvalMode.TRY:
            message.cast.failure_behavior = CAST_RETURN_NULL
        return message

    def _case(self, expr: Case, scope: WriteScope, steps: int) -> Message:
        message = proto().Expression()
        for condition, value in expr.branches:
            branch = message.if_then.ifs.add()
            getattr(branch, "if").CopyFrom(self.write(condition, scope, steps))
            branch.then.CopyFrom(self.write(value, scope, steps))
        if expr.otherwise is not None:
            getattr(message.if_then, "else").CopyFrom(self.write(expr.otherwise, scope, steps))
        return message

    def _subquery(self, expr: Subquery, scope: WriteScope) -> Message:
        plan = self._plan.relation(expr.plan, OuterRow.of_subquery(scope, expr.outer))
        message = proto().Expression()
        subquery = message.subquery
        match expr:
            case ScalarSubquery():
                subquery.scalar.input.CopyFrom(plan)
            case Exists():
                subquery.set_predicate.predicate_op = PREDICATE_EXISTS
                subquery.set_predicate.tuples.CopyFrom(plan)
            case InSubquery():
                subquery.in_predicate.haystack.CopyFrom(plan)
                for value in expr.values:
                    subquery.in_predicate.needles.append(self.write(value, scope))
            case _:
                raise SubstraitError(f"{type(expr).__name__} cannot be written as Substrait")
        return message


def _mapping_for(call: Call) -> ScalarMapping | None:
    """Return the mapping that a call is written with; None if Substrait has no such function."""
    if call.function == "div" and call.args[0].dtype == t.LONG:
        return WRITTEN_SCALARS["divide"]
    return WRITTEN_SCALARS.get(call.function)


def _folded_literal(call: Call) -> Literal:
    """Return the value of a constant call."""
    try:
        literal = evaluate_constant(call)
    except KQueryError as error:
        raise SubstraitError(f"{call} cannot be written as Substrait: {error}") from None
    return replace(literal, type=call.type)


def write_options(message: Message, options: Options) -> None:
    """Add options to a call of any kind of function."""
    for option, value in options.items():
        message.options.add(name=option, preference=[value])


def _reference(position: int, steps: int) -> Message:
    message = proto().Expression()
    message.selection.direct_reference.struct_field.field = position
    if steps:
        message.selection.outer_reference.steps_out = steps
    else:
        message.selection.root_reference.SetInParent()
    return message


def cast_to(inner: Message, dtype: pa.DataType, nullable: bool) -> Message:
    """Return a cast of an expression's message. A value that does not fit is an error."""
    message = proto().Expression()
    message.cast.input.CopyFrom(inner)
    message.cast.type.CopyFrom(write_type(dtype, nullable))
    message.cast.failure_behavior = CAST_THROW_EXCEPTION
    return message
