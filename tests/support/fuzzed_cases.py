"""Runs the cases of a fuzzer in child processes, and limits the time of a case."""

from __future__ import annotations

import math
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import TypeVar

START_SECONDS = 300  # the limit for the start and the imports of a child process, on a busy machine

T = TypeVar("T")
Cases = Callable[[int, int, int], Iterator[T]]
"""``cases(start, count, seed)`` yields results of cases ``start`` to ``count - 1``; each depends on number and seed only."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeoutError if the body takes longer than ``seconds``. Threads other than the main one run without a limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def raise_timeout(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    previous = signal.signal(signal.SIGALRM, raise_timeout)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def run_in_children(
    cases: Cases[T], count: int, seed: int, case_seconds: float, end: float = math.inf
) -> Iterator[tuple[int, T | None, str]]:
    """Yield the number, the result, and the problem (or "") of each case until ``end``, a time of ``time.monotonic``.

    A case that takes more than ``case_seconds`` or kills its child process has a problem instead of a result. A new child
    process then continues with the next case.
    """
    number = 0
    while number < count and time.monotonic() < end:
        receiver, sender = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.get_context("spawn").Process(
            target=_send_results, args=(sender, cases, number, count, seed), daemon=True
        )
        child.start()
        sender.close()
        limit_seconds = float(START_SECONDS)
        try:
            while number < count:
                if not receiver.poll(max(0.0, min(limit_seconds, end - time.monotonic()))):
                    if time.monotonic() < end:
                        yield number, None, f"no result after {limit_seconds:g} s"
                        number += 1
                    break
                try:
                    result = receiver.recv()
                except EOFError:
                    child.join()
                    yield number, None, f"the child ended with {child.exitcode}"
                    number += 1
                    break
                yield number, result, ""
                number += 1
                limit_seconds = case_seconds
        finally:
            child.kill()
            child.join()
            receiver.close()


def _send_results(sender: Connection, cases: Cases[T], start: int, count: int, seed: int) -> None:
    for result in cases(start, count, seed):
        sender.send(result)
