"""TaskQueues: limits how far the tasks of a streamed result run ahead of the consumer, in batches and in bytes.

A task waits for room *before* it computes its next batch, so that a blocked task holds no finished batch outside of its
queue. Three rules decide whether it may go on:

1. The task that the consumer waits for may always go on. A query therefore always ends, even if no budget is left.
2. Any other task may be a few batches ahead of the consumer.
3. A query may hold as many bytes as the budget still has free. With a budget of 512 MiB, a single query stops at 256 MiB
   (256 held, 256 free), and each of three equal queries stops at 128 MiB (384 held, 128 free). So queries with slow
   consumers never use up the budget, and a later query can start.

Because of rule 1, the queries together can exceed the budget by at most one batch each.

When Python exits, it first joins the threads of all pools, and only then deletes the last readers, which would stop their
tasks. So a task stops by itself if Python exits and no thread is left that can read its result (``_is_abandoned``).
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  registers its exit hook before the one below
import threading
from collections import deque
from threading import _register_atexit  # type: ignore[attr-defined]

from kquery_spark.errors import ExecutionError
from kquery_spark.runtime.local.stop import Stop
from kquery_spark.types.batch import Batch

POLL_SECONDS = 0.1
"""How often a waiting thread checks whether to stop; Python handles Ctrl-C then, too."""
OWN_BUDGET_BYTES = 512 << 20
"""The budget of a query that shares it with no other query."""
_BATCHES_AHEAD = 4  # the batches that each running task may have in its queue
_FIRST_BATCH_BYTES = 1 << 20  # the assumed size of the next batch while there was no batch yet

_exiting = threading.Event()
# Python calls these hooks in reverse order: this one before the one of ``concurrent.futures``, which joins the threads.
_register_atexit(_exiting.set)


class ReadAheadBudget:
    """Bytes that the results of all queries together may hold before their consumers read them."""

    def __init__(self, nbytes: int = OWN_BUDGET_BYTES) -> None:
        self.nbytes = nbytes
        self.held = 0
        self.lock = threading.Lock()

    @property
    def free(self) -> int:
        """Bytes that no query holds; negative when large batches exceed the budget."""
        return self.nbytes - self.held


class TaskQueues:
    """One queue per task between the tasks of a query and its consumer. Call ``close`` at the end.

    A queue item is a batch, an error, or None for the end. stop: wakes up both sides when it is set. Queued batches are
    then dropped at once, even if the consumer never asks for another batch.
    """

    def __init__(self, tasks: int, budget: ReadAheadBudget, stop: Stop | None) -> None:
        self._budget = budget
        self._stop = stop
        # other queries that free budget do not notify this one, which sees it at its next poll
        self._changed = threading.Condition(budget.lock)
        self._queues: list[deque[Batch | BaseException | None]] = [deque() for _ in range(tasks)]
        self._reserved = [0] * tasks
        self._delivered = 0  # bytes of the batch that the consumer works on
        self._held = 0  # all bytes of this query: queued, delivered and reserved
        self._expected = _FIRST_BATCH_BYTES
        self._awaited = -1  # the task that the consumer waits for
        self._consumer = threading.current_thread()
        self._closed = False
        if stop is not None:
            stop.on_set(self.close)

    def wait_for_room(self, task: int) -> bool:
        """Wait until a task may compute its next batch, and reserve bytes for it. Return False if the query ends first."""
        with self._changed:
            while not self._closed:
                if self._is_abandoned():
                    self._queues[task].append(
                        ExecutionError(
                            "OPERATION_CANCELED", "Python is exiting, and the reading thread has ended"
                        )
                    )
                    return False
                if self._may_compute(task):
                    break
                self._changed.wait(POLL_SECONDS)
            if self._closed:
                return False
            self._reserved[task] = self._expected
            self._hold(self._expected)
            return True

    def put(self, task: int, batch: Batch) -> None:
        """Queue the computed batch. Its actual size replaces the bytes that ``wait_for_room`` reserved."""
        nbytes = batch.nbytes
        with self._changed:
            if not self._closed:
                self._expected = nbytes
                self._hold(nbytes - self._reserved[task])
                self._reserved[task] = 0
                self._queues[task].append(batch)
                self._changed.notify_all()

    def end(self, task: int, error: BaseException | None = None) -> None:
        """Queue the end of a task, which has no more batches, or the error that it failed with."""
        with self._changed:
            if not self._closed:
                self._hold(-self._reserved[task])
                self._reserved[task] = 0
                self._queues[task].append(error)
                self._changed.notify_all()

    def next(self, task: int) -> Batch | None:
        """Return the next batch of a task, or None at its end. Raises the task's error, or an error if the query is stopped.

        The previous batch counts as consumed, and its bytes are released.
        """
        self._consume()
        self._consumer = threading.current_thread()
        while True:
            if self._stop is not None:
                self._stop.check()
            with self._changed:
                if self._queues[task]:
                    break
                self._awaited = task
                self._changed.notify_all()
                self._changed.wait(POLL_SECONDS)
        return self._deliver(task)

    def close(self) -> None:
        """Drop all batches and end the tasks at their next batch."""
        with self._changed:
            self._closed = True
            self._hold(-self._held)
            self._delivered = 0
            for queue in self._queues:
                queue.clear()
            self._changed.notify_all()

    def _may_compute(self, task: int) -> bool:
        queued = len(self._queues[task])
        if task == self._awaited and not queued:
            return True
        return queued < _BATCHES_AHEAD and self._held + self._expected <= self._budget.free

    def _is_abandoned(self) -> bool:
        """Return True if Python is exiting and the thread that reads the result has ended or is about to end.

        The main thread and daemons end when Python exits. Other threads may still read the result to its end.
        """
        if not _exiting.is_set():
            return False
        thread = self._consumer
        return thread is threading.main_thread() or thread.daemon or not thread.is_alive()

    def _consume(self) -> None:
        with self._changed:
            if self._delivered:
                self._hold(-self._delivered)
                self._delivered = 0
                self._changed.notify_all()

    def _deliver(self, task: int) -> Batch | None:
        with self._changed:
            self._awaited = -1
            item = self._queues[task].popleft() if self._queues[task] else None
            if isinstance(item, Batch):
                self._delivered = item.nbytes
                self._changed.notify_all()
        if item is None and self._stop is not None:
            self._stop.check()  # a stopped query has an empty queue, which is not the end of the task
        if isinstance(item, BaseException):
            if self._stop is not None and self._stop.is_set():
                self._stop.check()
            raise item
        return item

    def _hold(self, nbytes: int) -> None:
        self._held += nbytes
        self._budget.held += nbytes
