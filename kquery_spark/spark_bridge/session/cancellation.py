"""Cancels work in the driver like a Spark job: by job group, tag, session, all at once, or Ctrl-C.

The JVM cannot cancel work that has no Spark job, and does not notify Python of a cancellation. So PySpark's cancelling
methods are wrapped once, when the driver first has such work. A wrapper stops the work that the method would stop if it were
a Spark job, and then calls the original method. PySpark's Ctrl-C handler calls one of these methods. A cancellation by JVM
code is not noticed, but work in the driver has a time limit anyway.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from traceback import clear_frames
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from kquery_spark.run_control import RunControl, RunStopped
from kquery_spark.spark_bridge.session.bridge import get_bridge, session_identity

_GROUP = "spark.jobGroup.id"
_TAGS = "spark.job.tags"


@dataclass(frozen=True, eq=False)
class _Work:
    """Work of one thread: the control that stops it, and JVM objects with the thread's current job group and tags.

    session_tags: None in versions of Spark in which sessions have no tags.
    """

    control: RunControl
    session: str
    properties: Any
    session_tags: Any

    def has_group(self, group: str) -> bool:
        return bool(self.properties.getProperty(_GROUP) == group)

    def has_job_tag(self, tag: str) -> bool:
        return tag in str(self.properties.getProperty(_TAGS) or "").split(",")

    def has_session_tag(self, session: SparkSession, tag: str) -> bool:
        ours = self.session == session_identity(session)
        return ours and self.session_tags is not None and bool(self.session_tags.contains(tag))


@dataclass(frozen=True)
class _Handles:
    """JVM objects of a session that all work needs. tags: None if sessions have no tags."""

    identity: str
    context: Any
    tags: Any


_running: set[_Work] = set()
_lock = threading.RLock()  # reentrant, because the Ctrl-C handler may run in a thread that holds it
_handles: weakref.WeakKeyDictionary[SparkSession, _Handles] = weakref.WeakKeyDictionary()
_wrapped = False


@contextmanager
def cancellable(spark: SparkSession, control: RunControl) -> Iterator[None]:
    """Let PySpark's cancelling methods stop this thread's work; raises what Spark raises for a cancelled job then."""
    _wrap_all()
    handles = _handles_of(spark)
    tags = None if handles.tags is None else handles.tags.get()
    work = _Work(control, handles.identity, handles.context.getLocalProperties(), tags)
    with _lock:
        _running.add(work)
    try:
        yield
        return
    except RunStopped as stopped:
        if control.cancelled is None:
            raise
        clear_frames(stopped.__traceback__)  # releases the memory of their local variables
    finally:
        with _lock:
            _running.discard(work)
    raise _as_spark(spark, control.cancelled)


def _handles_of(spark: SparkSession) -> _Handles:
    handles = _handles.get(spark)
    if handles is None:
        session: Any = spark._jsparkSession
        context: Any = spark.sparkContext._jsc.sc()
        tags = session.managedJobTags() if get_bridge(spark).api.session_tags else None
        handles = _Handles(session_identity(spark), context, tags)
        _handles[spark] = handles
    return handles


def _as_spark(spark: SparkSession, reason: str) -> Exception:
    """The error of a cancelled Spark job, without a job number."""
    jvm: Any = spark.sparkContext._jvm
    cancelled = jvm.org.apache.spark.errors.SparkCoreErrors.sparkJobCancelled(-1, reason, None)
    error: Exception = Py4JJavaError("An action was cancelled in the driver.\n", cancelled)
    return error


def _stop(matches: Callable[[_Work], bool], reason: str) -> None:
    with _lock:
        running = list(_running)
    for work in running:
        # An error of the JVM is ignored, because Spark's own jobs still have to be cancelled.
        with contextlib.suppress(Exception):
            if matches(work):
                work.control.cancel(reason)


def _wrap_all() -> None:
    global _wrapped
    with _lock:
        if _wrapped:
            return
        _wrapped = True
    _wrap(SparkContext, "cancelAllJobs", lambda work, _: True, "as part of cancellation of all jobs")
    _wrap(
        SparkContext,
        "cancelJobGroup",
        lambda work, _, group: work.has_group(group),
        "part of cancelled job group {}",
    )
    _wrap(
        SparkContext,
        "cancelJobsWithTag",
        lambda work, _, tag: work.has_job_tag(tag),
        "part of cancelled job tags {}",
    )
    _wrap(
        SparkSession,
        "interruptAll",
        lambda work, session: work.session == session_identity(session),
        "by interruptAll",
    )
    _wrap(
        SparkSession,
        "interruptTag",
        lambda work, session, tag: work.has_session_tag(session, tag),
        "by interruptTag {}",
    )


def _wrap(cls: type, name: str, matches: Callable[..., bool], reason: str) -> None:
    original = getattr(cls, name)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def cancel(self: Any, *args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(TypeError):  # PySpark itself rejects a call with wrong arguments
            _, *given = signature.bind(self, *args, **kwargs).arguments.values()
            _stop(lambda work: matches(work, self, *given[:1]), reason.format(*given))
        return original(self, *args, **kwargs)

    setattr(cls, name, cancel)
