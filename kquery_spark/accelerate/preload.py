"""Imports the planner in a thread, while the program reads its first files.

``enable_everywhere`` starts no thread. No session exists yet, so PySpark still has to fork in order to start the JVM, and
forks wait until the thread has ended (``_wait_for_import``).
"""

from __future__ import annotations

import importlib
import os
import threading
from contextlib import suppress

from kquery_spark.accelerate.options import Fallback
from kquery_spark.spark_bridge.session.failures import warn_user

_MODULES = ("kquery_spark.accelerate.api", "kquery_spark.accelerate.statements")
_FORK_WAIT_SECONDS = 10.0

_lock = threading.Lock()
_thread: threading.Thread | None = None


def import_planner_in_background() -> None:
    """Start a thread that imports what the first accelerated action needs, unless this process has already started one.

    The thread ignores errors: ``import_planner`` repeats the import and reports them.
    """
    global _thread
    with _lock:
        if _thread is not None:
            return
        # Not a daemon thread: Python must not shut down while a thread runs the initialization of a C library.
        _thread = threading.Thread(target=_import_quietly, name="kquery-import")
        with suppress(RuntimeError):  # no more threads can start
            _thread.start()
            if hasattr(os, "register_at_fork"):  # Windows has no fork
                os.register_at_fork(before=_wait_for_import)


def import_planner(fallback: Fallback) -> bool:
    """Import what an action needs, or wait until the thread has imported it.

    Return False, with a warning, if this fails; with ``fallback="error"``, raise the error instead.
    """
    try:
        _import_modules()
    except Exception as error:
        if fallback == "error":
            raise
        reason = f"the engine could not be imported: {type(error).__name__}: {error}"
        warn_user(f"Spark runs the queries of this session: {reason}")
        return False
    return True


def _import_modules() -> None:
    for name in _MODULES:
        importlib.import_module(name)


def _import_quietly() -> None:
    with suppress(Exception):
        _import_modules()


def _wait_for_import() -> None:
    """Wait for the thread before a fork: in the child, the locks of half-imported modules would never be released."""
    if _thread is not None and _thread is not threading.current_thread():
        # bounded, because the thread may wait for a module that the forking thread is importing
        _thread.join(_FORK_WAIT_SECONDS)
