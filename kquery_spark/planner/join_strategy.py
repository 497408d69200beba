"""How to join: which side is built, and whether its rows meet the other's as they are read or every task computes them."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import Column, Expr, Named
from kquery_spark.expr.properties import is_deterministic
from kquery_spark.logical import (
    Aggregate,
    Filter,
    Input,
    Join,
    JoinKind,
    LogicalPlan,
    Projection,
    Scan,
    walk_plan,
)
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.optimizer.statistics import Estimator
from kquery_spark.physical.operators import BuildSide
from kquery_spark.planner.copartition import Ranges

# how much larger a semi, anti or outer join's natural build side is before the other is built
_MIN_SWAP_ROW_RATIO = 2.0
_DECODED_PER_BROADCAST_BYTE = 4  # most bytes that a replicated side may decode for each that it may have

_NONE: frozenset[str] = frozenset()


class JoinStrategy:
    """Answers for the joins of one query (``one_task``: all of it runs in one), from estimates and its key ranges."""

    def __init__(
        self, config: EngineConfig, estimator: Estimator, one_task: bool, ranges: Ranges | None
    ) -> None:
        self._ranges = ranges
        self._config = config
        self._estimator = estimator
        self._one_task = one_task
        self._ranged: NodeMap[frozenset[str]] = NodeMap()

    def replicates(self, plan: Join, build: BuildSide) -> bool:
        """Whether every task computes the built side for itself."""
        built = plan.left if build is BuildSide.LEFT else plan.right
        return not _emits_unmatched_build_rows(plan.kind, build) and self.replicable(built)

    def meets(self, plan: Join) -> bool:
        """Whether both sides are spread by the same key ranges and the join compares those keys."""
        if self._ranges is None or plan.null_aware:
            return False
        left, right = self.ranged(plan.left), self.ranged(plan.right)
        return any(is_named(k.left, left) and is_named(k.right, right) for k in plan.keys)

    def ranged(self, plan: LogicalPlan) -> frozenset[str]:
        """The output columns by whose ranges the plan's rows will be spread; empty when they will not be."""
        ranges = self._ranges
        if ranges is None:
            return _NONE
        return self._ranged.setdefault(plan, lambda: self._find_ranged(plan, ranges))

    def _find_ranged(self, plan: LogicalPlan, ranges: Ranges) -> frozenset[str]:
        match plan:
            case Scan():
                column = ranges.columns.get(plan)
                return _NONE if column is None else frozenset([column])
            case Filter():
                return self.ranged(plan.child)
            case Projection():
                return _renamed(plan.exprs, self.ranged(plan.child))
            case Aggregate():
                return _renamed(plan.keys, self.ranged(plan.child))
            case Join():
                return self._ranged_join(plan)
        return _NONE

    def _ranged_join(self, plan: Join) -> frozenset[str]:
        left, right = self.ranged(plan.left), self.ranged(plan.right)
        if self.meets(plan):
            return _surviving(plan.kind, left, right)
        build = self.build_side(plan)
        if not self.replicates(plan, build):
            return _NONE
        return right if build is BuildSide.LEFT else left

    def build_side(self, plan: Join) -> BuildSide:
        """The smaller side; the right one where the kind or NOT IN needs it and nothing is gained otherwise."""
        if plan.null_aware or plan.kind is JoinKind.EXISTENCE:
            return BuildSide.RIGHT
        if plan.kind is JoinKind.INNER:
            if self._one_task or self.meets(plan):
                return self.smaller(plan)
            return self._cheaper_to_replicate(plan)
        natural = BuildSide.LEFT if plan.kind is JoinKind.RIGHT else BuildSide.RIGHT
        return natural if self._stays_natural(plan, natural) else _other(natural)

    def _cheaper_to_replicate(self, plan: Join) -> BuildSide:
        left, right = self._estimator.estimate(plan.left), self._estimator.estimate(plan.right)
        # a replicated side is read again by every worker
        left_cost, right_cost = (2 * side.nbytes + side.scanned for side in (left, right))
        return BuildSide.LEFT if left_cost < right_cost else BuildSide.RIGHT

    def _stays_natural(self, plan: Join, natural: BuildSide) -> bool:
        """Whether the natural side of an outer, semi or anti join is built: it is not much larger, or is replicated."""
        left, right = self._estimator.estimate(plan.left).nbytes, self._estimator.estimate(plan.right).nbytes
        built, probed = (left, right) if natural is BuildSide.LEFT else (right, left)
        if built <= _MIN_SWAP_ROW_RATIO * probed:
            return True
        return not self.meets(plan) and self.replicates(plan, natural)

    def smaller(self, plan: Join) -> BuildSide:
        """The side of fewer bytes."""
        left, right = self._estimator.estimate(plan.left), self._estimator.estimate(plan.right)
        return BuildSide.LEFT if left.nbytes < right.nbytes else BuildSide.RIGHT

    def replicable(self, plan: LogicalPlan) -> bool:
        """Whether every task may compute the build side for itself: small, only files, the same rows in each of them."""
        if any(node.calls_python or isinstance(node, Input) for node in walk_plan(plan)):
            return False
        if not all(is_deterministic(expr) for node in walk_plan(plan) for expr in node.expressions):
            return False
        estimate, most = self._estimator.estimate(plan), self._config.broadcast_bytes
        return estimate.nbytes <= most and estimate.scanned <= _DECODED_PER_BROADCAST_BYTE * most


def is_named(expr: Expr, names: frozenset[str]) -> bool:
    """Whether an expression is one of the columns."""
    return isinstance(expr, Column) and expr.name in names


def _renamed(exprs: Sequence[Named], columns: frozenset[str]) -> frozenset[str]:
    """The names of those expressions that are one of the columns."""
    return frozenset(e.name for e in exprs if is_named(e.expr, columns))


def _other(side: BuildSide) -> BuildSide:
    return BuildSide.RIGHT if side is BuildSide.LEFT else BuildSide.LEFT


def _surviving(kind: JoinKind, left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    """Of the key columns of a ranged join, those that still say in which range a row is (padding with NULL does not)."""
    if kind is JoinKind.INNER:
        return left | right
    if kind is JoinKind.FULL:
        return _NONE
    return right if kind is JoinKind.RIGHT else left


def _emits_unmatched_build_rows(kind: JoinKind, build: BuildSide) -> bool:
    """Whether build rows come out by themselves, which no task may decide alone."""
    if kind is JoinKind.FULL:
        return True
    if build is BuildSide.RIGHT:
        return kind is JoinKind.RIGHT
    return kind in (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.EXISTENCE)
