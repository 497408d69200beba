"""Workers whose connections Spark closes, as it does with those that were idle for a minute."""

from __future__ import annotations

import socket
import struct

import pytest
from pyspark import daemon

from kquery_spark.runtime.spark.daemon import unless_closed


def test_a_worker_ends_quietly_when_its_connection_is_closed(capfd: pytest.CaptureFixture[str]):
    spark, ours = socket.socketpair()
    spark.close()
    assert unless_closed(daemon.worker)(ours, True) != 0  # what ends the process
    assert ours.recv(1024) == b""  # and it has nothing to wait for
    ours.close()
    assert capfd.readouterr().err == ""


def test_a_worker_ends_quietly_when_its_connection_is_reset(capfd: pytest.CaptureFixture[str]):
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    theirs.close()
    assert unless_closed(daemon.worker)(ours, True) != 0
    assert capfd.readouterr().err == ""


def test_a_task_is_left_to_pyspark():
    spark, ours = socket.socketpair()
    spark.sendall(b"task")
    seen = []

    def worker(sock: socket.socket, authenticated: bool) -> int:
        seen.append((sock.recv(4), authenticated))
        return 0

    assert unless_closed(worker)(ours, False) == 0
    assert seen == [(b"task", False)]
    spark.close()
    ours.close()
