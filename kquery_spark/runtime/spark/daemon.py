"""Spark's Python daemon with the engine imported, for the engine's workers.

Workers are forked from the daemon, so they start with Arrow, numpy and the engine loaded instead of importing them once
each, and the garbage collector, which PySpark calls after every task, leaves them alone. On a local master the engine's
tasks have it by themselves (see ``interpreter``). With ``spark.python.daemon.module`` the user's functions get it, too: for
these it is PySpark's own.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import socket
from typing import Protocol

from kquery_spark.config.environment import FOR_FUNCTIONS, WORKER_MARK
from kquery_spark.config.processor import sort_quickly


class _Worker(Protocol):
    """PySpark's ``worker``: runs one task, then gives 0, or what the process ends with."""

    def __call__(self, sock: socket.socket, authenticated: bool) -> int: ...


def main() -> None:
    """Import, then serve as ``pyspark.daemon`` does; only serve where the workers are not the engine's."""
    if WORKER_MARK not in os.environ:
        runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
        return
    if os.environ[WORKER_MARK] != FOR_FUNCTIONS:  # functions of users find numpy as it is
        sort_quickly()
    with contextlib.suppress(ImportError):
        import pyspark.worker  # noqa: F401

        from kquery_spark.runtime.spark.worker import tune_process

        tune_process()
    from pyspark import daemon

    daemon.worker = unless_closed(daemon.worker)
    daemon.manager()


def unless_closed(worker: _Worker) -> _Worker:
    """The same for a connection that is open; one that Spark has closed is the process's end.

    Spark closes those of workers that were idle for a minute. PySpark's worker would want to tell it that the stream has
    ended, fail as the connection is a Unix domain socket, and print a traceback. After a task that asked for the compiled
    kernels a worker gets hold of them, while it waits for the next one.
    """

    def run(sock: socket.socket, authenticated: bool) -> int:
        try:
            is_open = bool(sock.recv(1, socket.MSG_PEEK))
        except ConnectionResetError:
            is_open = False
        if not is_open:
            return 1
        ended_with = worker(sock, authenticated)
        from kquery_spark.kernels.compiled import FILE_LOOPS  # not before numpy knows the processor

        FILE_LOOPS.look_later()
        return ended_with

    return run


if __name__ == "__main__":
    main()
