"""Stop: ends a query of this process early, with a reason."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kquery_spark.errors import ExecutionError
from kquery_spark.run_control import RunControl


def _never() -> str:
    return ""


class Stop:
    """A flag that any thread can set. It cancels ``control``, which the query's tasks check.

    poll: called periodically in the thread that consumes the result, for checks that only this thread may make (whether a
    client is still connected). If it returns a non-empty string, the query stops for this reason. small_batches: see
    ``RunControl``.
    """

    def __init__(self, poll: Callable[[], str] = _never, small_batches: bool = False) -> None:
        self.control = RunControl(small_batches=small_batches)
        self._poll = poll
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []

    @property
    def reason(self) -> str:
        """The reason why the query has to end; empty while it may go on."""
        return self.control.cancelled or ""

    def set(self, reason: str) -> None:
        """End the query. Only the first reason is recorded."""
        with self._lock:
            if self.is_set():
                return
            self.control.cancel(reason)
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_set(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` in the thread that ends the query; immediately if the query has already been ended."""
        with self._lock:
            if not self.is_set():
                self._callbacks.append(callback)
                return
        callback()

    def is_set(self) -> bool:
        """Return whether the query has to end."""
        return self.control.cancelled is not None

    def check(self) -> None:
        """Raise an ExecutionError if the query has to end. Only the consuming thread may call this."""
        self.poll()
        if self.is_set():
            raise ExecutionError("OPERATION_CANCELED", f"The query was stopped: {self.reason}.")

    def poll(self) -> None:
        """End the query if the ``poll`` function returns a reason. Only the consuming thread may call this."""
        if not self.is_set() and (reason := self._poll()):
            self.set(reason)
