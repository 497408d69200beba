"""Spark's Python daemon with the engine already imported.

Workers are forked from the daemon. So they start with Arrow, numpy and the engine loaded, instead of importing them one by
one, and the garbage collector, which PySpark runs after every task, ignores these objects. On a local master, only the
engine's tasks use this daemon (see ``interpreter``). If ``spark.python.daemon.module`` is set to it, the users' Python
functions use it, too; for them it behaves like PySpark's own.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import socket
from typing import Protocol

from kquery_spark.config.environment import FOR_FUNCTIONS, WORKER_MARK
from kquery_spark.config.processor import use_fastest_sort
from kquery_spark.runtime.spark.archives import import_unpacked_pyspark


class _Worker(Protocol):
    """The type of PySpark's ``worker``: runs one task and returns 0, or the exit code of the process."""

    def __call__(self, sock: socket.socket, authenticated: bool) -> int: ...


def main() -> None:
    """Import the engine, then run ``pyspark.daemon``. If the workers are not the engine's, only run ``pyspark.daemon``."""
    if WORKER_MARK not in os.environ:
        runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
        return
    if os.environ[WORKER_MARK] != FOR_FUNCTIONS:  # for users' functions, numpy stays as it is
        use_fastest_sort()
    import_unpacked_pyspark()
    with contextlib.suppress(ImportError):
        import pyspark.worker  # noqa: F401

        from kquery_spark.runtime.spark.worker import tune_process

        tune_process()
    from pyspark import daemon

    daemon.worker = unless_closed(daemon.worker)
    daemon.manager()


def unless_closed(worker: _Worker) -> _Worker:
    """Wrap ``worker`` so that the process ends quietly if Spark has closed the connection.

    Spark closes the connections of workers that were idle for a minute. PySpark's worker would then try to write the end of
    the stream, fail because the connection is a Unix domain socket, and print a traceback. After a task that needed
    compiled kernels, the wrapper also loads these while the worker waits for the next task.
    """

    def run(sock: socket.socket, authenticated: bool) -> int:
        try:
            is_open = bool(sock.recv(1, socket.MSG_PEEK))
        except ConnectionResetError:
            is_open = False
        if not is_open:
            return 1
        ended_with = worker(sock, authenticated)
        from kquery_spark.kernels.compiled import FILE_LOOPS  # only after numpy has detected the processor

        FILE_LOOPS.load_in_background()
        return ended_with

    return run


if __name__ == "__main__":
    main()
