"""Estimates of rows and bytes, from file footers and rules of thumb; they steer strategy, never the answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.expr import AggregateCall, Call, Column, Expr, Literal, columns_of
from kquery_spark.logical import (
    Aggregate,
    Filter,
    Input,
    Join,
    JoinKind,
    LogicalPlan,
    Scan,
    origin,
    walk_plan,
)
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.logical.plan import UNKNOWN_ROWS
from kquery_spark.logical.pruning import prune
from kquery_spark.optimizer.column_statistics import distinct_count, integer_span, total_rows
from kquery_spark.optimizer.selectivity import selectivity
from kquery_spark.types import names as t

_GROUPS_PER_SQUARE_ROOT_OF_ROWS = 10.0  # groups that keys of an Input make, in square roots of its rows
_SEMI_JOIN_ROW_SHARE = (
    0.5  # most rows that a semi join is expected to keep, and those that an anti join keeps
)

#: A plan, and an expression over its output that a join compares.
JoinSide = tuple[LogicalPlan, Expr]


@dataclass(frozen=True)
class Estimate:
    """Expected rows and bytes of a plan's output, and the bytes its scans decode."""

    rows: float
    nbytes: float
    scanned: float


class Estimator:
    """Estimates for one planning run; each scan's footers are read once."""

    def __init__(self) -> None:
        self._estimates: NodeMap[Estimate] = NodeMap()

    def estimate(self, plan: LogicalPlan) -> Estimate:
        """The estimate of a plan's output."""
        return self._estimates.setdefault(plan, lambda: self._compute(plan))

    def _compute(self, plan: LogicalPlan) -> Estimate:
        width = row_width(plan.schema)
        if isinstance(plan, Scan):
            remaining = float(sum(split.rows for split in prune(plan.source, plan.filters)))
            rows = math.prod(map(selectivity, plan.filters), start=remaining)
            return Estimate(rows, rows * width, _scanned_bytes(plan, remaining))
        inputs = [self.estimate(child) for child in plan.children]
        rows = self._rows(plan, [one.rows for one in inputs])
        return Estimate(rows, rows * width, sum(one.scanned for one in inputs))

    def _rows(self, plan: LogicalPlan, input_rows: Sequence[float]) -> float:
        match plan:
            case Filter():
                return input_rows[0] * selectivity(plan.condition)
            case Aggregate():
                return self.groups(plan)
            case Join():
                return self._joined_rows(plan, *input_rows)
        return plan.estimated_rows(input_rows)

    def groups(self, plan: Aggregate) -> float:
        """Expected number of groups: at most the product of the keys' value counts; of one table's keys, its rows."""
        rows = self.estimate(plan.child).rows
        by_table: NodeMap[float] = NodeMap()
        for key in plan.keys:
            values = self.distinct(plan.child, key.expr) or self._guessed_groups(plan.child, key.expr, rows)
            scanned = origin(plan.child, key.expr)
            most = None if scanned is None else scanned[0].source.row_count()
            table = key if scanned is None else scanned[0]
            product = by_table.setdefault(table, lambda: 1.0) * values
            by_table[table] = product if most is None else min(product, float(most) + 1.0)
        combinations = math.prod(by_table[table] for table in by_table)
        return max(1.0, min(combinations, rows))

    def _guessed_groups(self, plan: LogicalPlan, key: Expr, rows: float) -> float:
        """Groups by a key without statistics: half of the rows; by columns of an Input, few of its rows at most."""
        inputs = [_input_behind(plan, name) for name in columns_of(key)]
        if not inputs or any(one is None for one in inputs):
            return max(rows * 0.5, 1.0)
        input_rows = max(self.estimate(one).rows for one in inputs if one is not None)
        return max(1.0, min(input_rows, _GROUPS_PER_SQUARE_ROOT_OF_ROWS * math.sqrt(input_rows)))

    def distinct(self, plan: LogicalPlan, expr: Expr) -> float | None:
        """Upper bound on the number of different values before any filter; None if no type and no statistics bound it."""
        if expr.dtype == t.BOOL:
            return 3.0
        if not isinstance(expr, Column):
            return self._computed_distinct(plan, expr)
        if isinstance(plan, Scan):
            return distinct_count(plan.source, expr.name)
        if isinstance(plan, Aggregate) and not _is_key(plan, expr.name):
            return self._distinct_counts(plan, expr.name)
        below = _copied_from(plan, expr)
        return None if below is None else self.distinct(*below)

    def _distinct_counts(self, plan: Aggregate, name: str) -> float | None:
        """Of counts that add up to n at most, d different ones add up to 1 + 2 + ... + d at least; 0 comes on top."""
        call = next(e.expr for e in plan.aggregates if e.name == name)
        if not isinstance(call, AggregateCall) or call.function != "count":
            return None
        return math.sqrt(2.0 * self.estimate(plan.child).rows) + 1.0

    def _computed_distinct(self, plan: LogicalPlan, expr: Expr) -> float | None:
        """At most one value for each combination of those of its columns; parts of dates have fewer."""
        if isinstance(expr, Literal):
            return 1.0
        if isinstance(expr, Call) and expr.entry.distinct_values is not None:
            return expr.entry.distinct_values
        counts = [self.distinct(plan, plan.column(name)) for name in columns_of(expr)]
        known = [c for c in counts if c is not None]
        return math.prod(known) if known and len(known) == len(counts) else None

    def _joined_rows(self, plan: Join, left: float, right: float) -> float:
        match plan.kind:
            case JoinKind.SEMI:
                return left * min(self.share(plan.right, [k.right for k in plan.keys]), _SEMI_JOIN_ROW_SHARE)
            case JoinKind.ANTI:
                return left * _SEMI_JOIN_ROW_SHARE
            case JoinKind.EXISTENCE:
                return left
        pairs = self.matches(left, right, [(plan.left, k.left, plan.right, k.right) for k in plan.keys])
        if plan.condition is not None:
            pairs *= selectivity(plan.condition)
        if plan.kind.pads_right:
            pairs = max(pairs, left)
        if plan.kind.pads_left:
            pairs = max(pairs, right)
        return pairs

    def share(self, plan: LogicalPlan, keys: Sequence[Expr]) -> float:
        """Of the values that ``keys`` could have, the share that the plan's rows have: 0 to 1, 1 if nothing is known.

        Rows are taken to be spread evenly over the values: of d values, n rows have d * (1 - exp(-n / d)).
        """
        counts = [self.distinct(plan, k) for k in keys]
        known = [c for c in counts if c is not None]
        if not known or len(known) < len(counts):
            return 1.0
        values = min(math.prod(known), max(_largest_scan_rows(plan), 1.0))
        return 1.0 - math.exp(-self.estimate(plan).rows / values)

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
            left_side, right_side = (left_plan, left_key), (right_plan, right_key)
            left_share, right_share = _overlap(left_side, right_side)
            left, right = left * left_share, right * right_share
            counts.append(self._key_values(left_side, right_side, max(min(left, right), 1.0)))
        counts.sort(reverse=True)
        product = math.prod(map(math.sqrt, counts[1:]), start=counts[0])
        # a combination of keys has no more values than a side has rows
        divisor = max(counts[0], min(product, left, right))
        return max(left * right / divisor, 1.0)

    def _key_values(self, left: JoinSide, right: JoinSide, fewer_rows: float) -> float:
        """Values of a join key on the side that has fewer; ``fewer_rows`` are those of the smaller side."""
        counts = [count for count in (self.distinct(*left), self.distinct(*right)) if count]
        values = min(counts) if counts else fewer_rows
        # nothing is known of an Input: it is taken to be the one end of a foreign key
        return max(values, fewer_rows) if _is_from_input(*left) or _is_from_input(*right) else values


