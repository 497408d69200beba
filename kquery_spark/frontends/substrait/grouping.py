"""Reads aggregations of plans, with one grouping or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kquery_spark.errors import PlanError, SubstraitError, Unsupported
from kquery_spark.expr import AggregateCall, Case, Expr, Literal, Named
from kquery_spark.expr.properties import can_raise
from kquery_spark.frontends.substrait.aggregate_functions import (
    AggregateMapping,
    aggregate_mapping,
    fixed_options,
)
from kquery_spark.frontends.substrait.mapping import Request, adapt, check_options
from kquery_spark.frontends.substrait.messages import Message
from kquery_spark.frontends.substrait.output_names import output_names
from kquery_spark.frontends.substrait.scope import Frame, Scope
from kquery_spark.logical import Aggregate, Expand, LogicalPlan, Projection
from kquery_spark.logical.plan import fresh_name
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.substrait.reader import PlanReader

_DISTINCT = 2
_MAX_GROUPINGS = 4096
"""As many as a CUBE of 12 keys has."""
_WHOLE_PHASES = (0, 3)
"""AGGREGATION_PHASE_UNSPECIFIED, which DataFusion writes, and INITIAL_TO_RESULT."""


class GroupingReader:
    """Reads AggregateRel."""

    def __init__(self, plan: PlanReader) -> None:
        self._plan = plan

    def read(self, message: Message, frame: Frame | None) -> LogicalPlan:
        """Return the plan of an aggregation: its columns are keys, aggregates, and the number of the grouping set."""
        child = self._plan.relation(message.input, frame)
        scope = Scope.of_plan(child, frame)
        keys, groupings = self._keys(message, scope)
        if len(groupings) > _MAX_GROUPINGS:
            raise SubstraitError(f"more than {_MAX_GROUPINGS:,} grouping sets are not supported")
        if len(groupings) > 1 and self._plan.extensions.is_datafusion:
            raise SubstraitError(
                "grouping sets of DataFusion are not supported: it refers to their columns in another order than they have"
            )
        measures = [self._measure(each, scope) for each in message.measures]
        names = _names(message, keys, [call for call, _ in measures], len(groupings) > 1)
        named_keys = [Named(key, name) for key, name in zip(keys, names, strict=False)]
        calls = [Named(call, name) for (call, _), name in zip(measures, names[len(keys) :], strict=False)]
        if len(groupings) > 1:
            plan = _grouping_sets(child, named_keys, calls, groupings, names[-1])
        elif not keys and not calls:
            raise SubstraitError("an aggregation without keys and without aggregates")
        else:
            plan = Aggregate(child, tuple(named_keys), tuple(calls))
        return self._with_declared_types(plan, len(keys), measures)

    def _keys(self, message: Message, scope: Scope) -> tuple[list[Expr], list[list[int]]]:
        """Return the grouping expressions, and for each grouping the positions of its own."""
        reader = self._plan.expressions
        keys = [reader.read(each, scope) for each in message.grouping_expressions]
        groupings = []
        for grouping in message.groupings:
            references = list(grouping.expression_references)
            if not references and grouping.grouping_expressions:
                # the form before grouping_expressions of the relation
                for each in grouping.grouping_expressions:
                    key = reader.read(each, scope)
                    if key not in keys:
                        keys.append(key)
                    references.append(keys.index(key))
            if any(not 0 <= r < len(keys) for r in references):
                raise SubstraitError(f"a grouping refers to an expression that is not one of {len(keys)}")
            groupings.append(references)
        used = {r for references in groupings for r in references}
        if len(used) < len(keys):
            raise SubstraitError("an aggregation with a grouping expression that no grouping refers to")
        if len(groupings) == 1 and groupings[0] != list(range(len(keys))):
            raise SubstraitError("a grouping that changes the order of the grouping expressions")
        return keys, groupings or [[]]

    def _measure(self, message: Message, scope: Scope) -> tuple[AggregateCall, Request]:
        call = message.measure
        name, entry, request = self.call(call, scope, over_window=False)
        if call.sorts:
            raise SubstraitError(f"function {name} with sorted arguments is not supported")
        condition = None
        if message.HasField("filter"):
            condition = self._plan.expressions.condition(message.filter, scope, "a measure")
        args = () if _counts_rows(entry, request, call.invocation == _DISTINCT) else request.args
        if condition is not None:
            args = tuple(without_condition(a, condition) for a in args)
        try:
            aggregate = AggregateCall.of(
                entry.function,
                *args,
                distinct=call.invocation == _DISTINCT,
                condition=condition,
                mode=request.mode,
            )
        except (PlanError, Unsupported) as error:
            raise SubstraitError(f"function {name}: {error}") from None
        return aggregate, request

    def call(
        self, message: Message, scope: Scope, over_window: bool
    ) -> tuple[str, AggregateMapping, Request]:
        """Return the name, the entry, and the arguments of a call of an aggregate function or window function."""
        function = self._plan.extensions.function(message.function_reference)
        name, reader = function.name, self._plan.expressions
        request = reader.request(name, message, scope, reader.declared_type(message))
        entry = aggregate_mapping(name, request.preferences, over_window)
        if entry is None:
            kind = "window function" if over_window else "aggregate function"
            needs = ", ".join(fixed_options(name))
            raise SubstraitError(
                f"{kind} {name} is not supported{f' without the option {needs}' if needs else ''}"
            )
        self._plan.extensions.check(function, entry.extensions)
        if request.enums:
            raise request.decline(f"the argument {request.enums[0]} is not supported")
        check_options(name, request.preferences, entry.behaviors(request.mode))
        if message.phase not in _WHOLE_PHASES:
            raise request.decline("a phase of an aggregation that is not the whole of it is not supported")
        if over_window is False or entry.over_groups:
            if entry.function in ("sum", "avg") and len(request.args) != 1:
                raise request.decline(f"it takes one argument, not {len(request.args)}")
            entry.accepts(request)
        return name, entry, request

    def _with_declared_types(
        self, plan: LogicalPlan, keys: int, measures: Sequence[tuple[AggregateCall, Request]]
    ) -> LogicalPlan:
        """Cast the results to the types that the plan declares."""
        exprs: list[Named] = []
        for i, name in enumerate(plan.schema.names):
            column: Expr = plan.column(name)
            if keys <= i < keys + len(measures):
                request = measures[i - keys][1]
                column = adapt(request.name, column, request.declared, request.mode, request.time_zone)
            exprs.append(Named(column, name))
        if all(e.expr == plan.column(e.name) for e in exprs):
            return plan
        return Projection(plan, tuple(exprs))


def _counts_rows(entry: AggregateMapping, request: Request, distinct: bool) -> bool:
    """Return whether a call is COUNT(*), which other engines write as a count of a constant."""
    if entry.function != "count" or distinct:
        return False
    return all(isinstance(a, Literal) and a.value is not None for a in request.args)


def without_condition(arg: Expr, condition: Expr) -> Expr:
    """Return the value of ``CASE WHEN condition THEN value END``, which AggregateCall.of makes of values that can raise."""
    if isinstance(arg, Case) and arg.otherwise is None and len(arg.branches) == 1:
        own, value = arg.branches[0]
        if own == condition and can_raise(value):
            return value
    return arg


def _names(
    message: Message, keys: Sequence[Expr], calls: Sequence[AggregateCall], has_number: bool
) -> list[str]:
    stems = [key.default_alias or f"key_{i + 1}" for i, key in enumerate(keys)]
    stems += [call.default_alias or call.function for call in calls]
    if has_number:
        stems.append("grouping_set")
    return output_names(message, stems)


def _grouping_sets(
    child: LogicalPlan,
    keys: Sequence[Named],
    calls: Sequence[Named],
    groupings: Sequence[Sequence[int]],
    number: str,
) -> LogicalPlan:
    """Each row becomes one per grouping, in which keys of other groupings are NULL, as in the plans of the SQL frontend."""
    used_names = set(child.schema.names)
    copies = []
    for name in [*(k.name for k in keys), number]:
        copies.append(fresh_name(name, used_names))
        used_names.add(copies[-1])
    columns: list[Expr] = [child.column(name) for name in child.schema.names]
    projections = [
        (
            *columns,
            *(key.expr if i in grouping else Literal(None, key.expr.dtype) for i, key in enumerate(keys)),
            Literal(position, t.INT),
        )
        for position, grouping in enumerate(groupings)
    ]
    expanded = Expand(child, tuple(projections), (*child.schema.names, *copies))
    grouped = [
        Named(expanded.column(copy), name)
        for copy, name in zip(copies, [*(k.name for k in keys), number], strict=True)
    ]
    plan = Aggregate(expanded, tuple(grouped), tuple(calls))
    order = [*(k.name for k in keys), *(c.name for c in calls), number]
    return Projection(plan, tuple(Named(plan.column(name), name) for name in order))
