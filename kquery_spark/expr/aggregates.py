"""An aggregate function applied to arguments, inside an Aggregate or a Window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr.nodes import Case, Column, Expr
from kquery_spark.expr.properties import can_raise
from kquery_spark.functions.aggregate_registry import AggregateFunction, aggregate_function
from kquery_spark.functions.registry import EvalMode
from kquery_spark.kernels.ordered_bytes import has_floats
from kquery_spark.types import names as t
from kquery_spark.types.decimals import MAX_PRECISION


@dataclass(frozen=True)
class AggregateCall(Expr):
    """``function(DISTINCT args) FILTER (WHERE condition)``; build it with ``AggregateCall.of``."""

    function: str
    args: tuple[Expr, ...]
    type: pa.DataType
    distinct: bool = False
    condition: Expr | None = None
    mode: EvalMode = EvalMode.ANSI

    @classmethod
    def of(
        cls,
        name: str,
        *args: Expr,
        distinct: bool = False,
        condition: Expr | None = None,
        mode: EvalMode = EvalMode.ANSI,
        dtype: pa.DataType | None = None,
    ) -> AggregateCall:
        """Build a call whose type the registry derives; raises PlanError for a wrong arity or argument type.

        As in Spark, an argument that can raise is not evaluated for rows that the condition excludes, except for DISTINCT.
        """
        entry = aggregate_function(name)
        entry.check_arity(len(args))
        derived = entry.result([a.dtype for a in args]) if dtype is None else dtype
        if condition is not None and not distinct:
            args = tuple(Case(((condition, a),)) if can_raise(a) else a for a in args)
        return cls(entry.name, args, derived, distinct, condition, mode)

    @property
    def entry(self) -> AggregateFunction:
        """The registry entry."""
        return aggregate_function(self.function)

    @property
    def is_distinct(self) -> bool:
        """Whether DISTINCT matters to the call: a group's rows must be seen together then."""
        return self.distinct and not self.entry.duplicate_free

    @property
    def can_lose_partial_sums(self) -> bool:
        """True if the sum of a part of a group may exceed 38 digits, which makes the sum of the group NULL, too."""
        return self.entry.adds and t.is_decimal(self.args[0].dtype) and not _sum_fits(self.args[0].dtype)

    @property
    def is_mergeable(self) -> bool:
        """True if the results of a group's parts, merged in any order, are the result of its rows, but for rounding.

        False if the result depends on the order of rows, even only for 0.0 and -0.0 (MIN and MAX return the first one).
        """
        depends_on_order = self.entry.ordered or (bool(self.entry.extreme) and has_floats(self.args[0].dtype))
        return not depends_on_order and not self.can_lose_partial_sums

    @property
    def raises(self) -> bool:
        """Whether some rows can make the call raise, so that even a group outside the result must be computed."""
        if self.entry.raises or any(map(can_raise, self.children)):
            return True
        if self.mode is not EvalMode.ANSI or not self.entry.adds:
            return False
        as_doubles = self.entry.adds_as_doubles
        return not all(_sum_fits(a.dtype) or (as_doubles and a.dtype == t.LONG) for a in self.args)

    @property
    def default_alias(self) -> str | None:
        """What Spark calls the column of a call whose arguments are columns (``max(salary)``); None for others."""
        if self.condition is not None or not all(isinstance(a, Column) for a in self.args):
            return None
        inner = ", ".join(a.name for a in self.args if isinstance(a, Column)) or "1"
        return f"{self.function}({'DISTINCT ' if self.distinct else ''}{inner})"

    @property
    @override
    def dtype(self) -> pa.DataType:
        return self.type

    @property
    @override
    def nullable(self) -> bool:
        return self.entry.nullable

    @property
    @override
    def children(self) -> tuple[Expr, ...]:
        return self.args if self.condition is None else (*self.args, self.condition)

    @override
    def with_children(self, children: Sequence[Expr]) -> Expr:
        if self.condition is None:
            return replace(self, args=tuple(children))
        return replace(self, args=tuple(children[:-1]), condition=children[-1])

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.args)) or "*"
        text = f"{self.function.upper()}({'DISTINCT ' if self.distinct else ''}{inner})"
        return text if self.condition is None else f"{text} FILTER (WHERE {self.condition})"


def _sum_fits(dtype: pa.DataType) -> bool:
    """Return whether sums cannot overflow: for integers below bigint, floats, and decimals with ten spare digits."""
    if t.is_decimal(dtype):
        return bool(dtype.precision <= MAX_PRECISION - 10)
    return dtype in (t.BYTE, t.SHORT, t.INT) or t.is_fractional(dtype)
