"""The base classes of physical operators, and the context of a running task."""

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
from kquery_spark.types.sizes import raise_if_too_large


@dataclass
class Metrics:
    """The output of one operator in one task (rows, batches, bytes) and its time, which includes that of its children.

    extra: further counters of the operator, such as ``spilled_bytes`` and ``spill_files``.
    """

    rows: int = 0
    batches: int = 0
    nbytes: int = 0
    seconds: float = 0.0
    extra: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, amount: int) -> None:
        """Add to a counter of the operator, such as the bytes that it spilled."""
        self.extra[name] = self.extra.get(name, 0) + amount

    def merge(self, other: Metrics) -> None:
        """Add the metrics of the same operator in another task."""
        self.rows += other.rows
        self.batches += other.batches
        self.nbytes += other.nbytes
        self.seconds += other.seconds
        for name, amount in other.extra.items():
            self.add(name, amount)


@dataclass
class TaskContext:
    """The context of one task.

    splits: the splits that its scans read, by scan id. inputs: readers of the rows of other stages or of Spark, by input id.
    cache: the cache of the worker process. metrics: by the id of the operator. runtime_filters: dynamic filters, by scan id.
    started: the start time, in seconds since 1970.
    """

    config: EngineConfig = field(default_factory=EngineConfig)
    splits: Mapping[int, Sequence[Split]] = field(default_factory=dict)
    inputs: Mapping[str, Callable[[], Iterator[Batch]]] = field(default_factory=dict)
    cache: WorkerCache = field(default_factory=worker_cache)
    metrics: dict[int, Metrics] = field(default_factory=dict)
    runtime_filters: dict[int, list[RuntimeFilter]] = field(default_factory=dict)
    started: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        # If the size of the container is unknown, for example in the user's own process, assume a default.
        if not self.config.memory_bytes:
            self.config = replace(self.config, memory_bytes=DEFAULT_MAX_MEMORY_BYTES)

    def metrics_of(self, node: PhysicalPlan) -> Metrics:
        """Return the metrics of an operator of the plan that this task runs."""
        return self.metrics.setdefault(id(node), Metrics())


@dataclass(frozen=True)
class PhysicalPlan:
    """An operator: a value that can be serialized, printed and compared. ``run`` runs it in a task.

    Execution is pull-based: ``run`` is a generator, which reads from its children when its consumer asks for a batch.
    """

    @property
    def schema(self) -> pa.Schema:
        """Output columns with Spark types."""
        raise NotImplementedError

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        """Input operators."""
        return ()

    def with_children(self, children: Sequence[PhysicalPlan]) -> PhysicalPlan:
        """Return the same operator over other inputs."""
        if children:
            raise ValueError(f"{type(self).__name__} has no children")
        return self

    def accept_filter(self, task: TaskContext, runtime_filter: RuntimeFilter) -> None:
        """Pass a dynamic filter on output columns down towards the scan. Ignoring a filter is always correct."""

    def clusters_by(self, keys: frozenset[Expr]) -> bool:
        """Return True if output rows with equal ``keys`` are consecutive; False if that is not known."""
        return False

    def execute(self, task: TaskContext) -> Iterator[Batch]:
        """Yield the output. Subclasses implement this method, and consumers call ``run``."""
        raise NotImplementedError

    def run(self, task: TaskContext) -> Generator[Batch, None, None]:
        """Yield the batches of ``execute`` that are not empty, and record metrics.

        Each batch counts towards the limits of the run, so this raises if the run has to stop.
        """
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
        except pa.ArrowException as error:
            raise_if_too_large(error, type(self).__name__)
            raise
        finally:
            close = getattr(source, "close", None)
            if close is not None:
                close()

    def label(self) -> str:
        """Return the operator's line in a printed plan."""
        return type(self).__name__


@dataclass(frozen=True)
class UnaryExec(PhysicalPlan):
    """The base class of operators with one input, the field ``child``."""

    child: PhysicalPlan

    @property
    def schema(self) -> pa.Schema:
        """The columns of the input, unless the operator computes others."""
        return self.child.schema

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        """The input."""
        return (self.child,)

    def with_children(self, children: Sequence[PhysicalPlan]) -> PhysicalPlan:
        """Return the same operator over another input."""
        (child,) = children
        return replace(self, child=child)


@dataclass(frozen=True)
class BinaryExec(PhysicalPlan):
    """The base class of operators with two inputs, the fields ``left`` and ``right``."""

    left: PhysicalPlan
    right: PhysicalPlan

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        """The inputs: first the left one, then the right one."""
        return (self.left, self.right)

    def with_children(self, children: Sequence[PhysicalPlan]) -> PhysicalPlan:
        """Return the same operator over other inputs."""
        left, right = children
        return replace(self, left=left, right=right)


def clustered_keys(first: Sequence[Expr], then: Sequence[Expr]) -> list[frozenset[Expr]]:
    """Return the sets of keys by which rows are clustered if they are sorted by ``first`` and then by ``then``.

    Rows sorted by (a, b) and then by (c, d) are clustered by {a, b}, {a, b, c} and {a, b, c, d}, but not by {b, c}.
    """
    prefixes = [frozenset((*first, *then[:i])) for i in range(len(then) + 1)]
    return [keys for keys in prefixes if keys]


def walk_operators(plan: PhysicalPlan, depth: int = 0) -> Iterator[tuple[PhysicalPlan, int]]:
    """Yield the operators of a plan with their depth, parents first."""
    yield plan, depth
    for child in plan.children:
        yield from walk_operators(child, depth + 1)
