"""Limits the time of requests to other filesystems, because Arrow's clients have no such limit.

Arrow's clients time out only if a server sends nothing for a while, and then they retry. A server that sends a few bytes per
second would occupy a task for hours. So each request runs in a thread of its own, and the reader stops waiting after the
limit. The thread ends when the request ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TypeVar

from kquery_spark.config.engine import DEFAULT_REQUEST_SECONDS
from kquery_spark.errors import SourceError

T = TypeVar("T")

SETTING = "spark.kquery.requestSeconds"

_seconds = DEFAULT_REQUEST_SECONDS


def limit_requests(seconds: int) -> None:
    """Set the limit of this process in seconds; 0 means no limit."""
    global _seconds
    _seconds = seconds


def within_limit(path: str, request: Callable[[], T]) -> T:
    """Run a request for a path on another filesystem; raises SourceError if it takes too long."""
    seconds = _seconds
    if not seconds:
        return request()
    answer: Future[T] = Future()
    # Daemon threads instead of a pool, because the process would wait for a pool's threads when it ends.
    threading.Thread(target=_answer, args=(answer, request), name="kquery-request", daemon=True).start()
    try:
        return answer.result(seconds)
    except FutureTimeoutError:
        if answer.done():  # the request itself raised this error, or it ended right after the timeout
            return answer.result()
        raise SourceError(
            f"a request for {path} took longer than {seconds} seconds, the limit that {SETTING} sets"
        ) from None


def _answer(answer: Future[T], request: Callable[[], T]) -> None:
    try:
        answer.set_result(request())
    except BaseException as error:
        answer.set_exception(error)
