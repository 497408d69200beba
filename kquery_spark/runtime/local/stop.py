"""Stop: tells the tasks of a query that runs in this process to end early, and why."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kquery_spark.errors import ExecutionError


def _never() -> str:
    return ""


class Stop:
    """Set from any thread; tasks look at it between batches.

    poll: asked now and then by the thread that consumes the result, for whatever only that thread may ask (whether a
    client is still connected); a text stops the query and says why.
    """

    def __init__(self, poll: Callable[[], str] = _never) -> None:
        self.reason = ""
        self._event = threading.Event()
        self._poll = poll

    def set(self, reason: str) -> None:
        """End the query; the first reason counts."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()

    def is_set(self) -> bool:
        """Whether the query has to end."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise where the query has to end; for the consuming thread."""
        if not self._event.is_set():
            reason = self._poll()
            if not reason:
                return
            self.set(reason)
        raise ExecutionError("OPERATION_CANCELED", f"The query was stopped: {self.reason}.")
