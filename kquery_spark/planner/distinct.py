"""Plans DISTINCT aggregates in two levels: first one row per group and distinct value, then one row per group.

``SELECT k, count(DISTINCT v), sum(x) FROM t GROUP BY k``:

    t: k v x          first level: by k, v           second level: by k
       a 1 10           a 1  sum(x) state 30           a  count(v) = 2, sum(x) = 60
       a 1 20           a 2  sum(x) state 30
       a 2 30

On the second level each value occurs once, so DISTINCT can be dropped there. The aggregates without DISTINCT are computed as
states on the first level, and their states are merged on the second.

Different DISTINCT arguments (``count(DISTINCT v), count(DISTINCT w)``) need different first levels. An Expand repeats each
row once per argument, with NULLs for the other arguments and with the number of the argument in the column ``__set``. The
aggregates without DISTINCT get a repetition of their own, with the number 0:

    k v w x   ->   k  __input_0  __distinct_0_0  __distinct_1_0  __set
    a 1 5 10       a  10         NULL            NULL            0
                   a  NULL       1               NULL            1
                   a  NULL       NULL            5               2

The first level groups by ``k``, all value columns and ``__set``; on the second level each call only takes the rows of its
set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from kquery_spark.expr import AggregateCall, Call, Case, Column, Expr, Literal, Named
from kquery_spark.logical import Aggregate
from kquery_spark.physical.grouping.key_values import check_key_type
from kquery_spark.physical.operators import AggregateExec, ExpandExec, Phase, PhysicalPlan
from kquery_spark.types import names as t

_SET = "__set"
_OTHER_AGGREGATES_ID = 0  # the value of __set for the rows of the aggregates without DISTINCT

Arguments = tuple[Expr, ...]


@dataclass(frozen=True)
class TwoLevels:
    """The operators of both levels, between which the caller places exchanges.

    ``first`` returns states grouped by ``keys`` and ``values``. ``second`` takes its rows after an exchange and returns
    states grouped by ``keys``. ``last`` turns these into results, possibly after another exchange.
    """

    first: PhysicalPlan
    keys: tuple[Column, ...]
    values: tuple[Column, ...]
    second: Callable[[PhysicalPlan], PhysicalPlan]
    last: Callable[[PhysicalPlan], PhysicalPlan]


@dataclass(frozen=True)
class _FirstLevel:
    """The first level groups ``child`` by ``keys`` and ``values``. ``plain`` are the aggregates without DISTINCT."""

    child: PhysicalPlan
    keys: tuple[Named, ...]
    values: tuple[Named, ...]
    plain: tuple[Named, ...]


def two_levels(plan: Aggregate, child: PhysicalPlan) -> TwoLevels | None:
    """Return the two levels over ``child``; None if a DISTINCT call cannot be split."""
    distinct = [call for call in plan.calls if call.is_distinct]
    # A FILTER turns values into NULL (see _arguments), which is wrong for functions that do not ignore NULL.
    if any(call.condition is not None and call.entry.keeps_nulls for call in distinct):
        return None
    # With a single value set, the first level computes sums per distinct value. Spark does so only in the case of
    # ``sums_by_distinct_value``. In other cases, such a partial sum could overflow here but not in Spark.
    if _can_lose_sums(plan) and not sums_by_distinct_value(plan) and len(set(map(_arguments, distinct))) == 1:
        return None
    sets = _ValueSets(distinct)
    level = sets.first_level(plan, child)
    second_calls = _second_level_calls(plan, level.plain, sets)
    keys, values = _columns(level.keys), _columns(level.values)

    # The rows come from several tasks, so a value may occur once per task. Merging by key and value leaves each value once,
    # so that the second level can count it. In phase MIXED, DISTINCT calls aggregate values, and the others merge states.
    def second(read: PhysicalPlan) -> PhysicalPlan:
        merged = AggregateExec(read, _named(keys + values), level.plain, Phase.MERGE)
        return AggregateExec(merged, _named(keys), second_calls, Phase.MIXED)

    def last(read: PhysicalPlan) -> PhysicalPlan:
        return AggregateExec(read, _named(keys), second_calls, Phase.FINAL)

    first = AggregateExec(level.child, level.keys + level.values, level.plain, Phase.PARTIAL)
    return TwoLevels(first, keys, values, second, last)


def sums_by_distinct_value(plan: Aggregate) -> bool:
    """True if Spark first sums up each distinct value, and such a partial sum can overflow even if the total does not.

    Spark does so if all DISTINCT calls have the same arguments and no FILTER (AggUtils.planAggregateWithOneDistinct);
    otherwise it repeats the rows instead (RewriteDistinctAggregates).
    """
    distinct = [call for call in plan.calls if call.is_distinct]
    arguments = {call.args for call in distinct}
    return len(arguments) == 1 and all(call.condition is None for call in distinct) and _can_lose_sums(plan)


def _can_lose_sums(plan: Aggregate) -> bool:
    return any(call.can_lose_partial_sums and not call.is_distinct for call in plan.calls)


class _ValueSets:
    """The different argument lists of DISTINCT calls (value sets). Each has its own columns on the first level."""

    def __init__(self, distinct: Iterable[AggregateCall]) -> None:
        self._sets = list(dict.fromkeys(map(_arguments, distinct)))
        for expr in (e for arguments in self._sets for e in arguments):
            check_key_type(expr.dtype)

    def first_level(self, plan: Aggregate, child: PhysicalPlan) -> _FirstLevel:
        """Group the child itself if there is one set, otherwise an Expand that repeats the child's rows for each set."""
        plain = tuple(n for n in plan.aggregates if not _is_distinct(n.expr))
        # One set needs no Expand: the first level groups by the keys and the values themselves.
        if len(self._sets) == 1:
            values = tuple(map(Named, self._sets[0], self._names(0)))
            return _FirstLevel(child, plan.keys, values, plain)
        inputs = _inputs(plain)
        return _FirstLevel(
            self._expand(plan, child, inputs, with_plain=bool(plain)),
            tuple(Named(Column(k.name, k.expr.dtype, k.expr.nullable), k.name) for k in plan.keys),
            (*_named(self._value_columns()), Named(Column(_SET, t.INT, False), _SET)),
            tuple(_plain_over_expand(named, inputs) for named in plain),
        )

    def without_distinct(self, call: AggregateCall) -> AggregateCall:
        """Return a DISTINCT call for the second level, where DISTINCT is not needed because each value occurs once."""
        index = self._sets.index(_arguments(call))
        args = tuple(self._columns_of(index))
        condition = None if len(self._sets) == 1 else _is_from_set(index + 1)
        return replace(call, args=args, distinct=False, condition=condition)

    def _names(self, index: int) -> list[str]:
        return [f"__distinct_{index}_{i}" for i in range(len(self._sets[index]))]

    def _columns_of(self, index: int) -> Iterator[Column]:
        for name, expr in zip(self._names(index), self._sets[index], strict=True):
            yield Column(name, expr.dtype, True)

    def _value_columns(self) -> tuple[Column, ...]:
        return tuple(column for index in range(len(self._sets)) for column in self._columns_of(index))

    def _expand(
        self, plan: Aggregate, child: PhysicalPlan, inputs: dict[Expr, Column], with_plain: bool
    ) -> ExpandExec:
        """Repeat each row for each set, and for the aggregates without DISTINCT if ``with_plain``."""
        numbers = range(_OTHER_AGGREGATES_ID if with_plain else 1, len(self._sets) + 1)
        projections = [self._projection(plan, list(inputs), number) for number in numbers]
        columns = [*(k.column for k in plan.keys), *inputs.values(), *self._value_columns()]
        names = [*(c.name for c in columns), _SET]
        fields = [
            pa.field(name, exprs[0].dtype, any(e.nullable for e in exprs))
            for name, exprs in zip(names, zip(*projections, strict=True), strict=True)
        ]
        return ExpandExec(child, tuple(projections), pa.schema(fields))

    def _projection(self, plan: Aggregate, inputs: Sequence[Expr], number: int) -> tuple[Expr, ...]:
        """Return the expressions of one repetition, which has NULLs in the columns of the others."""
        values = [
            expr
            for index, arguments in enumerate(self._sets, start=1)
            for expr in _only_if(index == number, arguments)
        ]
        keys = [k.expr for k in plan.keys]
        return (*keys, *_only_if(number == _OTHER_AGGREGATES_ID, inputs), *values, Literal(number, t.INT))


