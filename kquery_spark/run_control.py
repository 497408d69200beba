"""RunControl: the limits of a query run, and the request to stop it.

Operators and kernels find the control of their run in a context variable. They report the rows and bytes that they produce,
and call ``reserve`` before an allocation whose size depends on values. Workers have no RunControl, so a check is only one
lookup there. But the functions that ``run_in_parts`` calls have a ``PartControl`` in every process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_LARGEST_ALLOCATION_SHARE = 4  # one allocation may take a quarter of the limit
_NEGLIGIBLE_BYTES = 1 << 20


class RunStopped(BaseException):
    """Ends a run before its result is complete. It is not an ``Exception``, so ``except Exception`` does not catch it."""


class LimitReached(RunStopped):
    """The run would use more than its control allows."""


class RunCancelled(RunStopped):
    """A caller cancelled the run; the message names the caller."""


class RunControl:
    """Counts what the tasks of one run produce, and stops them at a limit. Thread-safe.

    max_rows, max_bytes: limits for the output of all operators together; None: no limit.
    within: the control of the run that this one is part of; its limits apply.
    small_batches: whether operators should produce small batches, because the limit of bytes is low or many runs share the
    memory.
    negligible_bytes: the size of an allocation does not have to be computed exactly if an upper bound is below this number.
    """

    def __init__(
        self,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        within: RunControl | None = None,
        small_batches: bool = False,
    ) -> None:
        self.max_rows: int | None = max_rows if within is None else within.max_rows
        self.max_bytes: int | None = max_bytes if within is None else within.max_bytes
        self.small_batches: bool = small_batches if within is None else within.small_batches
        self._within = within
        self.negligible_bytes = _NEGLIGIBLE_BYTES
        self.rows = 0
        self.nbytes = 0
        self.splits = 0
        self._deadline: float | None = None
        self._lock = threading.Lock()
        self._stop: tuple[type[RunStopped], str] | None = None
        self.cancelled: str | None = None

    def cancel(self, reason: str) -> None:
        """Stop the run's tasks at their next check; this takes precedence over limits."""
        self.cancelled = reason
        self._stop = RunCancelled, reason

    def limit_time(self, seconds: float) -> None:
        """Stop the run this many seconds from now."""
        self._deadline = time.monotonic() + seconds

    def check(self) -> None:
        """Raise RunStopped if the run was cancelled or exceeds a limit."""
        if self._stop is None and self._deadline is not None and time.monotonic() > self._deadline:
            self._stop = LimitReached, "time"
        if self._stop is not None:
            kind, reason = self._stop
            raise kind(reason)
        if self._within is not None:
            self._within.check()

    def add(self, rows: int, nbytes: int = 0) -> None:
        """Count rows that an operator has produced or is about to produce."""
        if self._within is not None:
            self._within.add(rows, nbytes)
            self.check()
            return
        with self._lock:
            self.rows += rows
            self.nbytes += nbytes
            if self._stop is None and self.max_rows is not None and self.rows > self.max_rows:
                self._stop = LimitReached, "rows"
            if self._stop is None and self.max_bytes is not None and self.nbytes > self.max_bytes:
                self._stop = LimitReached, "bytes"
        self.check()

    def count_splits(self, count: int) -> None:
        """Count splits, or pieces of them, that a scan has read."""
        if self._within is not None:
            self._within.count_splits(count)
        with self._lock:
            self.splits += count

    @property
    def limits_allocations(self) -> bool:
        """True if ``reserve`` may raise an error, so that callers should compute the sizes of their allocations."""
        return self.max_bytes is not None

    def reserve(self, nbytes: int) -> None:
        """Raise LimitReached if one allocation of this size is too large; counts nothing."""
        if self.max_bytes is not None and nbytes * _LARGEST_ALLOCATION_SHARE > self.max_bytes:
            self._stop = self._stop or (LimitReached, "bytes")
        self.check()

    def controlled(self, function: Callable[P, R]) -> Callable[P, R]:
        """Wrap a function to run under this control, in a copy of this thread's context (numpy and decimal settings)."""
        context = copy_context()
        context.run(_CURRENT.set, self)

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return context.run(function, *args, **kwargs)

        return call


_CURRENT: ContextVar[RunControl | None] = ContextVar("kquery_run_control", default=None)


def current_control() -> RunControl | None:
    """Return the control of the current run, or None."""
    return _CURRENT.get()


def call_under(control: RunControl, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function while ``control`` is the current control, and restore the previous control afterward."""
    token = _CURRENT.set(control)
    try:
        return function(*args, **kwargs)
    finally:
        _CURRENT.reset(token)


def check_run() -> None:
    """Raise RunStopped if the current run was cancelled or exceeds a limit."""
    control = _CURRENT.get()
    if control is not None:
        control.check()


def bounding_control() -> RunControl | None:
    """Return the current control if it limits the size of allocations, or None."""
    control = _CURRENT.get()
    return control if control is not None and control.limits_allocations else None


def needs_small_batches() -> bool:
    """True if the operators of this run should make small batches (see ``RunControl``)."""
    control = _CURRENT.get()
    return control is not None and control.small_batches
