"""Estimates of rows and bytes, from file footers and rules of thumb; they steer strategy, never the answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kquery_spark.expr import AggregateCall, Call, Column, Expr, InList, Literal, columns_of
from kquery_spark.expr.properties import conjuncts
from kquery_spark.logical import (
    Aggregate,
    Filter,
    Input,
    Join,
    JoinKind,
    Limit,
    LogicalPlan,
    Projection,
    Scan,
    SingleRow,
    Union,
    origin,
    walk_plan,
)
from kquery_spark.logical.pruning import comparable, prune
from kquery_spark.sources.base import Source
from kquery_spark.types import names as t

_UNKNOWN_ROWS = 1_000_000.0
_ROOTS_OF_GROUPS = 10.0  # groups that handed-over keys make, in square roots of their rows
_SMALL_TABLE = 100_000.0  # its rows bound the values of its columns; of a larger one that says too little
_SELECTIVITY = {"eq": 0.05, "isnotnull": 1.0, "isnull": 0.05, "neq": 0.95} | dict.fromkeys(
    ("like", "contains", "startswith", "endswith", "rlike"), 0.1
)
# Values that a part of a date or time takes, NULL among them; few tables span more years.
_PARTS = {
    "year": 30.0,
    "quarter": 5.0,
    "month": 13.0,
    "weekofyear": 54.0,
    "dayofyear": 367.0,
    "day": 32.0,
    "dayofweek": 8.0,
    "weekday": 8.0,
    "hour": 25.0,
    "minute": 61.0,
    "second": 61.0,
}


@dataclass(frozen=True)
class Estimate:
    """Expected rows and bytes of a plan's output, and the bytes its scans decode."""

    rows: float
    nbytes: float
    scanned: float


