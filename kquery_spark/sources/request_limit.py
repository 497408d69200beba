"""A time limit for requests to other filesystems, which their clients do not have.

Arrow's clients give up only when a server sends nothing for a while, and try again then. A server that sends a few bytes a
second occupies a task for hours. So a thread of its own makes each request, and the reader waits for it no longer than
the limit. The thread ends with the request.
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
    """Set the limit of this process in seconds; 0 is none."""
    global _seconds
    _seconds = seconds


def within_limit(path: str, request: Callable[[], T]) -> T:
    """The result of a request about a file or directory of another filesystem; SourceError when it takes too long."""
    seconds = _seconds
    if not seconds:
        return request()
    answer: Future[T] = Future()
    # Not a pool: its threads would be waited for when the process ends.
    threading.Thread(target=_answer, args=(answer, request), name="kquery-request", daemon=True).start()
    try:
        return answer.result(seconds)
    except FutureTimeoutError:
        if answer.done():  # the request itself raised the error, or has ended since the wait did
            return answer.result()
        raise SourceError(
            f"a request for {path} took longer than {seconds} seconds, the limit that {SETTING} sets"
        ) from None


def _answer(answer: Future[T], request: Callable[[], T]) -> None:
    try:
        answer.set_result(request())
    except BaseException as error:
        answer.set_exception(error)
