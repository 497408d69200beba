"""What the tasks of streamed queries compute ahead of their consumers stays within a budget that they share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest

from kquery_spark.errors import ExecutionError
from kquery_spark.runtime.local import ReadAheadBudget, Stop
from kquery_spark.runtime.local.read_ahead import TaskQueues
from kquery_spark.types.batch import Batch

MIB = 1 << 20
BATCH = Batch(pa.schema([("x", pa.int64())]), (pa.array(np.zeros(MIB // 8, np.int64)),), MIB // 8)


def eventually(condition: Callable[[], bool], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


class Query:
    """A query whose tasks produce batches of one MiB in threads. computed: how many there were."""

    def __init__(self, budget: ReadAheadBudget, stop: Stop | None, tasks: int, batches: int) -> None:
        self.ahead, self.computed = TaskQueues(tasks, budget, stop), 0
        self.threads = [threading.Thread(target=self._produce, args=(t, batches)) for t in range(tasks)]
        for thread in self.threads:
            thread.start()

    def _produce(self, task: int, batches: int) -> None:
        for _ in range(batches):
            if not self.ahead.wait_for_room(task):
                return
            self.computed += 1
            self.ahead.put(task, BATCH)
        if self.ahead.wait_for_room(task):
            self.ahead.end(task)

    def ended(self) -> bool:
        return not any(thread.is_alive() for thread in self.threads)


@contextmanager
def running(
    budget: ReadAheadBudget, tasks: int = 2, batches: int = 50, stop: Stop | None = None
) -> Iterator[Query]:
    query = Query(budget, stop, tasks, batches)
    try:
        yield query
    finally:
        query.ahead.close()
        assert eventually(query.ended)


def test_one_query_alone_uses_half_of_the_budget_and_reads_all_its_batches():
    budget = ReadAheadBudget(8 * MIB)
    with running(budget, tasks=2, batches=20) as query:
        assert eventually(lambda: query.computed == 4)
        time.sleep(0.3)
        assert query.computed == 4 and budget.held == 4 * MIB
        for task in range(2):
            for _ in range(20):
                assert query.ahead.next(task) is BATCH
            assert query.ahead.next(task) is None
    assert budget.held == 0


def test_a_task_is_four_batches_ahead_at_most():
    with running(ReadAheadBudget(1 << 30), tasks=1) as query:
        assert eventually(lambda: query.computed == 4)
        time.sleep(0.3)
        assert query.computed == 4


def test_queries_whose_consumers_do_not_read_leave_others_able_to_end():
    budget = ReadAheadBudget(4 * MIB)
    with running(budget), running(budget), running(budget):
        assert eventually(lambda: budget.held >= 3 * MIB)
        time.sleep(0.3)
        assert budget.held <= budget.nbytes
        with running(budget, tasks=3, batches=10) as active:
            for task in range(3):
                for _ in range(10):
                    assert active.ahead.next(task) is BATCH
                    # its own batch, and the one that its consumer waits for
                    assert budget.held <= budget.nbytes + 2 * MIB
                assert active.ahead.next(task) is None
    assert budget.held == 0


def test_a_batch_larger_than_the_budget_is_computed_when_its_consumer_asks():
    budget = ReadAheadBudget(MIB // 4)
    with running(budget, tasks=2, batches=3) as query:
        time.sleep(0.3)
        assert query.computed == 0
        assert [query.ahead.next(task) for task in (0, 0, 0, 1, 1, 1)] == [BATCH] * 6
        assert query.ahead.next(1) is None


def test_a_stopped_query_drops_its_batches_though_its_consumer_never_asks_again():
    budget, stop = ReadAheadBudget(8 * MIB), Stop()
    with running(budget, stop=stop) as query:
        assert query.ahead.next(0) is BATCH
        assert eventually(lambda: budget.held >= 2 * MIB)
        stop.set("its client is gone")
        assert budget.held == 0 and eventually(query.ended)
        with pytest.raises(ExecutionError, match="its client is gone"):
            query.ahead.next(0)


def test_a_consumer_that_waits_looks_at_what_ends_the_query():
    stop = Stop(lambda: "its client is gone")
    with (
        running(ReadAheadBudget(MIB), tasks=1, batches=0, stop=stop) as query,
        pytest.raises(ExecutionError, match="its client is gone"),
    ):
        query.ahead.next(0)


def test_an_error_of_a_task_is_raised_after_its_batches():
    ahead = TaskQueues(1, ReadAheadBudget(8 * MIB), None)
    assert ahead.wait_for_room(0)
    ahead.put(0, BATCH)
    ahead.end(0, ValueError("broken"))
    assert ahead.next(0) is BATCH
    with pytest.raises(ValueError, match="broken"):
        ahead.next(0)
