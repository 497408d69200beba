"""Reads aggregations, with one grouping set or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kquery_spark.errors import SubstraitError
from kquery_spark.expr import AggregateCall, Case, Expr, Literal, Named
from kquery_spark.expr.properties import can_raise
from kquery_spark.frontends.substrait.aggregate_functions import (
    AggregateMapping,
    aggregate_mapping,
    counts_rows,
    required_option_names,
)
from kquery_spark.frontends.substrait.enums import (
    INVOCATION_DISTINCT,
    PHASE_INITIAL_TO_RESULT,
    PHASE_UNSPECIFIED,
)
from kquery_spark.frontends.substrait.mapping import (
    CallRequest,
    as_substrait_errors,
    cast_to_declared,
    check_options,
)
from kquery_spark.frontends.substrait.messages import Message
from kquery_spark.frontends.substrait.output_columns import output_names
from kquery_spark.frontends.substrait.scope import OuterQuery, Scope
from kquery_spark.logical import Aggregate, Expand, LogicalPlan, Projection
from kquery_spark.logical.plan import fresh_name
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.substrait.reader import PlanReader

_MAX_GROUPINGS = 4096
"""The number of grouping sets in a CUBE of 12 keys."""
_COMPLETE_PHASES = (PHASE_UNSPECIFIED, PHASE_INITIAL_TO_RESULT)
"""The phases of a call that is not a partial aggregation. DataFusion leaves the phase unspecified."""


class AggregateReader:
    """Reads AggregateRel."""

    def __init__(self, plan: PlanReader) -> None:
        self._plan = plan

    def read(self, message: Message, outer: OuterQuery | None) -> LogicalPlan:
        """Return the plan of an aggregation.

        Its columns are the keys, the aggregates, and, if there are several grouping sets, the number of the set.
        """
        child = self._plan.relation(message.input, outer)
        scope = Scope.of_plan(child, outer)
        keys, groupings = self._keys(message, scope)
        if len(groupings) > _MAX_GROUPINGS:
            raise SubstraitError(f"more than {_MAX_GROUPINGS:,} grouping sets are not supported")
        if len(groupings) > 1 and self._plan.extensions.is_datafusion:
            raise SubstraitError(
                "grouping sets of DataFusion are not supported: it refers to their columns in another order "
                "than Substrait defines"
            )
        measures = [self._measure(each, scope) for each in message.measures]
        names = _names(message, keys, [call for call, _ in measures], len(groupings) > 1)
        named_keys = [Named(key, name) for key, name in zip(keys, names, strict=False)]
        calls = [Named(call, name) for (call, _), name in zip(measures, names[len(keys) :], strict=False)]
        if len(groupings) > 1:
            plan = _grouping_sets(child, named_keys, calls, groupings, names[-1])
        elif not keys and not calls:
            raise SubstraitError("an aggregation must have keys or aggregates")
        else:
            plan = Aggregate(child, tuple(named_keys), tuple(calls))
        return self._with_declared_types(plan, len(keys), measures)

    def _keys(self, message: Message, scope: Scope) -> tuple[list[Expr], list[list[int]]]:
        """Return all grouping expressions, and for each grouping set the positions of its expressions."""
        reader = self._plan.expressions
        keys = [reader.read(each, scope) for each in message.grouping_expressions]
        groupings = []
        for grouping in message.groupings:
            references = list(grouping.expression_references)
            if not references and grouping.grouping_expressions:
                # the old form: each grouping set has its own expressions
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
            raise SubstraitError("the aggregation has a grouping expression that no grouping refers to")
        if len(groupings) == 1 and groupings[0] != list(range(len(keys))):
            # It would not be clear whether the columns have the order of the expressions or of the references.
            raise SubstraitError(
                "a single grouping must refer to the grouping expressions once each, in their order"
            )
        return keys, groupings or [[]]

    def _measure(self, message: Message, scope: Scope) -> tuple[AggregateCall, CallRequest]:
        """Return the call of an aggregate function, and the request that says which type the plan declares for it."""
        call = message.measure
        entry, request = self.call(call, scope, over_window=False)
        if call.sorts:
            raise SubstraitError(f"function {request.name} with sorted arguments is not supported")
        condition = None
        if message.HasField("filter"):
            condition = self._plan.expressions.condition(message.filter, scope, "a measure")
        distinct = call.invocation == INVOCATION_DISTINCT
        args = () if not distinct and counts_rows(entry.function, request.args) else request.args
        if condition is not None:
            args = tuple(without_condition(a, condition) for a in args)
        with as_substrait_errors(f"function {request.name}"):
            aggregate = AggregateCall.of(
                entry.function, *args, distinct=distinct, condition=condition, mode=request.mode
            )
        return aggregate, request

    def call(self, message: Message, scope: Scope, over_window: bool) -> tuple[AggregateMapping, CallRequest]:
        """Return the mapping of a call of an aggregate function or window function, and its arguments and options."""
        function = self._plan.extensions.function(message.function_reference)
        name = function.name
        request = self._plan.expressions.request(name, message, scope)
        entry = aggregate_mapping(name, request.preferences, over_window)
        if entry is None:
            kind = "window function" if over_window else "aggregate function"
            needs = ", ".join(required_option_names(name))
            raise SubstraitError(
                f"{kind} {name} is not supported{f' without the option {needs}' if needs else ''}"
            )
        self._plan.extensions.check(function, entry.extensions)
        if request.enums:
            raise request.decline(f"the argument {request.enums[0]} is not supported")
        check_options(request, entry.behaviors(request.mode))
        if message.phase not in _COMPLETE_PHASES:
            raise request.decline(
                "partial aggregations are not supported; the phase must be INITIAL_TO_RESULT"
            )
        if entry.is_aggregate:
            if entry.function in ("sum", "avg") and len(request.args) != 1:
                raise request.decline(f"it takes one argument, not {len(request.args)}")
            entry.check_call(request)
        return entry, request

    def _with_declared_types(
        self, plan: LogicalPlan, keys: int, measures: Sequence[tuple[AggregateCall, CallRequest]]
    ) -> LogicalPlan:
        """Return the plan with its aggregates cast to the types that the calls declare. keys: the number of keys."""
        exprs: list[Named] = []
        for i, name in enumerate(plan.schema.names):
            column: Expr = plan.column(name)
            if keys <= i < keys + len(measures):
                column = cast_to_declared(measures[i - keys][1], column)
            exprs.append(Named(column, name))
        if all(e.expr == plan.column(e.name) for e in exprs):
            return plan
        return Projection(plan, tuple(exprs))


def without_condition(arg: Expr, condition: Expr) -> Expr:
    """Return the value of ``CASE WHEN condition THEN value END``; other arguments unchanged.

    With FILTER (WHERE condition), AggregateCall.of wraps arguments that can raise an error in this CASE. The writer
    removes it, and the reader does too, so that reading a plan does not wrap the argument twice.
    """
    if isinstance(arg, Case) and arg.otherwise is None and len(arg.branches) == 1:
        branch_condition, value = arg.branches[0]
        if branch_condition == condition and can_raise(value):
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
    """Return the aggregation of several grouping sets, in the form of the SQL frontend's plans.

    An Expand node makes a copy of each row for each grouping set: keys that are not in the set are NULL, and a further
    column has the number of the set. The rows are then grouped by all keys and the number. number: the name of that column.
    """
    used_names = set(child.schema.names)
    key_copies = []
    for name in [*(k.name for k in keys), number]:
        key_copies.append(fresh_name(name, used_names))
        used_names.add(key_copies[-1])
    columns: list[Expr] = [child.column(name) for name in child.schema.names]
    projections = [
        (
            *columns,
            *(key.expr if i in grouping else Literal(None, key.expr.dtype) for i, key in enumerate(keys)),
            Literal(set_number, t.INT),
        )
        for set_number, grouping in enumerate(groupings)
    ]
    expanded = Expand(child, tuple(projections), (*child.schema.names, *key_copies))
    grouped = [
        Named(expanded.column(copy), name)
        for copy, name in zip(key_copies, [*(k.name for k in keys), number], strict=True)
    ]
    plan = Aggregate(expanded, tuple(grouped), tuple(calls))
    order = [*(k.name for k in keys), *(c.name for c in calls), number]
    return Projection(plan, tuple(Named(plan.column(name), name) for name in order))
