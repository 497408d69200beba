"""Part: a subtree of Spark's plan that the engine runs, compiled to stages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from kquery_spark.compiler import CompiledQuery, Placement, compile_query
from kquery_spark.compiler.placement import IN_ANY_ORDER, IN_TASK_ORDER
from kquery_spark.config.engine import EngineConfig
from kquery_spark.config.processor import available_cores
from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.importer import Imported
from kquery_spark.logical import Generate, Input, Join, LogicalPlan, walk_plan
from kquery_spark.logical.projection import with_output
from kquery_spark.optimizer.statistics import Estimator
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.plan.spark_types import MONTHS_WITHIN
from kquery_spark.types import names as t

Position = tuple[int, ...]
"""Where a node is in Spark's plan: the indexes of children from the root."""

_FEW_ROWS = 1_000_000
_THREADED_DECODE_BYTES = 3 << 20  # bytes to decode, which take one thread 30 ms and more
_MAX_REMEMBERED_PLANS = 1000
_exceeding: dict[int, None] = {}  # hashes of plans


@dataclass(frozen=True)
class Part:
    """A maximal subtree of the query that the engine can run: Spark's plan of it, the engine's plan, and the stages."""

    position: Position
    node: CatalystNode
    imported: Imported
    compiled: CompiledQuery

    @property
    def only_shared(self) -> bool:
        """Whether the result has more rows than one task may sort alone."""
        query = self.compiled
        return query.shares_sort and query.estimate.rows > query.config.sort_rows

    @property
    def in_any_order(self) -> Part | None:
        """The part with an ordered result in one task, as operators on top of several tasks may not keep their order.

        None if the result has more rows than one task may sort.
        """
        if not self.compiled.shares_sort:
            return self
        if self.only_shared:
            return None
        return replace(self, compiled=self.compiled.placed(IN_ANY_ORDER))

    @cached_property
    def threaded(self) -> CompiledQuery | None:
        """The stages for threads of the driver; None if the part has too little work for them, or too much."""
        config = self.compiled.config
        threads = min(config.parallelism, available_cores())
        if threads < 2 or not _THREADED_DECODE_BYTES <= self.compiled.estimate.scanned < config.thread_bytes:
            return None
        query = self.compiled.placed(Placement(keeps_task_order=False, threads=threads))
        return query if len(query.graph.stages) > 1 and len(query.graph.result.tasks) == 1 else None

    @property
    def exceeds_driver(self) -> bool:
        """Whether an equal query over the same files turned out to be too much for the driver."""
        return bool(_exceeding) and hash(self.compiled.optimized) in _exceeding

    def remember_exceeds_driver(self) -> None:
        """Keep equal queries away from the driver, as actions of an enabled session plan theirs again each time."""
        _exceeding[hash(self.compiled.optimized)] = None
        if len(_exceeding) > _MAX_REMEMBERED_PLANS:
            _exceeding.pop(next(iter(_exceeding)), None)

    @cached_property
    def is_bounded(self) -> bool:
        """Whether the driver may run the last stage: no Generate, no function of the user's, few rows out of each join.

        A Python function of Spark's runs where Spark would run it, in a worker.
        """
        optimized = self.compiled.optimized
        nodes = list(walk_plan(optimized))
        estimator = Estimator()
        producers = (optimized, *(n for n in nodes if isinstance(n, Join)))
        return not any(n.calls_python or isinstance(n, Generate) for n in nodes) and all(
            estimator.estimate(n).rows < _FEW_ROWS for n in producers
        )


def plan_part(position: Position, node: CatalystNode, imported: Imported, config: EngineConfig) -> Part:
    """Compile an imported subtree; Unsupported if its rows cannot cross to Spark, or one task would sort too many."""
    placement = IN_TASK_ORDER if position == () else IN_ANY_ORDER
    query = compile_query(with_output(imported.plan, imported.output), config, placement, check=False)
    _check_crossing(query.optimized)
    tasks, rows = len(query.graph.result.tasks), query.estimate.rows
    if query.is_ordered and rows > config.sort_rows * tasks:
        where = "one task" if tasks == 1 else f"{tasks} tasks"
        raise Unsupported(
            f"sorting about {rows:,.0f} rows in {where} falls back to Spark (spark.kquery.sortRows)"
        )
    return Part(position, node, imported, query)


def _check_crossing(plan: LogicalPlan) -> None:
    """Raise Unsupported when rows would change sides that cannot.

    Of a struct that repeats a name Java's Arrow reads one field, and year-month intervals are converted as columns only.
    Variants do not leave the engine.
    """
    crossing = (plan, *(n for n in walk_plan(plan) if isinstance(n, Input)))
    for field in (field for node in crossing for field in node.schema):
        if t.has_variants(field.type):
            raise Unsupported(
                f"column {field.name} is a variant, and a query whose rows have variants is Spark's"
            )
        if t.has_months_within(field.type):
            raise Unsupported(MONTHS_WITHIN)
        if (name := _repeated_name(field.type)) is not None:
            raise Unsupported(
                f"column {field.name} has a struct with two fields named {name}, which do not cross between Spark and Arrow"
            )


def _repeated_name(dtype: pa.DataType) -> str | None:
    """A name that two fields of a struct in the type have."""
    fields = [dtype.field(i) for i in range(dtype.num_fields)]
    names = [f.name for f in fields]
    own = [name for i, name in enumerate(names) if name in names[:i]]
    below = (_repeated_name(f.type) for f in fields)
    return own[0] if own else next((name for name in below if name is not None), None)
