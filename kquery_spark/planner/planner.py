"""The planner: logical nodes become operators, with exchanges where rows have to go to other tasks.

What becomes of each node is in ``lowering``; here is what lowerings share: the settings of a query, its estimates, and how
rows are exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count

from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import Unsupported
from kquery_spark.expr import Expr
from kquery_spark.logical import Input, LogicalPlan, Projection, Sort, walk_plan
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.optimizer.statistics import Estimator
from kquery_spark.physical.operators import ExchangeExec, Partitioning, PhysicalPlan
from kquery_spark.planner.bucket_shares import find_buckets
from kquery_spark.planner.copartition import find_ranges, ranges_of
from kquery_spark.planner.distribution import ONE_TASK, DistributedPlan, Distribution
from kquery_spark.planner.file_shares import FileShares
from kquery_spark.planner.join_strategy import JoinStrategy
from kquery_spark.planner.key_classes import key_classes
from kquery_spark.planner.lowering.registry import lowering_of
from kquery_spark.planner.lowering.rows import projected
from kquery_spark.planner.lowering.sort import lower_result_sort

_SINGLE_TASK_SMALL_BYTES = (
    0.5  # of small_bytes, shuffled to one task: what two would save is less than one costs
)
_BYTES_PER_REDUCE_TASK = 128 * 1024 * 1024
_MAX_TASK_WAVES = 64  # a higher estimate is wrong; large tasks spill


def plan_query(plan: LogicalPlan, config: EngineConfig, shared_sort: bool = False) -> PhysicalPlan:
    """The physical plan of an optimized logical plan; exchanges mark where it is cut into stages.

    shared_sort: the result may be in order over several tasks, so whoever takes it must keep the order of the tasks.
    """
    estimator = Estimator()
    scanned = estimator.estimate(plan).scanned
    # a function may take any time for a row, so its rows are spread however few they are
    spread = any(node.calls_python or isinstance(node, Input) for node in walk_plan(plan))
    one_task = scanned <= config.small_bytes and not spread
    shares = None if one_task else _shares(plan, config)
    planner = Planner(config, estimator, one_task, shares, count())
    return (planner.lower_result(plan) if shared_sort else planner.lower(plan)).plan


def _shares(plan: LogicalPlan, config: EngineConfig) -> FileShares | None:
    """Shares by key ranges or by buckets, whichever cover more bytes."""
    classes = key_classes(plan)
    candidates = (find_ranges(classes, config), find_buckets(classes, config))
    return max((c for c in candidates if c is not None), key=lambda shares: shares.nbytes, default=None)


class Planner:
    """Lowers the nodes of one query, or of a part of it that one task runs or that has other file shares.

    aggregated: the aggregations that only stages feed, so that a node that is in the query twice is computed once.
    """

    def __init__(
        self,
        config: EngineConfig,
        estimator: Estimator,
        one_task: bool,
        shares: FileShares | None,
        scan_ids: Iterator[int],
    ) -> None:
        self.config = config
        self.estimator = estimator
        self.one_task = one_task
        self.shares = shares
        self.scan_ids = scan_ids
        self.joins = JoinStrategy(config, estimator, one_task, shares)
        self.aggregated: NodeMap[DistributedPlan] = NodeMap()

    def in_one_task(self) -> Planner:
        """A planner for a part of the query that one task computes by itself."""
        return Planner(self.config, self.estimator, True, None, self.scan_ids)

    def ranged_by(self, plan: LogicalPlan, key: Expr) -> Planner | None:
        """The planner by which ``plan`` is spread by ranges of ``key``: this one, or one with ranges just for that."""
        if self._is_ranged(plan, key):
            return self
        ranges = ranges_of(plan, key, self.config)
        if ranges is None:
            return None
        planner = Planner(self.config, self.estimator, False, ranges, self.scan_ids)
        return planner if planner._is_ranged(plan, key) else None

    def _is_ranged(self, plan: LogicalPlan, key: Expr) -> bool:
        by_range = self.shares is not None and self.shares.bounds is not None
        return by_range and self.joins.groups_together(plan, (key,))

    def lower_result(self, plan: LogicalPlan) -> DistributedPlan:
        """The physical form of the whole query, whose last sort tasks may share."""
        match plan:
            case Projection():
                return projected(self.lower_result(plan.child), plan)
            case Sort():
                return lower_result_sort(self, plan)
        return self.lower(plan)

    def lower(self, plan: LogicalPlan) -> DistributedPlan:
        """The physical form of a node and everything below it."""
        lower = lowering_of(plan)
        if lower is None:
            raise Unsupported(f"the engine has no operator for {type(plan).__name__}")
        return lower(self, plan)

    def nbytes(self, plan: LogicalPlan) -> float:
        """Expected bytes of a node's output."""
        return self.estimator.estimate(plan).nbytes

    def nbytes_of_first(self, plan: LogicalPlan, rows: int | None) -> float:
        """Expected bytes of the first rows of every task; None: of all rows."""
        estimate = self.estimator.estimate(plan)
        if rows is None or estimate.rows <= rows:
            return estimate.nbytes
        return estimate.nbytes * min(1.0, rows * self.config.parallelism / estimate.rows)

    def exchange(self, child: DistributedPlan, partitioning: Partitioning, nbytes: float) -> DistributedPlan:
        """``child`` with its rows, about so many bytes, spread by ``partitioning``; itself if they already are."""
        if partitioning.count == 1:
            return self.to_one_task(child, nbytes)
        if child.hashed_by(partitioning.keys, partitioning.count):
            return child
        exchanged = ExchangeExec(child.plan, partitioning, nbytes)
        return DistributedPlan(exchanged, Distribution.KEYED, partitioning.keys, partitioning.count)

    def to_one_task(self, child: DistributedPlan, nbytes: float) -> DistributedPlan:
        """``child`` with its rows, about so many bytes, in one task."""
        if child.distribution is Distribution.SINGLE:
            return child
        return DistributedPlan(ExchangeExec(child.plan, ONE_TASK, nbytes), Distribution.SINGLE)

    def exchange_by(self, child: DistributedPlan, keys: tuple[Expr, ...], nbytes: float) -> DistributedPlan:
        """``child`` with its rows, about so many bytes, where those with equal keys are together."""
        count = self.reduce_tasks(nbytes) if keys else 1
        return self.exchange(child, Partitioning(keys, count) if count > 1 else ONE_TASK, nbytes)

    def reduce_tasks(self, nbytes: float) -> int:
        """How many tasks share so many exchanged bytes."""
        if self.config.shuffle_partitions:
            return self.config.shuffle_partitions
        if nbytes <= _SINGLE_TASK_SMALL_BYTES * self.config.small_bytes:
            return 1
        waves = math.ceil(nbytes / (_BYTES_PER_REDUCE_TASK * self.config.parallelism))
        return self.config.parallelism * min(max(1, waves), _MAX_TASK_WAVES)
