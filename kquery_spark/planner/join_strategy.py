"""Chooses the strategy of each join: co-located, broadcast or shuffled, and which side is built.

- Co-located: file shares put matching rows of both sides into the same task. Nothing is shuffled.
- Broadcast (here called replicated): every task computes the whole build side by itself, which must be small. Unlike Spark's
  broadcast, no rows are collected in the driver.
- Shuffled: both sides are exchanged by their keys.

The build side is held in a hash table, and the probe side is streamed past it, so the smaller side is built if the kind of
the join allows it.
"""

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
from kquery_spark.planner.distinct import sums_by_distinct_value
from kquery_spark.planner.file_shares import FileShares

# A semi, anti or outer join builds its natural side unless that has more than this many times the other side's bytes.
_MIN_SWAP_BYTES_RATIO = 2.0
# A replicated side may decode this many times the bytes that it may hold, because every task decodes them again.
_DECODED_PER_BROADCAST_BYTE = 4

SharedKeys = frozenset[tuple[str, ...]]
"""Alternative lists of columns. For each list, rows with equal values in all of its columns are in the same task."""

_NONE: SharedKeys = frozenset()


class JoinStrategy:
    """Chooses strategies for the joins of one query. one_task: the whole query runs in one task. shares: its file shares."""

    def __init__(
        self, config: EngineConfig, estimator: Estimator, one_task: bool, shares: FileShares | None
    ) -> None:
        self._shares = shares
        self._config = config
        self._estimator = estimator
        self._one_task = one_task
        self._shared: NodeMap[SharedKeys] = NodeMap()

    def replicates(self, plan: Join, build: BuildSide) -> bool:
        """True if every task computes the build side by itself (a broadcast join)."""
        built = plan.left if build is BuildSide.LEFT else plan.right
        return not _emits_build_rows_at_end(plan.kind, build) and self.is_replicable(built)

    def is_colocated(self, plan: Join) -> bool:
        """True if one task reads the matching rows of both sides, because the join's keys include shared keys of both."""
        if self._shares is None or plan.null_aware:
            return False
        # The files of both sides are shared by the same ranges or buckets. Rows that agree in the shared columns are in
        # one task; the join must compare all of these columns, and may compare others as well.
        left, right = self.shared_keys(plan.left), self.shared_keys(plan.right)
        return any(_are_compared(left_key, right_key, plan.keys) for left_key in left for right_key in right)

    def shared_keys(self, plan: LogicalPlan) -> SharedKeys:
        """Return the output columns by which tasks share the files below the plan; empty if its rows will be exchanged."""
        shares = self._shares
        if shares is None:
            return _NONE
        return self._shared.setdefault(plan, lambda: self._find_shared(plan, shares))

    def bucket_keys(self, plan: LogicalPlan, keys: Sequence[tuple[Expr, Expr]]) -> tuple[Expr, ...] | None:
        """Return the expressions from which a row of the other side computes the bucket of its matches in ``plan``.

        None if tasks do not share ``plan`` by buckets of its keys. keys: pairs of a key of the plan and one of the other
        side.
        """
        if self._shares is None or not self._shares.buckets:
            return None
        compared = {key.name: other for key, other in keys if isinstance(key, Column)}
        bucketed = (
            columns for columns in self.shared_keys(plan) if all(name in compared for name in columns)
        )
        return next((tuple(compared[name] for name in columns) for columns in bucketed), None)

    def groups_together(self, plan: LogicalPlan, keys: Sequence[Expr]) -> bool:
        """True if all rows of the plan with equal ``keys`` are in the same task."""
        names = {key.name for key in keys if isinstance(key, Column)}
        return any(names.issuperset(columns) for columns in self.shared_keys(plan))

    def _find_shared(self, plan: LogicalPlan, shares: FileShares) -> SharedKeys:
        match plan:
            case Scan():
                scan_shares = shares.scans.get(plan)
                return _NONE if scan_shares is None else frozenset([scan_shares.columns])
            case Filter():
                return self.shared_keys(plan.child)
            case Projection():
                return _rename_keys(plan.exprs, self.shared_keys(plan.child))
            case Aggregate() if sums_by_distinct_value(plan):  # has two levels with an exchange between them
                return _NONE
            case Aggregate():
                return _rename_keys(plan.keys, self.shared_keys(plan.child))
            # A window keeps its rows in their tasks if partitions are complete there; otherwise the rows are exchanged.
            case Window() | WindowGroupLimit():
                return (
                    self.shared_keys(plan.child)
                    if self.groups_together(plan.child, plan.partition)
                    else _NONE
                )
            case Join():
                return self._shared_join(plan)
        return _NONE

    def _shared_join(self, plan: Join) -> SharedKeys:
        left, right = self.shared_keys(plan.left), self.shared_keys(plan.right)
        if self.is_colocated(plan):
            return _surviving_keys(plan.kind, left, right)
        build = self.build_side(plan)
        if not self.replicates(plan, build):
            return _NONE
        # Only the probe side's rows stay in their tasks: the replicated side is in every task.
        return right if build is BuildSide.LEFT else left

    def build_side(self, plan: Join) -> BuildSide:
        """Return the side to build.

        - Inner joins can build either side: the smaller one if one task has all matching rows, otherwise the one that is
          cheaper to replicate. If neither can be replicated, ``lower_join`` builds the smaller one.
        - Other kinds have a natural build side: left for RIGHT joins, and right for all others. Its rows are output only
          with a match (except in FULL joins), so it can be replicated. It is built unless it is much larger.
        - NOT IN and EXISTENCE joins always build the right side.
        """
        if plan.null_aware or plan.kind is JoinKind.EXISTENCE:
            return BuildSide.RIGHT
        if plan.kind is JoinKind.INNER:
            if self._one_task or self.is_colocated(plan):
                return self.smaller(plan)
            return self._cheaper_to_replicate(plan)
        natural = BuildSide.LEFT if plan.kind is JoinKind.RIGHT else BuildSide.RIGHT
        return natural if self._stays_natural(plan, natural) else _opposite_side(natural)

    def _cheaper_to_replicate(self, plan: Join) -> BuildSide:
        left, right = self._estimator.estimate(plan.left), self._estimator.estimate(plan.right)
        # Every worker decodes a replicated side again (scanned) and holds it in memory (nbytes, for the hash table as well).
        left_cost, right_cost = (2 * side.nbytes + side.scanned for side in (left, right))
        return BuildSide.LEFT if left_cost < right_cost else BuildSide.RIGHT

    def _stays_natural(self, plan: Join, natural: BuildSide) -> bool:
        """True if the natural side of an outer, semi or anti join is built: it is not much larger, or it is replicated."""
        left, right = self._estimator.estimate(plan.left).nbytes, self._estimator.estimate(plan.right).nbytes
        built, probed = (left, right) if natural is BuildSide.LEFT else (right, left)
        if built <= _MIN_SWAP_BYTES_RATIO * probed:
            return True
        return not self.is_colocated(plan) and self.replicates(plan, natural)

    def smaller(self, plan: Join) -> BuildSide:
        """Return the side with fewer bytes."""
        left, right = self._estimator.estimate(plan.left), self._estimator.estimate(plan.right)
        return BuildSide.LEFT if left.nbytes < right.nbytes else BuildSide.RIGHT

    def is_replicable(self, plan: LogicalPlan) -> bool:
        """True if every task can compute the plan by itself: it is small, only reads files, and is deterministic."""
        if any(node.calls_python or isinstance(node, Input) for node in walk_plan(plan)):
            return False
        # All tasks must compute the same rows, or a row would match in one task and not in another.
        if not all(is_deterministic(expr) for node in walk_plan(plan) for expr in node.expressions):
            return False
        estimate, max_bytes = self._estimator.estimate(plan), self._config.broadcast_bytes
        return estimate.nbytes <= max_bytes and estimate.scanned <= _DECODED_PER_BROADCAST_BYTE * max_bytes


