"""Part: a subtree of Spark's plan that the engine runs, compiled to stages."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kquery_spark.accelerate.planning.import_subtrees import Position
from kquery_spark.cached_property import cached_property
from kquery_spark.compiler import CompiledQuery, Placement
from kquery_spark.compiler.placement import IN_ANY_ORDER
from kquery_spark.config.cost import CostModel
from kquery_spark.config.processor import available_cores
from kquery_spark.frontends.catalyst.importer import Imported
from kquery_spark.logical import (
    Aggregate,
    Generate,
    Join,
    Limit,
    LogicalPlan,
    MapPython,
    Scan,
    walk_plan,
)
from kquery_spark.optimizer.statistics import Estimator
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

_MAX_REMEMBERED_PLANS = 1000
_exceeding: dict[int, None] = {}  # hashes of the plans that exceeded the driver's limits, oldest first


@dataclass(frozen=True)
class Part:
    """A maximal subtree of a query that the engine can run: Spark's plan, the imported plan, and the compiled stages.

    costs: the cost model, which limits what the driver may run.
    """

    position: Position
    node: CatalystNode
    imported: Imported
    compiled: CompiledQuery
    costs: CostModel

    @property
    def needs_shared_sort(self) -> bool:
        """True if the result is sorted and has more rows than one task may sort."""
        query = self.compiled
        return query.shares_sort and query.estimate.rows > query.config.sort_rows

    @property
    def for_unordered_consumer(self) -> Part | None:
        """The part for a plan with Spark operators on top, which may not preserve the order of several tasks.

        Its ordered result comes from a single task. None if the result has more rows than one task may sort.
        """
        if not self.compiled.shares_sort:
            return self
        if self.needs_shared_sort:
            return None
        return replace(self, compiled=self.compiled.placed(IN_ANY_ORDER))

    @cached_property
    def steps(self) -> tuple[LogicalPlan, ...]:
        """The joins, aggregates, windows, sorts, and set operations.

        Spark and the engine take about the same time for the other nodes, which handle each row by itself.
        """
        nodes = walk_plan(self.compiled.optimized)
        return tuple(n for n in nodes if not (n.is_row_wise or isinstance(n, Generate | Limit | MapPython)))

    @cached_property
    def threaded(self) -> CompiledQuery | None:
        """The stages compiled for threads of the driver; None if the part has too little or too much work for threads.

        Row-wise parts are not compiled for threads. Their first rows need only a few rows of a file, but the engine would
        read whole row groups.
        """
        config = self.compiled.config
        threads = min(config.parallelism, available_cores())
        if (
            threads < 2
            or not self.steps
            or not self.costs.threaded_bytes <= self.compiled.estimate.scanned < config.thread_bytes
            or self._most_rows(Aggregate) > self.costs.driver_rows  # workers have more memory for many groups
        ):
            return None
        return self.compiled.placed(Placement(threads=threads))

    @property
    def exceeds_driver(self) -> bool:
        """True if an equal query over the same files has exceeded the limits of the driver before."""
        return bool(_exceeding) and hash(self.compiled.optimized) in _exceeding

    def remember_exceeds_driver(self) -> None:
        """Record that this query exceeded the driver's limits.

        Under ``kq.enable``, every action plans its query again; ``exceeds_driver`` then finds this record.
        """
        _exceeding[hash(self.compiled.optimized)] = None
        if len(_exceeding) > _MAX_REMEMBERED_PLANS:
            _exceeding.pop(next(iter(_exceeding)), None)

    @cached_property
    def is_bounded(self) -> bool:
        """True if the driver may run the part: no Generate, no Python function, and no large result or join.

        A result or a join is large if it is estimated to have more rows than ``driver_rows`` and than the largest scan. The
        user's Python functions run in a worker process, as in Spark.
        """
        nodes = list(walk_plan(self.compiled.optimized))
        if any(n.calls_python or isinstance(n, Generate) for n in nodes):
            return False
        max_rows = max(self.costs.driver_rows, self._most_rows(Scan))
        return max(self.compiled.estimate.rows, self._most_rows(Join)) <= max_rows

    @cached_property
    def _estimator(self) -> Estimator:
        return Estimator()

    def _most_rows(self, kind: type[LogicalPlan]) -> float:
        """Return the estimated rows of the largest node of a kind; 0 if there is none."""
        estimate = self._estimator.estimate
        nodes = walk_plan(self.compiled.optimized)
        return max((estimate(node).rows for node in nodes if isinstance(node, kind)), default=0.0)
