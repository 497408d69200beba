"""DISTINCT aggregates in two levels: first one row per group and distinct value, then one row per group.

The other aggregates ride along as states: partial ones on the first level, merged on the second. Several different
DISTINCT arguments become several rows of one Expand, told apart by a number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from kquery_spark.expr import AggregateCall, Call, Case, Column, Expr, Literal, Named
from kquery_spark.logical import Aggregate
from kquery_spark.physical.keys import check_key_type
from kquery_spark.physical.operators import AggregateExec, ExpandExec, Phase, PhysicalPlan
from kquery_spark.types import names as t

_KEEPS_NULLS = ("first", "last", "max_by", "min_by")  # a FILTER on these is not the same as NULLs
_SET = "__set"


@dataclass(frozen=True)
class TwoLevels:
    """``first`` gives states by keys and values; ``second`` states by key of its exchanged rows; ``last`` results."""

    first: PhysicalPlan
    keys: tuple[Column, ...]
    values: tuple[Column, ...]
    second: Callable[[PhysicalPlan], PhysicalPlan]
    last: Callable[[PhysicalPlan], PhysicalPlan]


def two_levels(plan: Aggregate, child: PhysicalPlan) -> TwoLevels | None:
    """The two levels over ``child``; None where a DISTINCT call cannot be split."""
    distinct = [c for c in plan.calls if c.is_distinct]
    if any(c.condition is not None and c.entry.accumulator in _KEEPS_NULLS for c in distinct):
        return None
    sets = list(dict.fromkeys(_arguments(c) for c in distinct))
    for arguments in sets:
        for expr in arguments:
            check_key_type(expr.dtype)
    columns = [[f"__distinct_{i}_{j}" for j in range(len(args))] for i, args in enumerate(sets)]
    plain = tuple(n for n in plan.aggregates if isinstance(n.expr, AggregateCall) and not n.expr.is_distinct)
    keys = plan.keys
    if len(sets) == 1:
        values = tuple(Named(e, n) for e, n in zip(sets[0], columns[0], strict=True))
    else:
        child, keys, plain, values = _expanded(plan, child, sets, columns, plain)
    first = AggregateExec(child, (*keys, *values), plain, Phase.PARTIAL)
    key_columns = tuple(k.column for k in keys)
    value_columns = tuple(v.column for v in values)
    by_name = {n.name: n for n in plain}
    again = []
    for named in plan.aggregates:
        call = named.expr
        if isinstance(call, AggregateCall) and call.is_distinct:
            place = sets.index(_arguments(call))
            args = tuple(Column(n, e.dtype, True) for n, e in zip(columns[place], sets[place], strict=True))
            only = None if len(sets) == 1 else _from_set(place + 1)
            again.append(Named(replace(call, args=args, distinct=False, condition=only), named.name))
        else:
            again.append(by_name[named.name])
    named_keys = tuple(Named(c, c.name) for c in key_columns)
    named_values = tuple(Named(c, c.name) for c in value_columns)

    def second(read: PhysicalPlan) -> PhysicalPlan:
        merged = AggregateExec(read, (*named_keys, *named_values), plain, Phase.MERGE)
        return AggregateExec(merged, named_keys, tuple(again), Phase.MIXED)

    def last(read: PhysicalPlan) -> PhysicalPlan:
        return AggregateExec(read, named_keys, tuple(again), Phase.FINAL)

    return TwoLevels(first, key_columns, value_columns, second, last)


def _arguments(call: AggregateCall) -> tuple[Expr, ...]:
    """The distinct values; with a FILTER those of rows that fail are NULL, which no aggregate here counts."""
    if call.condition is None:
        return call.args
    head, *rest = call.args
    return (Case(((call.condition, head),)), *rest)


def _from_set(number: int) -> Expr:
    return Call.of("eq", Column(_SET, t.INT, False), Literal(number, t.INT))


def _expanded(
    plan: Aggregate,
    child: PhysicalPlan,
    sets: list[tuple[Expr, ...]],
    columns: list[list[str]],
    plain: tuple[Named, ...],
) -> tuple[PhysicalPlan, tuple[Named, ...], tuple[Named, ...], tuple[Named, ...]]:
    """One row per set (and one for the other aggregates), each with only its own values."""
    inputs: dict[Expr, str] = {}
    for named in plain:
        for expr in named.expr.children:
            if not isinstance(expr, Literal):
                inputs.setdefault(expr, f"__input_{len(inputs)}")
    names = [*(k.name for k in plan.keys), *inputs.values(), *(n for group in columns for n in group), _SET]
    projections = []
    for number in range(0 if plain else 1, len(sets) + 1):
        row: list[Expr] = [k.expr for k in plan.keys]
        row += [e if number == 0 else Literal(None, e.dtype) for e in inputs]
        for i, arguments in enumerate(sets, start=1):
            row += [e if i == number else Literal(None, e.dtype) for e in arguments]
        projections.append((*row, Literal(number, t.INT)))
    fields = [
        pa.field(n, e.dtype, any(p[i].nullable for p in projections))
        for i, (n, e) in enumerate(zip(names, projections[0], strict=True))
    ]
    expanded = ExpandExec(child, tuple(projections), pa.schema(fields))
    renamed = []
    for named in plain:
        call = named.expr
        assert isinstance(call, AggregateCall)
        args = tuple(a if isinstance(a, Literal) else Column(inputs[a], a.dtype, True) for a in call.args)
        condition = _from_set(0)
        if call.condition is not None:
            kept = call.condition
            if not isinstance(kept, Literal):
                kept = Column(inputs[kept], kept.dtype, True)
            condition = Call.of("and", condition, kept)
        renamed.append(Named(replace(call, args=args, condition=condition), named.name))
    keys = tuple(Named(Column(k.name, k.expr.dtype, k.expr.nullable), k.name) for k in plan.keys)
    values = tuple(
        Named(Column(n, e.dtype, True), n)
        for group, arguments in zip(columns, sets, strict=True)
        for n, e in zip(group, arguments, strict=True)
    )
    return expanded, keys, tuple(renamed), (*values, Named(Column(_SET, t.INT, False), _SET))