class Estimator:
    """Estimates for one planning run; each scan's footers are looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[LogicalPlan, Estimate]] = {}

    def estimate(self, plan: LogicalPlan) -> Estimate:
        """The estimate of a plan's output."""
        found = self._known.get(id(plan))
        if found is None:
            found = self._known[id(plan)] = (plan, self._compute(plan))
        return found[1]

    def _compute(self, plan: LogicalPlan) -> Estimate:
        width = row_width(plan.schema)
        if isinstance(plan, Scan):
            return self._scan(plan, width)
        inputs = [self.estimate(c) for c in plan.children]
        scanned = sum(i.scanned for i in inputs)
        rows = inputs[0].rows if inputs else _UNKNOWN_ROWS
        match plan:
            case Input() if plan.rows is not None:
                rows = plan.rows
            case Filter():
                rows *= selectivity(plan.condition)
            case Aggregate():
                rows = self.groups(plan)
            case Join():
                rows = self._join(plan, inputs)
            case Limit() if plan.count is not None:
                rows = min(rows, float(plan.count))
            case SingleRow():
                rows = min(rows, 1.0)
            case Union():
                rows = sum(i.rows for i in inputs)
        return Estimate(rows, rows * width, scanned)

    def _scan(self, plan: Scan, width: float) -> Estimate:
        splits = prune(plan.source, plan.filters)
        kept = float(sum(s.rows for s in splits))
        whole = plan.source.row_count()
        read = plan.schema.names if plan.source.columnar else plan.source.schema.names
        columns = [*read, *columns_of(*plan.filters)]
        scanned = plan.source.column_bytes(list(dict.fromkeys(columns)))
        if whole:
            scanned = int(scanned * kept / whole)
        rows = kept
        for condition in plan.filters:
            rows *= selectivity(condition)
        return Estimate(rows, rows * width, scanned)

    def groups(self, plan: Aggregate) -> float:
        """Expected number of groups: at most the product of the keys' value counts; of one table's keys, its rows."""
        rows = self.estimate(plan.child).rows
        combinations: dict[int, float] = {}
        for key in plan.keys:
            values = self.distinct(plan.child, key.expr) or self._guessed_groups(plan.child, key.expr, rows)
            found = origin(plan.child, key.expr)
            table = id(key) if found is None else id(found[0])
            most = None if found is None else found[0].source.row_count()
            product = combinations.get(table, 1.0) * values
            combinations[table] = product if most is None else min(product, float(most) + 1.0)
        return max(1.0, min(math.prod(combinations.values()), rows))

    def _guessed_groups(self, plan: LogicalPlan, key: Expr, rows: float) -> float:
        """Of a key whose values nothing tells of: half of the rows; of one that is handed over, few of those at most."""
        inputs = [_handed_over(plan, name) for name in columns_of(key)]
        if not inputs or any(found is None for found in inputs):
            return max(rows * 0.5, 1.0)
        handed = max(self.estimate(found).rows for found in inputs if found is not None)
        return max(1.0, min(handed, _ROOTS_OF_GROUPS * math.sqrt(handed)))

    def distinct(self, plan: LogicalPlan, expr: Expr) -> float | None:
        """Upper bound on the number of different values before any filter, where types or statistics tell."""
        if expr.dtype == t.BOOL:
            return 3.0
        if not isinstance(expr, Column):
            return self._computed_distinct(plan, expr)
        match plan:
            case Scan():
                return _scan_distinct(plan.source, expr.name)
            case Projection():
                inner = next((e.expr for e in plan.exprs if e.name == expr.name), None)
                return None if inner is None else self.distinct(plan.child, inner)
            case Aggregate():
                key = next((k.expr for k in plan.keys if k.name == expr.name), None)
                return self._counts(plan, expr.name) if key is None else self.distinct(plan.child, key)
        for child in plan.children:
            if expr.name in child.schema.names:
                return self.distinct(child, expr)
        return None

    def _counts(self, plan: Aggregate, name: str) -> float | None:
        """Of counts that add up to n at most, d different ones add up to 1 + 2 + ... + d at least; 0 comes on top."""
        call = next(e.expr for e in plan.aggregates if e.name == name)
        if not isinstance(call, AggregateCall) or call.function != "count":
            return None
        return math.sqrt(2.0 * self.estimate(plan.child).rows) + 1.0

    def _computed_distinct(self, plan: LogicalPlan, expr: Expr) -> float | None:
        """At most one value for each combination of those of its columns; parts of dates have fewer."""
        if isinstance(expr, Literal):
            return 1.0
        if isinstance(expr, Call) and expr.function in _PARTS:
            return _PARTS[expr.function]
        counts = [self.distinct(plan, plan.column(name)) for name in columns_of(expr)]
        known = [c for c in counts if c is not None]
        return math.prod(known) if known and len(known) == len(counts) else None

    def _join(self, plan: Join, inputs: list[Estimate]) -> float:
        left, right = inputs[0].rows, inputs[1].rows
        if plan.kind is JoinKind.SEMI:
            return left * min(self.share(plan.right, [k.right for k in plan.keys]), 0.5)
        if plan.kind is JoinKind.ANTI:
            return left * 0.5
        if plan.kind is JoinKind.EXISTENCE:
            return left
        pairs = self.matches(left, right, [(plan.left, k.left, plan.right, k.right) for k in plan.keys])
        if plan.condition is not None:
            pairs *= selectivity(plan.condition)
        if plan.kind in (JoinKind.LEFT, JoinKind.FULL):
            pairs = max(pairs, left)
        if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
            pairs = max(pairs, right)
        return pairs

    def share(self, plan: LogicalPlan, keys: Sequence[Expr]) -> float:
        """Of the values that ``keys`` could have, the share that the plan's rows have: 0 to 1, 1 where nothing is known.

        Rows are taken to be spread evenly over the values: of d values, n rows have d * (1 - exp(-n / d)).
        """
        counts = [self.distinct(plan, k) for k in keys]
        known = [c for c in counts if c is not None]
        if not known or len(known) < len(counts):
            return 1.0
        values = min(math.prod(known), max(self._unfiltered(plan), 1.0))
        return 1.0 - math.exp(-self.estimate(plan).rows / values)

    def _unfiltered(self, plan: LogicalPlan) -> float:
        """Rows of the largest scan."""
        scans = [node.source for node in walk_plan(plan) if isinstance(node, Scan)]
        return max((float(sum(s.rows for s in source.splits())) for source in scans), default=_UNKNOWN_ROWS)

    def matches(
        self, left: float, right: float, keys: Sequence[tuple[LogicalPlan, Expr, LogicalPlan, Expr]]
    ) -> float:
        """Expected pairs of an inner join: each key divides by its value count on the side that has fewer.

        The side with fewer values is the referenced one of a foreign key; a second key is worth the root of its count.
        Rows whose key is outside of the other side's values (days of a calendar on which nothing was sold) have no pair.
        """
        if not keys:
            return left * right
        counts = []
        for left_plan, left_key, right_plan, right_key in keys:
            inside = _overlap((left_plan, left_key), (right_plan, right_key))
            left, right = left * inside[0], right * inside[1]
            known = [
                c for c in (self.distinct(left_plan, left_key), self.distinct(right_plan, right_key)) if c
            ]
            fewer = max(min(left, right), 1.0)
            count = min(known) if known else fewer
            if any(_is_handed_over(*side) for side in ((left_plan, left_key), (right_plan, right_key))):
                count = max(
                    count, fewer
                )  # nothing is known of the side: taken to be the one end of a foreign key
            counts.append(count)
        counts.sort(reverse=True)
        divisor = counts[0]
        for count in counts[1:]:
            divisor *= math.sqrt(count)
        divisor = max(
            counts[0], min(divisor, left, right)
        )  # a pair of keys has no more values than a side has rows
        return max(left * right / divisor, 1.0)


