"""Stop: ends a query that runs in this process early, and says why."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kquery_spark.errors import ExecutionError
from kquery_spark.run_control import RunControl


def _never() -> str:
    return ""


class Stop:
    """Set from any thread; the query's tasks look at ``control``, which it cancels.

    poll: asked now and then by the thread that consumes the result, for whatever only that thread may ask (whether a
    client is still connected); a text stops the query and says why. small_batches: as of ``RunControl``.
    """

    def __init__(self, poll: Callable[[], str] = _never, small_batches: bool = False) -> None:
        self.control = RunControl(small_batches=small_batches)
        self._poll = poll
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []

    @property
    def reason(self) -> str:
        """Why the query has to end; empty while it may go on."""
        return self.control.cancelled or ""

    def set(self, reason: str) -> None:
        """End the query; the first reason counts."""
        with self._lock:
            if self.is_set():
                return
            self.control.cancel(reason)
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_set(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` once the query has to end, from the thread that ends it; at once if it has ended."""
        with self._lock:
            if not self.is_set():
                self._callbacks.append(callback)
                return
        callback()

    def is_set(self) -> bool:
        """Whether the query has to end."""
        return self.control.cancelled is not None

    def check(self) -> None:
        """Raise where the query has to end; for the consuming thread."""
        self.poll()
        if self.is_set():
            raise ExecutionError("OPERATION_CANCELED", f"The query was stopped: {self.reason}.")

    def poll(self) -> None:
        """End the query if the consuming thread, which calls this, finds a reason to."""
        if not self.is_set() and (reason := self._poll()):
            self.set(reason)