def _scanned_bytes(scan: Scan, remaining_rows: float) -> float:
    """Bytes that a scan decodes of the splits that statistics do not rule out."""
    source = scan.source
    read = scan.schema.names if source.columnar else source.schema.names
    nbytes = source.column_bytes(list(dict.fromkeys([*read, *columns_of(*scan.filters)])))
    all_rows = source.row_count()
    return int(nbytes * remaining_rows / all_rows) if all_rows else nbytes


def _largest_scan_rows(plan: LogicalPlan) -> float:
    """Rows of the largest scan, before its filters."""
    scans = (node for node in walk_plan(plan) if isinstance(node, Scan))
    return max((total_rows(scan.source) for scan in scans), default=UNKNOWN_ROWS)


def _is_key(plan: Aggregate, name: str) -> bool:
    return any(key.name == name for key in plan.keys)


def _copied_from(plan: LogicalPlan, column: Column) -> JoinSide | None:
    """The input, and the expression over it, that a column has its values from; of several inputs one that has its name."""
    return plan.trace_to_input(column) or next(
        ((child, column) for child in plan.children if column.name in child.column_names), None
    )


def _input_behind(plan: LogicalPlan, name: str) -> Input | None:
    """The Input that a column is copied from; None if it is read from files or computed."""
    if isinstance(plan, Input):
        return plan
    if isinstance(plan, Aggregate) and not _is_key(plan, name):
        return None
    below = _copied_from(plan, plan.column(name))
    if below is None or not isinstance(below[1], Column):
        return None
    return _input_behind(below[0], below[1].name)


def _is_from_input(plan: LogicalPlan, key: Expr) -> bool:
    """Whether all columns of a key are copied from an Input."""
    names = columns_of(key)
    return bool(names) and all(_input_behind(plan, name) is not None for name in names)


def _overlap(*sides: JoinSide) -> tuple[float, float]:
    """Of each side's range of values, the share that is in the other's range, too; 1 if ranges are not known."""
    scanned = [origin(*side) for side in sides]
    spans = [None if one is None else integer_span(one[0].source, one[1]) for one in scanned]
    if spans[0] is None or spans[1] is None:
        return 1.0, 1.0
    (low, high), (other_low, other_high) = spans[0], spans[1]
    shared = max(min(high, other_high) - max(low, other_low) + 1, 0)
    return shared / (high - low + 1), shared / (other_high - other_low + 1)


def stored_widths(plan: LogicalPlan) -> list[float]:
    """Expected bytes of each output column's value; strings copied from files by what they take there."""
    return [_stored_width(plan, f) for f in plan.schema]


def _stored_width(plan: LogicalPlan, field: pa.Field) -> float:
    scanned = origin(plan, Column(field.name, field.type)) if field.type == t.STRING else None
    rows = None if scanned is None else scanned[0].source.row_count()
    if scanned is None or not rows:
        return _width(field.type)
    return scanned[0].source.column_bytes([scanned[1]]) / rows


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
