"""Cardinality estimates: the expected rows and bytes of each plan, from file footers and rules of thumb.

Estimates choose join orders, build sides and numbers of tasks. They never change the result. The model in short:

- A scan has the rows of the splits that statistics do not rule out, times the selectivity of its filters.
- An aggregate has as many rows as its keys have combinations of values, but no more than its input.
- An inner join of L and R rows on a key has L * R / NDV pairs. NDV is the number of distinct values of the key, on the side
  that has fewer.

Example: 6,000,000 lines join 150,000 filtered orders (of 1,500,000) by the order key. The key has 1,500,000 values on both
sides, so the estimate is 6,000,000 * 150,000 / 1,500,000 = 600,000 rows: a tenth of the lines, because a tenth of the
orders is left.
"""

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

# Grouping an Input of n rows by an unknown key is expected to give 10 * sqrt(n) groups: 10,000 for a million rows.
_GROUPS_PER_SQUARE_ROOT_OF_ROWS = 10.0
# A semi join is expected to keep at most this share of its rows, and an anti join exactly this share.
_SEMI_JOIN_ROW_SHARE = 0.5

#: One side of a join key: a plan, and an expression over its output.
JoinSide = tuple[LogicalPlan, Expr]


@dataclass(frozen=True)
class Estimate:
    """The expected rows and bytes of a plan's output, and the bytes that all scans below it decode (``scanned``)."""

    rows: float
    nbytes: float
    scanned: float


class Estimator:
    """Computes and caches estimates for one planning run; the footers of each scan are read once."""

    def __init__(self) -> None:
        self._estimates: NodeMap[Estimate] = NodeMap()

    def estimate(self, plan: LogicalPlan) -> Estimate:
        """Return the estimate of a plan's output."""
        return self._estimates.setdefault(plan, lambda: self._compute(plan))

    def _compute(self, plan: LogicalPlan) -> Estimate:
        width = row_width(plan.schema)
        if isinstance(plan, Scan):
            # A filter that prunes splits counts twice, once by pruning and once by its selectivity.
            remaining = float(sum(split.rows for split in prune(plan.source, plan.filters)))
            rows = math.prod(map(selectivity, plan.filters), start=remaining)
            return Estimate(rows, rows * width, _scanned_bytes(plan, remaining))
        inputs = [self.estimate(child) for child in plan.children]
        rows = self._rows(plan, [estimate.rows for estimate in inputs])
        return Estimate(rows, rows * width, sum(estimate.scanned for estimate in inputs))

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
        """Return the expected number of groups: the product of the keys' distinct values, but no more than the input's rows.

        Keys from the same table have no more combinations than the table has rows. Grouping 6,000,000 lines by the
        customer's key (15,000 values) and name (15,000 values) gives 15,001 groups, not 15,000 * 15,000.
        """
        rows = self.estimate(plan.child).rows
        by_table: NodeMap[float] = NodeMap()
        for key in plan.keys:
            values = self.distinct(plan.child, key.expr) or self._guess_groups(plan.child, key.expr, rows)
            scanned = origin(plan.child, key.expr)
            table_rows = None if scanned is None else scanned[0].source.row_count()
            table = key if scanned is None else scanned[0]
            product = by_table.setdefault(table, lambda: 1.0) * values
            by_table[table] = product if table_rows is None else min(product, float(table_rows) + 1.0)
        combinations = math.prod(by_table[table] for table in by_table)
        return max(1.0, min(combinations, rows))

    def _guess_groups(self, plan: LogicalPlan, key: Expr, rows: float) -> float:
        """Guess the groups of a key without statistics: half of the rows, or ``10 * sqrt(rows)`` for columns of an Input."""
        inputs = [_input_of_column(plan, name) for name in columns_of(key)]
        if not inputs or any(node is None for node in inputs):
            return max(rows * 0.5, 1.0)
        input_rows = max(self.estimate(node).rows for node in inputs if node is not None)
        return max(1.0, min(input_rows, _GROUPS_PER_SQUARE_ROOT_OF_ROWS * math.sqrt(input_rows)))

    def distinct(self, plan: LogicalPlan, expr: Expr) -> float | None:
        """Return an upper bound on the number of distinct values before any filter; None if nothing bounds it."""
        if expr.dtype == t.BOOL:
            return 3.0  # TRUE, FALSE and NULL
        if not isinstance(expr, Column):
            return self._computed_distinct(plan, expr)
        if isinstance(plan, Scan):
            return distinct_count(plan.source, expr.name)
        # The output of an aggregate call is a new column. Only counts have a bound.
        if isinstance(plan, Aggregate) and not _is_key(plan, expr.name):
            return self._distinct_counts(plan, expr.name)
        below = _source_of_column(plan, expr)
        return None if below is None else self.distinct(*below)

    def _distinct_counts(self, plan: Aggregate, name: str) -> float | None:
        """Bound the distinct values of a COUNT over n rows by ``sqrt(2 * n) + 1``.

        The counts of all groups add up to at most n, and d different positive counts add up to at least 1 + 2 + ... + d,
        about d * d / 2. So d is at most sqrt(2 * n). The count 0 is possible as well.
        """
        call = next(e.expr for e in plan.aggregates if e.name == name)
        if not isinstance(call, AggregateCall) or not call.entry.counts:
            return None
        return math.sqrt(2.0 * self.estimate(plan.child).rows) + 1.0

    def _computed_distinct(self, plan: LogicalPlan, expr: Expr) -> float | None:
        """Bound the values of an expression by the combinations of its columns' values; ``month(d)`` has its own bound."""
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
        # An outer join outputs every row of a preserved side at least once.
        if plan.kind.pads_right:
            pairs = max(pairs, left)
        if plan.kind.pads_left:
            pairs = max(pairs, right)
        return pairs

    def share(self, plan: LogicalPlan, keys: Sequence[Expr]) -> float:
        """Return the share of all possible values of ``keys`` that the plan's rows contain; 1 if nothing is known.

        Assuming that rows are spread evenly over d values, n rows contain d * (1 - exp(-n / d)) of them. For example, 500 of
        1,000 orders are expected to contain 1 - exp(-500 / 1000), about 39 %, of 1,000 customers.
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
        """Return the expected number of pairs of an inner join: left * right divided by the number of key values.

        - One key divides by the smaller number of values (NDV) of both sides, which is usually that of the primary key.
        - Keys of a multi-column join are correlated, so further keys count with the square root of their NDV.
        - Rows whose key is outside of the other side's range have no match. If a calendar covers 1900 to 2100 and sales 1998
          to 2002, only 5 of 201 years of the calendar take part in the join.
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
        # The combination of several keys has no more values than the smaller side has rows.
        divisor = max(counts[0], min(product, left, right))
        return max(left * right / divisor, 1.0)

    def _key_values(self, left: JoinSide, right: JoinSide, fewer_rows: float) -> float:
        """Return the number of distinct values of a join key, on the side that has fewer of them.

        fewer_rows: the number of rows of the side that has fewer rows.
        """
        counts = [count for count in (self.distinct(*left), self.distinct(*right)) if count]
        values = min(counts) if counts else fewer_rows
        # An Input has no statistics. The join is assumed to be that of a foreign key with a primary key, which has one value
        # per row.
        return max(values, fewer_rows) if _is_from_input(*left) or _is_from_input(*right) else values