def _second_level_calls(plan: Aggregate, plain: Iterable[Named], sets: _ValueSets) -> tuple[Named, ...]:
    """Return the aggregates of the second level, in the order of the plan's."""
    by_name = {named.name: named for named in plain}
    return tuple(
        Named(sets.without_distinct(named.expr), named.name)
        if isinstance(named.expr, AggregateCall) and named.expr.is_distinct
        else by_name[named.name]
        for named in plan.aggregates
    )


def _is_distinct(expr: Expr) -> bool:
    return isinstance(expr, AggregateCall) and expr.is_distinct


def _arguments(call: AggregateCall) -> Arguments:
    """Return the arguments of a call. A FILTER becomes a CASE: values of rows that fail it are NULL, which calls ignore."""
    if call.condition is None:
        return call.args
    head, *others = call.args
    return (Case(((call.condition, head),)), *others)


def _inputs(plain: Iterable[Named]) -> dict[Expr, Column]:
    """Return the columns of the Expand that hold the arguments of the aggregates without DISTINCT, by argument."""
    exprs = (e for named in plain for e in named.expr.children if not isinstance(e, Literal))
    return {e: Column(f"__input_{i}", e.dtype, True) for i, e in enumerate(dict.fromkeys(exprs))}


def _plain_over_expand(named: Named, inputs: dict[Expr, Column]) -> Named:
    """Return an aggregate without DISTINCT over the Expand, where it only takes the rows with the set number 0."""
    call = named.expr
    assert isinstance(call, AggregateCall)
    condition = _is_from_set(_OTHER_AGGREGATES_ID)
    if call.condition is not None:
        condition = Call.of("and", condition, inputs.get(call.condition, call.condition))
    args = tuple(inputs.get(a, a) for a in call.args)
    return Named(replace(call, args=args, condition=condition), named.name)


def _only_if(condition: bool, exprs: Iterable[Expr]) -> Iterator[Expr]:
    """Yield the expressions if ``condition`` is true, otherwise NULLs of their types."""
    for expr in exprs:
        yield expr if condition else Literal(None, expr.dtype)


def _is_from_set(number: int) -> Expr:
    return Call.of("eq", Column(_SET, t.INT, False), Literal(number, t.INT))


def _columns(named: Iterable[Named]) -> tuple[Column, ...]:
    return tuple(n.column for n in named)


def _named(columns: Iterable[Column]) -> tuple[Named, ...]:
    return tuple(Named(c, c.name) for c in columns)