def _are_compared(left: Sequence[str], right: Sequence[str], keys: Sequence[JoinKey]) -> bool:
    """True if the join keys equate each column in ``left`` with the one at the same position in ``right``."""
    equal = {
        (k.left.name, k.right.name)
        for k in keys
        if isinstance(k.left, Column) and isinstance(k.right, Column)
    }
    return len(left) == len(right) and equal.issuperset(zip(left, right, strict=True))


def _rename_keys(exprs: Sequence[Named], keys: SharedKeys) -> SharedKeys:
    """Return the keys under their new names in ``exprs``; a key is lost if one of its columns is not copied.

    Copying the column ``a`` as ``x`` and as ``y`` turns the key ``(a,)`` into the two keys ``(x,)`` and ``(y,)``.
    """
    names: dict[str, list[str]] = {}
    for named in exprs:
        if isinstance(named.expr, Column):
            names.setdefault(named.expr.name, []).append(named.name)
    return frozenset(renamed for key in keys for renamed in product(*(names.get(c, ()) for c in key)))


def _opposite_side(side: BuildSide) -> BuildSide:
    return BuildSide.RIGHT if side is BuildSide.LEFT else BuildSide.LEFT


def _surviving_keys(kind: JoinKind, left: SharedKeys, right: SharedKeys) -> SharedKeys:
    """Return the sides' keys that still determine the task of an output row. Columns padded with NULL do not."""
    if kind is JoinKind.INNER:
        return left | right
    if kind is JoinKind.FULL:
        return _NONE
    return right if kind is JoinKind.RIGHT else left


def _emits_build_rows_at_end(kind: JoinKind, build: BuildSide) -> bool:
    """True if the join outputs build rows depending on whether any probe row matches them.

    If the build side is replicated, no task sees all probe rows, so no task can decide this.
    """
    if kind is JoinKind.FULL:
        return True
    if build is BuildSide.RIGHT:
        return kind is JoinKind.RIGHT
    return kind in (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.EXISTENCE)
