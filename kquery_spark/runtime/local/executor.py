"""LocalExecutor: runs all stages in threads of this process.

Arrow, numpy, and the compiled loops release the interpreter lock in their kernels, so the threads run in parallel. They
wait for each other in the Python code between these calls, which is why scans read small row groups together.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.config.engine import EngineConfig
from kquery_spark.config.memory import ContainerFacts, with_budget
from kquery_spark.physical.operators import TaskContext
from kquery_spark.run_control import RunControl, current_control
from kquery_spark.runtime.executor import Executor, first_rows
from kquery_spark.runtime.heap import tune_user_heap
from kquery_spark.runtime.local.read_ahead import POLL_SECONDS, ReadAheadBudget, TaskQueues
from kquery_spark.runtime.local.stop import Stop
from kquery_spark.runtime.split_progress import split_progress
from kquery_spark.runtime.task_meter import TaskMeter
from kquery_spark.stages.graph import Stage, StageGraph
from kquery_spark.stages.payload import partitioned
from kquery_spark.types.batch import Batch

Inputs = Mapping[str, Callable[[], Iterator[Batch]]]
Exchanged = dict[str, list[list[Batch]]]
R = TypeVar("R")


class LocalExecutor(Executor):
    """Runs the stages one after another, and the tasks of each stage in a thread pool.

    schema: the names and nullability of the result (default: those of the last stage). stop: ends the query early, from any
    thread. inputs: readers of the batches that come from outside of the stage graph, by input id. meter: receives the
    metrics of the operators. budget: limits the batches that are computed ahead of the consumer; queries can share it.
    """

    def __init__(
        self,
        graph: StageGraph,
        config: EngineConfig,
        schema: pa.Schema | None = None,
        stop: Stop | None = None,
        inputs: Inputs | None = None,
        meter: TaskMeter | None = None,
        budget: ReadAheadBudget | None = None,
    ) -> None:
        tune_user_heap()
        self._graph = graph
        self._config = config
        self._schema = schema
        self._stop = stop
        self._inputs = inputs or {}
        self._meter = meter
        self._budget = budget or ReadAheadBudget()

    @override
    def table(self, limit: int | None = None) -> pa.Table:
        """Return the rows in order. The first error of any task, or of this thread (Ctrl-C), stops the run and is raised."""
        if limit is not None:
            with closing(self.batches()) as stream:
                return pa.Table.from_batches(first_rows(stream, limit), schema=self._result_schema)
        result = self._graph.result
        with (
            _threads(self._config, self._stop, self._meter) as threads,
            split_progress(self._graph.stages, self._config, threads.control),
        ):
            pieces = _run_tasks(threads, result, self._result_tasks(threads))
        batches = [batch.to_arrow() for task in pieces for _, batch in task]
        table = pa.Table.from_batches(batches, schema=result.plan.schema)
        return table if self._schema is None else pa.Table.from_arrays(table.columns, schema=self._schema)

    @override
    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Yield the batches in order, each as soon as it is computed. Tasks of the last stage run a few batches ahead.

        Nothing runs before the first batch is read. Closing the iterator stops the tasks.
        """
        with (
            _threads(self._config, self._stop, self._meter) as threads,
            closing(
                _stream_tasks(threads, self._graph.result, self._result_tasks(threads), self._budget)
            ) as stream,
        ):
            for batch in stream:
                rows = batch.to_arrow()
                if self._schema is not None:
                    rows = pa.RecordBatch.from_arrays(rows.columns, schema=self._schema)
                yield rows

    @override
    def reader(self) -> pa.RecordBatchReader:
        """Return a reader that streams ``batches``."""
        return pa.RecordBatchReader.from_batches(self._result_schema, self.batches())

    @property
    def _result_schema(self) -> pa.Schema:
        return self._graph.result.plan.schema if self._schema is None else self._schema

    def _result_tasks(self, threads: _Threads) -> list[TaskContext]:
        """Run all stages but the last. Return the contexts of the last stage's tasks, which read the exchanged rows."""
        config = with_budget(self._config, ContainerFacts(tasks=self._config.parallelism))
        exchanged: Exchanged = {}
        *earlier, result = self._graph.stages
        for stage in earlier:
            assert stage.output is not None
            results = _run_tasks(threads, stage, _contexts(stage, config, exchanged, self._inputs))
            exchanged[stage.stage_id] = _by_target(results, stage.output.count)
        return _contexts(result, config, exchanged, self._inputs)