def _handed_over(plan: LogicalPlan, name: str) -> Input | None:
    """The hand-over that a column is copied from; None for what is read or computed."""
    match plan:
        case Input():
            return plan
        case Projection():
            inner = next((e.expr for e in plan.exprs if e.name == name), None)
            return _handed_over(plan.child, inner.name) if isinstance(inner, Column) else None
        case Aggregate():
            inner = next((k.expr for k in plan.keys if k.name == name), None)
            return _handed_over(plan.child, inner.name) if isinstance(inner, Column) else None
    child = next((c for c in plan.children if name in c.schema.names), None)
    return None if child is None else _handed_over(child, name)


def _is_handed_over(plan: LogicalPlan, key: Expr) -> bool:
    names = columns_of(key)
    return bool(names) and all(_handed_over(plan, name) is not None for name in names)


def _scan_distinct(source: Source, name: str) -> float | None:
    """Upper bound on the number of a column's values, at most one a row and NULL."""
    return source.once(("distinct", name), lambda: _find_distinct(source, name))


def _find_distinct(source: Source, name: str) -> float | None:
    rows = float(sum(s.rows for s in source.splits()))
    found = _distinct_by_statistics(source, name)
    if found is None and rows > _SMALL_TABLE:
        return None
    return max(1.0, rows + 1.0 if found is None else min(found, rows + 1.0))


def _span(scan: Scan, name: str) -> tuple[int, int] | None:
    """The smallest and the largest value of a column of whole numbers or dates, where all footers tell."""
    low, high = _limits(scan.source, name)
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def _overlap(*sides: tuple[LogicalPlan, Expr]) -> tuple[float, float]:
    """Of each side's range of values, the share that is in the other's range, too; 1 where ranges are not known."""
    spans = [None if found is None else _span(*found) for found in (origin(*side) for side in sides)]
    if spans[0] is None or spans[1] is None:
        return 1.0, 1.0
    (low, high), (other_low, other_high) = spans[0], spans[1]
    shared = max(min(high, other_high) - max(low, other_low) + 1, 0)
    return shared / (high - low + 1), shared / (other_high - other_low + 1)


def _limits(source: Source, name: str) -> tuple[Any, Any]:
    """The smallest and the largest value in the form that literals have; None, None where a footer does not tell."""
    return source.once(("limits", name), lambda: _find_limits(source, name))


def _find_limits(source: Source, name: str) -> tuple[Any, Any]:
    ranges = [source.ranges(s, name) for s in source.splits()]
    dtype = source.schema.field(name).type
    lows: list[Any] = [None if r is None or r.low is None else comparable(r.low, dtype) for r in ranges]
    highs: list[Any] = [None if r is None or r.high is None else comparable(r.high, dtype) for r in ranges]
    if not ranges or any(x is None for x in (*lows, *highs)):
        return None, None
    return min(lows), max(highs)


def _distinct_by_statistics(source: Source, name: str) -> float | None:
    splits = source.splits()
    if not splits:
        return 1.0
    dtype = source.schema.field(name).type
    low, high = _limits(source, name)
    if low is None:
        return None
    if isinstance(low, int) and isinstance(high, int):
        return float(high - low + 2)
    if isinstance(low, bytes) and isinstance(high, bytes) and len(low) <= 1 and len(high) <= 1:
        return 257.0
    per_value = source.column_bytes([name]) / max(sum(s.rows for s in splits), 1)
    return 1000.0 if dtype == t.STRING and per_value < 1.5 else None


def selectivity(expr: Expr) -> float:
    """Expected share of rows that pass."""
    share = 1.0
    for term in conjuncts(expr):
        if isinstance(term, InList):
            share *= min(0.05 * len(term.values), 0.5)
        elif isinstance(term, Call):
            share *= _SELECTIVITY.get(term.function, 0.4)
        else:
            share *= 0.5
    return max(share, 0.001)


def stored_widths(plan: LogicalPlan) -> list[float]:
    """Expected bytes of each output column's value; strings copied from files by what they take there."""
    return [_stored_width(plan, f) for f in plan.schema]


def _stored_width(plan: LogicalPlan, field: pa.Field) -> float:
    found = origin(plan, Column(field.name, field.type)) if field.type == t.STRING else None
    rows = None if found is None else found[0].source.row_count()
    if found is None or not rows:
        return _width(field.type)
    return found[0].source.column_bytes([found[1]]) / rows


def row_width(schema: pa.Schema) -> float:
    """Expected bytes of a row in memory."""
    return sum(_width(f.type) for f in schema) + 1.0


def _width(dtype: pa.DataType) -> float:
    if t.is_decimal(dtype):
        return 8.0
    try:
        return max(float(dtype.bit_width) / 8, 1.0)
    except ValueError:
        return 24.0
