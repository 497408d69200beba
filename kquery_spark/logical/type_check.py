"""Checks the types in plans from outside: the stated type of every expression must follow from the types of its inputs.

Kernels work on Arrow buffers and trust the types of a plan. If a plan claimed that a bigint is a string, a kernel would
read past the end of a buffer. Frontends derive types, so their plans are correct. A serialized plan from a client only
claims its types, so it has to pass this check before it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.expr import (
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    Expr,
    HigherOrder,
    InList,
    Literal,
    WindowCall,
)
from kquery_spark.expr.constants import literal_vector
from kquery_spark.functions import casts
from kquery_spark.functions.aggregate.windows import WindowFunction, window_function
from kquery_spark.functions.aggregate_registry import aggregate_function
from kquery_spark.logical.aggregate import Aggregate
from kquery_spark.logical.filter import Filter
from kquery_spark.logical.generate import Generate, Generator
from kquery_spark.logical.join import Join
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.logical.plan import LogicalPlan, walk_plan
from kquery_spark.logical.subqueries import InSubquery, OuterColumn, ScalarSubquery, Subquery
from kquery_spark.logical.window import Window
from kquery_spark.types import names as t
from kquery_spark.types.names import spark_name

Fields = Mapping[str, pa.Field]


def check_types(plan: LogicalPlan) -> None:
    """Raise PlanError for the first expression with a wrong type, or of a class that is not allowed in its place."""
    _check_plan(plan, {})


def _check_plan(plan: LogicalPlan, outer: Fields) -> None:
    for node in walk_plan(plan):
        inputs = (
            [node] if not node.children else node.children
        )  # leaves: the filters of a scan read its own columns
        fields = {f.name: f for child in inputs for f in child.schema}
        _Checker(fields, outer).node(node)


class _Checker:
    """Checks the expressions of one node. ``fields``: the columns of its inputs; ``outer``: the OuterColumns it may read."""

    def __init__(self, fields: Fields, outer: Fields) -> None:
        self._fields = fields
        self._outer = outer
        self._checked: NodeMap[None] = NodeMap()

    def node(self, node: LogicalPlan) -> None:
        calls = _own_calls(node)
        for expr in node.expressions:
            if isinstance(expr, AggregateCall | WindowCall) and any(expr is call for call in calls):
                for child in expr.children:
                    self.check(child)
                self._call_type(expr)
            else:
                self.check(expr)
        if isinstance(node, Filter | Join) and node.condition is not None:
            _require_type(node.condition, t.BOOL)
        if isinstance(node, Generate):
            _check_generator(node)

    def check(self, expr: Expr) -> None:
        """Check the expression and everything below it. Each shared subexpression is checked once."""
        if expr in self._checked:
            return
        for child in expr.children:
            self.check(child)
        self._check_without_children(expr)
        self._checked[expr] = None

    def _check_without_children(self, expr: Expr) -> None:
        match expr:
            case Column():
                self._column(expr, self._fields)
            case OuterColumn():
                self._column(expr, self._outer)
            case Literal():
                _check_literal(expr)
            case Call():
                self._call_type(expr)
            case Cast():
                casts.check_cast(expr.child.dtype, expr.to)
            case Case():
                _check_branches(expr)
            case InList():
                _check_list(expr)
            case HigherOrder():
                self._lambda(expr)
            case Subquery():
                self._subquery(expr)
            case _:
                raise PlanError(f"{type(expr).__name__} is not allowed here: {expr}")

    def _column(self, expr: Column | OuterColumn, fields: Fields) -> None:
        field = fields.get(expr.name)
        if field is None:
            raise PlanError(f"unknown column {expr.name}; the columns are {', '.join(fields)}")
        if field.type != expr.type or (field.nullable and not expr.null):
            raise PlanError(f"column {expr.name} is {_format_field(field)}, but the plan says {expr.type}")

    def _call_type(self, expr: Call | AggregateCall | WindowCall) -> None:
        types = [a.dtype for a in expr.args]
        if isinstance(expr, Call):
            entry = expr.entry
            entry.check_arity(len(types))
            if entry.check_values is not None:
                entry.check_values(expr.literals)
            rule = entry.result
            derived = rule(types) if entry.result_of is None else entry.result_of(types, expr.literals)
        elif isinstance(expr, WindowCall):
            call = window_function(expr.function) or aggregate_function(expr.function)
            argument_types = types[:1] if isinstance(call, WindowFunction) and call.is_frame_end else types
            call.check_arity(len(argument_types))
            derived = call.result(argument_types)
            _check_frame(expr)
        else:
            aggregate = aggregate_function(expr.function)
            aggregate.check_arity(len(types))
            derived = aggregate.result(types)
            if expr.condition is not None:
                _require_type(expr.condition, t.BOOL)
        if not _have_same_buffers(derived, expr.type):
            raise PlanError(f"{expr} is {spark_name(derived)}, but the plan says {spark_name(expr.type)}")

    def _lambda(self, expr: HigherOrder) -> None:
        if len(expr.inputs) != len(expr.captured):
            raise PlanError(
                f"the lambda of {expr.function} has {len(expr.inputs)} input(s) for {len(expr.captured)} captured value(s)"
            )
        fields = expr.parameter_fields
        fields += [pa.field(n, c.dtype, c.nullable) for n, c in zip(expr.inputs, expr.captured, strict=True)]
        _Checker({f.name: f for f in fields}, self._outer).check(expr.body)

    def _subquery(self, expr: Subquery) -> None:
        _check_plan(expr.plan, {n.name: n.field for n in expr.outer})
        types = expr.plan.schema.types
        if isinstance(expr, ScalarSubquery) and len(types) != 1:
            raise PlanError("a scalar subquery must have exactly one column")
        if isinstance(expr, InSubquery) and [v.dtype for v in expr.values] != types:
            raise PlanError("the two sides of IN have different types")


def _own_calls(node: LogicalPlan) -> list[Expr]:
    """Return the aggregate or window calls that this node may have, which are only allowed as whole expressions."""
    match node:
        case Aggregate():
            return [n.expr for n in node.aggregates if isinstance(n.expr, AggregateCall)]
        case Window():
            return [n.expr for n in node.calls if isinstance(n.expr, WindowCall)]
    return []


def _require_type(expr: Expr, dtype: pa.DataType) -> None:
    if expr.dtype not in (dtype, t.NULL):
        raise PlanError(f"{expr} is {spark_name(expr.dtype)}, but {spark_name(dtype)} is required")


def _check_literal(literal: Literal) -> None:
    if not t.is_spark_type(literal.type):
        raise PlanError(f"a literal cannot be of type {literal.type}")
    try:
        literal_vector(literal)
    except Exception as error:  # Arrow raises many classes of errors for a value that does not fit the type
        raise PlanError(f"a literal of type {literal.type} has a value of another type") from error


def _check_branches(expr: Case) -> None:
    for condition, value in expr.branches:
        _require_type(condition, t.BOOL)
        _require_type(value, expr.dtype)
    if expr.otherwise is not None:
        _require_type(expr.otherwise, expr.dtype)


def _check_list(expr: InList) -> None:
    for value in expr.values:
        _check_literal(value)
        _require_type(value, expr.child.dtype)


def _check_frame(call: WindowCall) -> None:
    for bound in (call.frame.lower, call.frame.upper):
        if bound is not None:
            _check_literal(bound)
            if type(bound.value) not in (int, float) and not t.is_decimal(bound.type):
                raise PlanError(f"{bound} cannot be the bound of a window frame; it has to be a number")
            if call.frame.months and type(bound.value) is not int:
                raise PlanError(f"{bound} cannot be a number of months; it has to be an integer")


def _check_generator(node: Generate) -> None:
    if node.generator is Generator.STACK:
        width = len(node.names)
        for i, arg in enumerate(node.args):
            _require_type(arg, node.args[i % width].dtype)
        return
    if len(node.args) != 1:
        raise PlanError(f"{node.generator} takes one argument, not {len(node.args)}")
    if node.generator is Generator.REPLICATE:
        _require_type(node.args[0], t.LONG)


def _have_same_buffers(derived: pa.DataType, stated: pa.DataType) -> bool:
    """True if the types have the same buffers. Time zones and nullability may differ, because they do not affect buffers."""
    if derived == stated:
        return True
    if pa.types.is_timestamp(derived) and pa.types.is_timestamp(stated):
        return (derived.unit, derived.tz is None) == (stated.unit, stated.tz is None)
    if derived.id != stated.id or not pa.types.is_nested(derived):
        return False
    inner, other = _child_types(derived), _child_types(stated)
    same_names = _field_names(derived) == _field_names(stated)
    return same_names and len(inner) == len(other) and all(map(_have_same_buffers, inner, other))


def _field_names(dtype: pa.DataType) -> list[str]:
    """Return the names of a struct's fields. The field names inside arrays and maps have no meaning, so they are ignored."""
    return [field.name for field in dtype] if pa.types.is_struct(dtype) else []


def _child_types(dtype: pa.DataType) -> Sequence[pa.DataType]:
    if pa.types.is_map(dtype):
        return [dtype.key_type, dtype.item_type]
    return [dtype.field(i).type for i in range(dtype.num_fields)]


def _format_field(field: pa.Field) -> str:
    return f"{spark_name(field.type)}{'' if field.nullable else ' NOT NULL'}"