@dataclass(frozen=True)
class _Threads:
    """The thread pool of one run, its cancellation (``control``, ``stop``), and the meter that receives task metrics."""

    pool: ThreadPoolExecutor
    control: RunControl
    stop: Stop | None
    meter: TaskMeter | None

    def submit(self, function: Callable[..., R], *args: object) -> Future[R]:
        """Start a task under ``control``, with the caller's numpy and decimal settings."""
        return self.pool.submit(self.control.controlled(function), *args)


@contextmanager
def _threads(config: EngineConfig, stop: Stop | None, meter: TaskMeter | None) -> Iterator[_Threads]:
    """Provide the threads of one run, and join them at the end.

    If the ``with`` block is left early (by an error, Ctrl-C or a closed iterator), the running tasks are cancelled first.
    """
    control = RunControl(within=current_control() if stop is None else stop.control)
    pool = ThreadPoolExecutor(max_workers=max(1, config.parallelism), thread_name_prefix="kquery-task")
    try:
        yield _Threads(pool, control, stop, meter)
    except BaseException:
        control.cancel("the run was abandoned")
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _run_tasks(threads: _Threads, stage: Stage, contexts: list[TaskContext]) -> list[list[tuple[int, Batch]]]:
    futures = [threads.submit(_run_task, stage, context, threads.meter) for context in contexts]
    stop = threads.stop
    done, waiting = _ended(futures, stop)
    for future in waiting:
        future.cancel()
    # The tasks of a stopped query raise as well, but only ``check`` raises an error that a client understands.
    if stop is not None and stop.is_set():
        stop.check()
    for future in done:
        future.result()
    return [f.result() for f in futures]


def _ended(futures: list[Future[R]], stop: Stop | None) -> tuple[set[Future[R]], set[Future[R]]]:
    """Wait until all tasks are done or one has failed. Return the finished and the unfinished tasks.

    Raises if the query is stopped meanwhile.
    """
    done, waiting = wait(futures, POLL_SECONDS, return_when=FIRST_EXCEPTION)
    while waiting and not any(f.exception() for f in done):
        if stop is not None:
            stop.check()
        done, waiting = wait(futures, POLL_SECONDS, return_when=FIRST_EXCEPTION)
    return done, waiting


def _by_target(results: list[list[tuple[int, Batch]]], count: int) -> list[list[Batch]]:
    """Return the batches of each partition, from the (partition, batch) pairs of each task."""
    targets: list[list[Batch]] = [[] for _ in range(count)]
    for pieces in results:
        for target, batch in pieces:
            targets[target].append(batch)
    return targets


def _stream_tasks(
    threads: _Threads, stage: Stage, contexts: list[TaskContext], budget: ReadAheadBudget
) -> Generator[Batch, None, None]:
    """Yield the batches of all tasks in task order.

    The consumer reads task 0 to its end, then task 1, and so on. The tasks also start in this order, so the task that the
    consumer waits for is always running and never stuck behind others in the queue of the thread pool.
    """
    ahead = TaskQueues(len(contexts), budget, threads.stop)

    def produce(task: int, context: TaskContext) -> None:
        try:
            with closing(stage.plan.run(context)) as batches:
                while ahead.wait_for_room(task):
                    batch = next(batches, None)
                    if batch is None:
                        return ahead.end(task)
                    ahead.put(task, batch)
        except BaseException as error:
            ahead.end(task, error)
        finally:
            if threads.meter is not None:
                threads.meter.add(stage, context, 0)

    tasks = range(len(contexts))
    for task in tasks:
        threads.submit(produce, task, contexts[task])
    contexts.clear()  # so that a stopped query frees its input, even if its consumer never asks for another batch
    try:
        for task in tasks:
            while (batch := ahead.next(task)) is not None:
                yield batch
    finally:
        ahead.close()


def _contexts(stage: Stage, config: EngineConfig, exchanged: Exchanged, inputs: Inputs) -> list[TaskContext]:
    return [
        TaskContext(
            config=config,
            splits=splits.as_dict(),
            inputs={
                name: partial(iter, exchanged[name][task]) if name in exchanged else inputs[name]
                for name in stage.inputs
            },
        )
        for task, splits in enumerate(stage.tasks)
    ]


def _run_task(stage: Stage, context: TaskContext, meter: TaskMeter | None) -> list[tuple[int, Batch]]:
    batches = stage.plan.run(context)
    if stage.output is None:
        pieces = [(0, b) for b in batches]
    else:
        limits = context.config.payload_bytes, context.config.memory_bytes
        pieces = list(partitioned(batches, stage.output, stage.plan.schema, *limits))
    if meter is not None:
        meter.add(stage, context, 0)
    return pieces
