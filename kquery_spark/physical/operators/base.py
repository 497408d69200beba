"""The base of physical operators, and what a running task gives them."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from kquery_spark.config.engine import DEFAULT_MAX_MEMORY_BYTES, EngineConfig
from kquery_spark.expr import Expr
from kquery_spark.physical.dynamic_filters.runtime_filter import RuntimeFilter
from kquery_spark.physical.worker_cache import WorkerCache, worker_cache
from kquery_spark.run_control import current_control
from kquery_spark.sources.base import Split
from kquery_spark.types.batch import Batch


@dataclass
class Metrics:
    """What one operator gave in one task: rows, batches, bytes; time includes its children's.

    ``extra`` has what is particular to it, as ``spilled_bytes`` and ``spill_files`` where state passed the memory budget.
    """

    rows: int = 0
    batches: int = 0
    nbytes: int = 0
    seconds: float = 0.0
    extra: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, amount: int) -> None:
        """Count something particular to the operator (row groups pruned, bytes spilled ...)."""
        self.extra[name] = self.extra.get(name, 0) + amount

    def merge(self, other: Metrics) -> None:
        """Add another task's."""
        self.rows += other.rows
        self.batches += other.batches
        self.nbytes += other.nbytes
        self.seconds += other.seconds
        for name, amount in other.extra.items():
            self.add(name, amount)


@dataclass
class TaskContext:
    """One task: the splits its scans read, the batches its inputs receive, limits, metrics, the worker's cache.

    started: in seconds since 1970.
    """

    config: EngineConfig = field(default_factory=EngineConfig)
    splits: Mapping[int, Sequence[Split]] = field(default_factory=dict)
    inputs: Mapping[str, Callable[[], Iterator[Batch]]] = field(default_factory=dict)
    cache: WorkerCache = field(default_factory=worker_cache)
    metrics: dict[int, Metrics] = field(default_factory=dict)
    runtime_filters: dict[int, list[RuntimeFilter]] = field(default_factory=dict)
    started: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        if not self.config.memory_bytes:  # the container is unknown, as in a process of the user's own
            self.config = replace(self.config, memory_bytes=DEFAULT_MAX_MEMORY_BYTES)

    def metrics_of(self, node: PhysicalPlan) -> Metrics:
        """The metrics of a node of the plan this task runs."""
        return self.metrics.setdefault(id(node), Metrics())


@dataclass(frozen=True)
class PhysicalPlan:
    """An operator: a value that can be shipped, printed and compared; running it happens in ``run``."""

    @property
    def schema(self) -> pa.Schema:
        """Output columns with Spark types."""
        raise NotImplementedError

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        """Input operators."""
        return ()

    def with_children(self, children: Sequence[PhysicalPlan]) -> PhysicalPlan:
        """The same operator over other inputs."""
        if children:
            raise ValueError(f"{type(self).__name__} has no children")
        return self

    def accept_filter(self, task: TaskContext, runtime_filter: RuntimeFilter) -> None:
        """Take a run-time filter on output columns nearer to the scan they come from; ignoring it is always right."""

    def clusters_by(self, keys: frozenset[Expr]) -> bool:
        """Whether output rows with equal ``keys`` follow each other; False where that is not known."""
        return False

    def execute(self, task: TaskContext) -> Iterator[Batch]:
        """Yield the output; called through ``run``."""
        raise NotImplementedError

    def run(self, task: TaskContext) -> Generator[Batch, None, None]:
        """``execute`` with metrics, without empty batches, as long as the run's control allows."""
        metrics, control = task.metrics_of(self), current_control()
        source = self.execute(task)
        try:
            while True:
                started = time.perf_counter()
                batch = next(source, None)
                metrics.seconds += time.perf_counter() - started
                if batch is None:
                    return
                nbytes = batch.nbytes if batch.num_rows else 0
                if control is not None:
                    control.add(batch.num_rows, nbytes)
                if batch.num_rows:
                    metrics.rows += batch.num_rows
                    metrics.batches += 1
                    metrics.nbytes += nbytes
                    yield batch
        finally:
            close = getattr(source, "close", None)
            if close is not None:
                close()

    def label(self) -> str:
        """The operator in one line."""
        return type(self).__name__


@dataclass(frozen=True)
class UnaryExec(PhysicalPlan):
    """Base of the operators with one input, which is their field ``child``."""

    child: PhysicalPlan

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        """The one input."""
        return (self.child,)

    def with_children(self, children: Sequence[PhysicalPlan]) -> PhysicalPlan:
        """The same operator over another input."""
        (child,) = children
        return replace(self, child=child)


@dataclass(frozen=True)
class BinaryExec(PhysicalPlan):
    """Base of the operators with two inputs, which are their fields ``left`` and ``right``."""

    left: PhysicalPlan
    right: PhysicalPlan

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        """Both inputs, the left one first."""
        return (self.left, self.right)

    def with_children(self, children: Sequence[PhysicalPlan]) -> PhysicalPlan:
        """The same operator over other inputs."""
        left, right = children
        return replace(self, left=left, right=right)


def clustered_keys(first: Sequence[Expr], then: Sequence[Expr]) -> list[frozenset[Expr]]:
    """Sets of keys by which rows are clustered if they are in order of all ``first`` together, and then of ``then``."""
    prefixes = [frozenset((*first, *then[:i])) for i in range(len(then) + 1)]
    return [keys for keys in prefixes if keys]
