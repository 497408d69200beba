"""Stop: ends a query that runs in this process early, and says why."""

from __future__ import annotations

from collections.abc import Callable

from kquery_spark.errors import ExecutionError
from kquery_spark.run_control import RunControl


def _never() -> str:
    return ""


class Stop:
    """Set from any thread; the query's tasks look at ``control``, which it cancels.

    poll: asked now and then by the thread that consumes the result, for whatever only that thread may ask (whether a
    client is still connected); a text stops the query and says why.
    """

    def __init__(self, poll: Callable[[], str] = _never) -> None:
        self.control = RunControl()
        self._poll = poll

    @property
    def reason(self) -> str:
        """Why the query has to end; empty while it may go on."""
        return self.control.cancelled or ""

    def set(self, reason: str) -> None:
        """End the query; the first reason counts."""
        if not self.is_set():
            self.control.cancel(reason)

    def is_set(self) -> bool:
        """Whether the query has to end."""
        return self.control.cancelled is not None

    def check(self) -> None:
        """Raise where the query has to end; for the consuming thread."""
        if not self.is_set():
            reason = self._poll()
            if not reason:
                return
            self.set(reason)
        raise ExecutionError("OPERATION_CANCELED", f"The query was stopped: {self.reason}.")
