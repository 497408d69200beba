"""How to join: which side is built, and whether one task reads the rows that meet or every task computes the build side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

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
    Window,
    WindowGroupLimit,
    walk_plan,
)
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.optimizer.statistics import Estimator
from kquery_spark.physical.operators import BuildSide
from kquery_spark.planner.file_shares import FileShares

# how much larger a semi, anti or outer join's natural build side is before the other is built
_MIN_SWAP_ROW_RATIO = 2.0
_DECODED_PER_BROADCAST_BYTE = 4  # most bytes that a replicated side may decode for each that it may have

SharedKeys = frozenset[tuple[str, ...]]
"""Lists of columns: one task reads all rows with equal values in all columns of a list."""

_NONE: SharedKeys = frozenset()


class JoinStrategy:
    """Answers for the joins of one query (``one_task``: all of it runs in one), from estimates and its shares of files."""

    def __init__(
        self, config: EngineConfig, estimator: Estimator, one_task: bool, shares: FileShares | None
    ) -> None:
        self._shares = shares
        self._config = config
        self._estimator = estimator
        self._one_task = one_task
        self._shared: NodeMap[SharedKeys] = NodeMap()

    def replicates(self, plan: Join, build: BuildSide) -> bool:
        """Whether every task computes the built side for itself."""
        built = plan.left if build is BuildSide.LEFT else plan.right
        return not _emits_unmatched_build_rows(plan.kind, build) and self.replicable(built)

    def meets(self, plan: Join) -> bool:
        """Whether one task reads all rows that the join pairs."""
        if self._shares is None or plan.null_aware:
            return False
        left, right = self.shared(plan.left), self.shared(plan.right)
        return any(_are_compared(one, other, plan.keys) for one in left for other in right)

    def shared(self, plan: LogicalPlan) -> SharedKeys:
        """The output columns by which tasks share the files below the plan; empty when its rows will not stay there."""
        shares = self._shares
        if shares is None:
            return _NONE
        return self._shared.setdefault(plan, lambda: self._find_shared(plan, shares))

    def bucket_keys(self, plan: LogicalPlan, keys: Sequence[tuple[Expr, Expr]]) -> tuple[Expr, ...] | None:
        """What a row's bucket is computed of that meets rows of ``plan``, whose buckets tasks share; None if they do not.

        keys: pairs of a key of the plan and one that it is compared with.
        """
        if self._shares is None or not self._shares.buckets:
            return None
        compared = {key.name: other for key, other in keys if isinstance(key, Column)}
        bucketed = (columns for columns in self.shared(plan) if all(name in compared for name in columns))
        return next((tuple(compared[name] for name in columns) for columns in bucketed), None)

    def groups_together(self, plan: LogicalPlan, keys: Sequence[Expr]) -> bool:
        """Whether one task reads all of the plan's rows with equal ``keys``."""
        names = {key.name for key in keys if isinstance(key, Column)}
        return any(names.issuperset(columns) for columns in self.shared(plan))

    def _find_shared(self, plan: LogicalPlan, shares: FileShares) -> SharedKeys:
        match plan:
            case Scan():
                scan_shares = shares.scans.get(plan)
                return _NONE if scan_shares is None else frozenset([scan_shares.columns])
            case Filter():
                return self.shared(plan.child)
            case Projection():
                return _renamed(plan.exprs, self.shared(plan.child))
            case Aggregate():
                return _renamed(plan.keys, self.shared(plan.child))
            case Window() | WindowGroupLimit():
                return self.shared(plan.child) if self.groups_together(plan.child, plan.partition) else _NONE
            case Join():
                return self._shared_join(plan)
        return _NONE

    def _shared_join(self, plan: Join) -> SharedKeys:
        left, right = self.shared(plan.left), self.shared(plan.right)
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


def _are_compared(left: Sequence[str], right: Sequence[str], keys: Sequence[JoinKey]) -> bool:
    """Whether the join keys equate each column on the left with the one at the same position on the right."""
    equal = {
        (k.left.name, k.right.name)
        for k in keys
        if isinstance(k.left, Column) and isinstance(k.right, Column)
    }
    return len(left) == len(right) and equal.issuperset(zip(left, right, strict=True))


def _renamed(exprs: Sequence[Named], keys: SharedKeys) -> SharedKeys:
    """The keys under the names of those expressions that are one of their columns."""
    names: dict[str, list[str]] = {}
    for named in exprs:
        if isinstance(named.expr, Column):
            names.setdefault(named.expr.name, []).append(named.name)
    return frozenset(renamed for key in keys for renamed in product(*(names.get(c, ()) for c in key)))


def _other(side: BuildSide) -> BuildSide:
    return BuildSide.RIGHT if side is BuildSide.LEFT else BuildSide.LEFT


def _surviving(kind: JoinKind, left: SharedKeys, right: SharedKeys) -> SharedKeys:
    """Of the keys of a join, those that still say which task reads a row (padding with NULL does not)."""
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
