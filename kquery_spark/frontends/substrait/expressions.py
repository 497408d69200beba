"""Reads the expressions of Substrait plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from kquery_spark.errors import SubstraitError
from kquery_spark.expr import Case, Cast, Expr, InList, Literal, SortKey
from kquery_spark.expr.properties import chain
from kquery_spark.frontends.substrait.enums import CAST_RETURN_NULL, PREDICATE_EXISTS, SORT_DIRECTIONS
from kquery_spark.frontends.substrait.functions import SCALARS
from kquery_spark.frontends.substrait.literals import read_literal
from kquery_spark.frontends.substrait.mapping import (
    CallRequest,
    as_substrait_errors,
    cast_to_common_type,
    cast_to_declared,
    check_arity,
    check_options,
)
from kquery_spark.frontends.substrait.messages import Message, kind_of
from kquery_spark.frontends.substrait.scope import OuterQuery, Scope
from kquery_spark.functions.casts.table import check_cast
from kquery_spark.functions.registry import EvalMode
from kquery_spark.logical.subqueries import Exists, InSubquery, ScalarSubquery
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.substrait.reader import PlanReader


class ExpressionReader:
    """Reads the expressions of one plan."""

    def __init__(self, plan: PlanReader) -> None:
        self._plan = plan
        self._facts = plan.facts
        self._readers: dict[str, Callable[[Message, Scope], Expr]] = {
            "literal": lambda message, _: read_literal(message, plan.types),
            "selection": self._selection,
            "scalar_function": self._scalar,
            "window_function": self._window,
            "if_then": self._if_then,
            "switch_expression": self._switch,
            "singular_or_list": self._in_list,
            "cast": self._cast,
            "subquery": self._subquery,
        }

    def read(self, message: Message, scope: Scope) -> Expr:
        """Return the expression of a message."""
        kind = kind_of(message, "rex_type", "an expression")
        reader = self._readers.get(kind)
        if reader is None:
            raise SubstraitError(f"the expression {kind} is not supported")
        return reader(getattr(message, kind), scope)

    def condition(self, message: Message, scope: Scope, what: str) -> Expr:
        """Return a boolean expression; raises SubstraitError for other types. what: a name for its place in the plan."""
        expr = self.read(message, scope)
        if expr.dtype != t.BOOL:
            raise SubstraitError(f"the condition of {what} is {t.spark_name(expr.dtype)}, not boolean")
        return expr

    def sort_keys(self, fields: Sequence[Message], scope: Scope) -> tuple[SortKey, ...]:
        """Return the keys of sort fields."""
        keys = []
        for each in fields:
            order = (
                SORT_DIRECTIONS.get(each.direction) if each.WhichOneof("sort_kind") == "direction" else None
            )
            if order is None:
                raise SubstraitError(
                    "a sort field must have a direction: ascending or descending, NULLs first or last"
                )
            keys.append(SortKey(self.read(each.expr, scope), *order))
        return tuple(keys)

    def request(self, name: str, message: Message, scope: Scope) -> CallRequest:
        """Return the arguments and options of a call. message: a call of a scalar, aggregate or window function."""
        if message.DESCRIPTOR.fields_by_name.get("args") is not None and message.args:
            raise SubstraitError(
                f"function {name} has its arguments in the old field args; they must be in the field arguments"
            )
        args, enums = [], []
        for each in message.arguments:
            kind = kind_of(each, "arg_type", f"an argument of {name}")
            if kind == "type":
                raise SubstraitError(f"function {name}: arguments that are types are not supported")
            if kind == "enum":
                enums.append(getattr(each, kind))
            else:
                args.append(self.read(each.value, scope))
        preferences = {o.name: tuple(o.preference) for o in message.options}
        declared = self._declared_type(message)
        return replace(
            self._request(name, *args), enums=tuple(enums), preferences=preferences, declared=declared
        )

    def _request(self, name: str, *args: Expr) -> CallRequest:
        """Return a request for a call with only these arguments: no enums, options, or declared type."""
        return CallRequest(name, args, self._facts.mode, self._facts.time_zone)

    def _declared_type(self, message: Message) -> pa.DataType | None:
        """Return the type that a call says it returns; None if it does not say it, as often in plans of DataFusion."""
        if not message.HasField("output_type") or message.output_type.WhichOneof("kind") is None:
            return None
        return self._plan.types.read(message.output_type)[0]

    def _scalar(self, message: Message, scope: Scope) -> Expr:
        """Read a call of a scalar function.

        The checks come first, so that the builders of the functions can rely on the number of arguments and on options that
        the engine implements.
        """
        function = self._plan.extensions.function(message.function_reference)
        name = function.name
        entry = SCALARS.get(name)
        if entry is None:
            raise SubstraitError(f"function {name} is not supported")
        self._plan.extensions.check(function, entry.extensions)
        request = self.request(name, message, scope)
        check_arity(request, entry.arity)
        if request.enums and name != "extract":
            raise SubstraitError(f"function {name} with the argument {request.enums[0]} is not supported")
        check_options(request, entry.behaviors(request.mode))
        with as_substrait_errors(f"function {name}"):
            expr = entry.build(request)
        return cast_to_declared(request, expr)

    def _window(self, message: Message, scope: Scope) -> Expr:
        return self._plan.windows.read(message, scope)

    def _selection(self, message: Message, scope: Scope) -> Expr:
        """Read a field reference.

        The first segment is a column of the scope, or of an outer query. The segments below it are fields of structs.
        A reference whose root is an expression has only fields of structs.
        """
        if message.WhichOneof("reference_type") != "direct_reference":
            raise SubstraitError("a masked field reference is not supported; references must be direct")
        segment = message.direct_reference
        root = message.WhichOneof("root_type")
        if root == "expression":
            base = self.read(message.expression, scope)
        else:
            field = _struct_field(segment)
            if root == "outer_reference":
                steps = message.outer_reference.steps_out
                if steps < 1:
                    raise SubstraitError("an outer reference must be at least one step out")
                base = scope.outer_column(steps, field.field)
            else:
                base = scope.column(field.field)
            if not field.HasField("child"):
                return base
            segment = field.child
        return self._fields_within(base, segment)

    def _fields_within(self, base: Expr, segment: Message) -> Expr:
        """Return the field of a struct that a chain of segments refers to."""
        request = self._request("a field reference")
        while True:
            field = _struct_field(segment)
            if not pa.types.is_struct(base.dtype) or not 0 <= field.field < base.dtype.num_fields:
                raise SubstraitError(f"{t.spark_name(base.dtype)} has no field {field.field}")
            base = request.call("get_struct_field", base, Literal(field.field, t.INT))
            if not field.HasField("child"):
                return base
            segment = field.child

    def _if_then(self, message: Message, scope: Scope) -> Expr:
        branches = list(message.ifs)
        if self._plan.extensions.is_datafusion and branches and not branches[0].HasField("then"):
            # DataFusion writes CASE value WHEN ... with the value as the first condition, without a result.
            value = self.read(getattr(branches.pop(0), "if"), scope)
            conditions = [self._equal(value, self.read(getattr(each, "if"), scope)) for each in branches]
        else:
            conditions = [self.condition(getattr(each, "if"), scope, "if_then") for each in branches]
        return self._case("if_then", message, conditions, branches, scope)

    def _switch(self, message: Message, scope: Scope) -> Expr:
        value = self.read(message.match, scope)
        literals = [read_literal(getattr(each, "if"), self._plan.types) for each in message.ifs]
        conditions = [self._equal(value, each) for each in literals]
        return self._case("switch", message, conditions, message.ifs, scope)

    def _case(
        self,
        name: str,
        message: Message,
        conditions: Sequence[Expr],
        branches: Sequence[Message],
        scope: Scope,
    ) -> Expr:
        """Return a CASE with the conditions and the results of the branches, and that of ELSE, cast to a common type.

        name: that of the expression, for errors. message: has the result of ELSE.
        """
        if not branches:
            raise SubstraitError(f"{name} must have branches")
        values = [self.read(each.then, scope) for each in branches]
        if message.HasField("else"):
            values.append(self.read(getattr(message, "else"), scope))
        values = cast_to_common_type(self._request(name), values)
        otherwise = values.pop() if message.HasField("else") else None
        return Case(tuple(zip(conditions, values, strict=True)), otherwise)

    def _equal(self, left: Expr, right: Expr) -> Expr:
        request = self._request("equal", left, right)
        with as_substrait_errors("function equal"):
            return request.call("eq", *cast_to_common_type(request, request.args))

    def _in_list(self, message: Message, scope: Scope) -> Expr:
        value = self.read(message.value, scope)
        options = [self.read(each, scope) for each in message.options]
        if not options:
            raise SubstraitError("singular_or_list must have options")
        # IN takes literals of the type of the value; everything else is a chain of equalities.
        literals = tuple(o for o in options if isinstance(o, Literal) and o.dtype == value.dtype)
        if len(literals) == len(options):
            return InList(value, literals)
        return chain("or", [self._equal(value, each) for each in options])

    def _cast(self, message: Message, scope: Scope) -> Expr:
        child = self.read(message.input, scope)
        kind = kind_of(message.type, "kind", "the type of a cast")
        if kind == "varchar":
            raise SubstraitError(
                "a cast to varchar is not supported, because Spark does not truncate strings"
            )
        to, _ = self._plan.types.read(message.type)
        if isinstance(child, Cast) and child.child.dtype == to and _widens(to, child.dtype):
            # An integer is cast to a wider type and back. The writer does this to functions such as char_length, which
            # return an int in the engine and i64 in Substrait; without the casts, the plan is equal to the original.
            return child.child
        mode = EvalMode.TRY if message.failure_behavior == CAST_RETURN_NULL else EvalMode.ANSI
        check_cast(child.dtype, to)
        return Cast(child, to, mode, self._facts.time_zone)

    def _subquery(self, message: Message, scope: Scope) -> Expr:
        kind = kind_of(message, "subquery_type", "a subquery")
        inner = getattr(message, kind)
        outer = OuterQuery(scope, self._plan.names)
        match kind:
            case "scalar":
                plan = self._plan.relation(inner.input, outer)
                if len(plan.schema) != 1:
                    raise SubstraitError(f"a scalar subquery must have one column, not {len(plan.schema)}")
                return ScalarSubquery(plan, tuple(outer.values.values()))
            case "in_predicate":
                values = tuple(self.read(each, scope) for each in inner.needles)
                plan = self._plan.relation(inner.haystack, outer)
                if [v.dtype for v in values] != plan.schema.types or not values:
                    raise SubstraitError("the two sides of an in_predicate have different types")
                return InSubquery(plan, tuple(outer.values.values()), values)
            case "set_predicate" if inner.predicate_op == PREDICATE_EXISTS:
                plan = self._plan.relation(inner.tuples, outer)
                return Exists(plan, tuple(outer.values.values()))
        raise SubstraitError(f"the subquery {kind} is not supported")


def _struct_field(segment: Message) -> Message:
    if segment.WhichOneof("reference_type") != "struct_field":
        raise SubstraitError("a reference to an element of an array or a map is not supported")
    return segment.struct_field


def _widens(narrow: pa.DataType, wide: pa.DataType) -> bool:
    return t.is_integral(narrow) and t.is_integral(wide) and bool(narrow.bit_width < wide.bit_width)
