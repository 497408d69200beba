"""The planner: turns logical nodes into operators, with exchanges where rows have to move to other tasks.

The package ``lowering`` has one function per class of node. This module has what these functions share: the settings and
estimates of the query, and the methods that add exchanges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count

from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import Unsupported
from kquery_spark.expr import Expr
from kquery_spark.logical import Input, LogicalPlan, Projection, Scan, Sort, walk_plan
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.logical.pruning import prune
from kquery_spark.optimizer.statistics import Estimator
from kquery_spark.physical.operators import ExchangeExec, Partitioning, PhysicalPlan
from kquery_spark.planner.bucket_shares import find_buckets
from kquery_spark.planner.copartition import find_ranges, ranges_of
from kquery_spark.planner.distribution import ONE_TASK, DistributedPlan, Distribution
from kquery_spark.planner.file_shares import FileShares
from kquery_spark.planner.join_strategy import JoinStrategy
from kquery_spark.planner.key_classes import key_classes
from kquery_spark.planner.lowering.registry import lowering_of
from kquery_spark.planner.lowering.rows import with_projection
from kquery_spark.planner.lowering.sort import lower_result_sort
from kquery_spark.sources.base import OPENING_BYTES

# In multiples of small_bytes: fewer bytes are shuffled to a single task, because a second one costs more than it saves.
_SINGLE_TASK_SMALL_BYTES = 0.5
_BYTES_PER_REDUCE_TASK = 128 * 1024 * 1024
# The most tasks per core. An estimate that asks for more is probably wrong, and large tasks can spill.
_MAX_TASK_WAVES = 64


def plan_query(plan: LogicalPlan, config: EngineConfig, shared_sort: bool = False) -> PhysicalPlan:
    """Return the physical plan of an optimized logical plan. Exchanges mark where it is cut into stages.

    shared_sort: a sorted result may be spread over several tasks, so the consumer has to preserve the order of the tasks.
    """
    estimator = Estimator()
    # Small queries run in one task, unless they call Python functions (which can take any time per row) or read an Input
    # (whose rows Spark has already spread over tasks).
    spread = any(node.calls_python or isinstance(node, Input) for node in walk_plan(plan))
    one_task = not spread and _is_small_scan(plan, estimator, config)
    # File shares apply to the whole query: all co-located joins use the same ranges or buckets.
    shares = None if one_task else _shares(plan, config)
    planner = Planner(config, estimator, one_task, shares, count())
    return (planner.lower_result(plan) if shared_sort else planner.lower(plan)).plan


def _is_small_scan(plan: LogicalPlan, estimator: Estimator, config: EngineConfig) -> bool:
    """True if the scans read few bytes of few files."""
    if estimator.estimate(plan).scanned > config.small_bytes:
        return False
    scans = (node for node in walk_plan(plan) if isinstance(node, Scan))
    files = sum(len({split.file for split in prune(scan.source, scan.filters)}) for scan in scans)
    return files * OPENING_BYTES <= config.small_bytes


def _shares(plan: LogicalPlan, config: EngineConfig) -> FileShares | None:
    """Return the file shares by key ranges or by buckets, whichever cover more bytes; None if there are none."""
    classes = key_classes(plan)
    candidates = (find_ranges(classes, config), find_buckets(classes, config))
    return max((c for c in candidates if c is not None), key=lambda shares: shares.nbytes, default=None)


class Planner:
    """Lowers the nodes of one query, or of a part that one task runs or that has its own file shares.

    aggregated: caches lowered aggregations that read only exchanges. If the query contains such a node twice, it is
    computed once.
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
        """Return a planner for a part of the query that one task computes by itself."""
        return Planner(self.config, self.estimator, True, None, self.scan_ids)

    def planner_for_ranges(self, plan: LogicalPlan, key: Expr) -> Planner | None:
        """Return a planner that spreads ``plan`` by ranges of ``key``: this one, or a new one with ranges for this key.

        None if the files are not clustered by the key.
        """
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
        """Lower the whole query. Several tasks may share its last sort."""
        match plan:
            case Projection():
                return with_projection(self.lower_result(plan.child), plan)
            case Sort():
                return lower_result_sort(self, plan)
        return self.lower(plan)

    def lower(self, plan: LogicalPlan) -> DistributedPlan:
        """Lower a node and everything below it."""
        lower = lowering_of(plan)
        if lower is None:
            raise Unsupported(f"the engine has no operator for {type(plan).__name__}")
        return lower(self, plan)

    def nbytes(self, plan: LogicalPlan) -> float:
        """Return the expected bytes of a node's output."""
        return self.estimator.estimate(plan).nbytes

    def nbytes_of_first(self, plan: LogicalPlan, rows: int | None) -> float:
        """Return the expected bytes if every task outputs at most ``rows`` rows of the plan (None: all rows)."""
        estimate = self.estimator.estimate(plan)
        if rows is None or estimate.rows <= rows:
            return estimate.nbytes
        return estimate.nbytes * min(1.0, rows * self.config.parallelism / estimate.rows)

    def exchange(self, child: DistributedPlan, partitioning: Partitioning, nbytes: float) -> DistributedPlan:
        """Return ``child`` with its rows spread by ``partitioning``; ``child`` itself if they already are.

        nbytes: the expected bytes of the exchanged rows (the same in the methods below).
        """
        if partitioning.count == 1:
            return self.to_one_task(child, nbytes)
        # The rows may already be where the exchange would send them, after an earlier exchange by the same keys.
        if child.is_hash_partitioned_by(partitioning.keys, partitioning.count):
            return child
        exchanged = ExchangeExec(child.plan, partitioning, nbytes)
        return DistributedPlan(exchanged, Distribution.KEYED, partitioning.keys, partitioning.count)

    def to_one_task(self, child: DistributedPlan, nbytes: float) -> DistributedPlan:
        """Return ``child`` with all rows in one task."""
        if child.distribution is Distribution.SINGLE:
            return child
        return DistributedPlan(ExchangeExec(child.plan, ONE_TASK, nbytes), Distribution.SINGLE)

    def exchange_by(self, child: DistributedPlan, keys: tuple[Expr, ...], nbytes: float) -> DistributedPlan:
        """Return ``child`` with rows of equal keys in the same task; all rows in one task without keys or for few bytes."""
        count = self.reduce_tasks(nbytes) if keys else 1
        return self.exchange(child, Partitioning(keys, count) if count > 1 else ONE_TASK, nbytes)

    def reduce_tasks(self, nbytes: float) -> int:
        """Return the number of tasks for ``nbytes`` exchanged bytes: 1 for little data, otherwise a multiple of the cores.

        With 4 cores, 1 GiB goes to 8 tasks of 128 MiB.
        """
        if self.config.shuffle_partitions:
            return self.config.shuffle_partitions
        if nbytes <= _SINGLE_TASK_SMALL_BYTES * self.config.small_bytes:
            return 1
        # Full waves of all cores: a last wave with a single task would leave the other cores idle.
        waves = math.ceil(nbytes / (_BYTES_PER_REDUCE_TASK * self.config.parallelism))
        return self.config.parallelism * min(max(1, waves), _MAX_TASK_WAVES)