def _scanned_bytes(scan: Scan, remaining_rows: float) -> float:
    """Return the bytes that a scan decodes. remaining_rows: the rows of the splits that statistics do not rule out."""
    source = scan.source
    read = scan.schema.names if source.columnar else source.schema.names
    nbytes = source.column_bytes(list(dict.fromkeys([*read, *columns_of(*scan.filters)])))
    all_rows = source.row_count()
    return int(nbytes * remaining_rows / all_rows) if all_rows else nbytes


def _largest_scan_rows(plan: LogicalPlan) -> float:
    """Return the number of rows of the largest scan in the plan, before filters."""
    scans = (node for node in walk_plan(plan) if isinstance(node, Scan))
    return max((total_rows(scan.source) for scan in scans), default=UNKNOWN_ROWS)


def _is_key(plan: Aggregate, name: str) -> bool:
    return any(key.name == name for key in plan.keys)


def _source_of_column(plan: LogicalPlan, column: Column) -> JoinSide | None:
    """Return the input that the column's values come from, and the expression over it; None if the node computes them.

    For nodes that mix inputs (Union), it is the first input with a column of this name, which is good enough for an
    estimate.
    """
    return plan.trace_to_input(column) or next(
        ((child, column) for child in plan.children if column.name in child.column_names), None
    )


def _input_of_column(plan: LogicalPlan, name: str) -> Input | None:
    """Return the Input that a column is copied from; None if the column is read from files or computed."""
    if isinstance(plan, Input):
        return plan
    if isinstance(plan, Aggregate) and not _is_key(plan, name):
        return None
    below = _source_of_column(plan, plan.column(name))
    if below is None or not isinstance(below[1], Column):
        return None
    return _input_of_column(below[0], below[1].name)


def _is_from_input(plan: LogicalPlan, key: Expr) -> bool:
    """True if all columns of a key are copied from an Input."""
    names = columns_of(key)
    return bool(names) and all(_input_of_column(plan, name) is not None for name in names)


def _overlap(*sides: JoinSide) -> tuple[float, float]:
    """Return, for each side, the share of its value range that overlaps the other side's range; 1 if a range is unknown.

    For the ranges 1 to 100 and 51 to 60, the overlap is 10 values: the shares are 0.1 and 1.0.
    """
    scanned = [origin(*side) for side in sides]
    spans = [None if column is None else integer_span(column[0].source, column[1]) for column in scanned]
    if spans[0] is None or spans[1] is None:
        return 1.0, 1.0
    (low, high), (other_low, other_high) = spans[0], spans[1]
    shared = max(min(high, other_high) - max(low, other_low) + 1, 0)
    return shared / (high - low + 1), shared / (other_high - other_low + 1)


def stored_widths(plan: LogicalPlan) -> list[float]:
    """Return the expected bytes per value of each output column. Strings that come from files are sized by their file."""
    return [_stored_width(plan, f) for f in plan.schema]


def _stored_width(plan: LogicalPlan, field: pa.Field) -> float:
    scanned = origin(plan, Column(field.name, field.type)) if field.type == t.STRING else None
    rows = None if scanned is None else scanned[0].source.row_count()
    if scanned is None or not rows:
        return _width(field.type)
    return scanned[0].source.column_bytes([scanned[1]]) / rows


def row_width(schema: pa.Schema) -> float:
    """Return the expected bytes of a row in memory."""
    return sum(_width(f.type) for f in schema) + 1.0


def _width(dtype: pa.DataType) -> float:
    if t.is_decimal(dtype):
        return 8.0  # most decimals are computed as int64
    try:
        return max(float(dtype.bit_width) / 8, 1.0)
    except ValueError:  # strings, arrays and maps have no fixed width
        return 24.0
