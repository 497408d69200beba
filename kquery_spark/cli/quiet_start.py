"""Holds back the output of Spark's JVM while it starts, so that a failure is reported in one line."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_STDERR = 2
_CHUNK_BYTES = 1 << 16
_DRAIN_SECONDS = 1.0
_WARNING = "WARNING:"  # the JVM's own warnings about modules that Spark opens


class StartOutput:
    """The stderr of processes that start in the block: held back during the start, relayed afterwards."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self._held = bytearray()
        self._passes_on = False
        self._lock = threading.Lock()
        threading.Thread(target=self._relay, name="stderr of the JVM", daemon=True).start()

    def pass_on(self) -> None:
        """Drop the output so far and relay the rest."""
        deadline = time.monotonic() + _DRAIN_SECONDS
        while time.monotonic() < deadline and select.select([self._source], [], [], 0)[0]:
            time.sleep(0.001)  # until the thread has read the output so far
        with self._lock:
            self._passes_on = True
            self._held.clear()

    @property
    def first_line(self) -> str:
        """Return the first line that is not a warning, which usually says why a start failed; empty if there is none."""
        with self._lock:
            lines = self._held.decode(errors="replace").split("\n")
        return next((line.strip() for line in lines if line.strip() and not line.startswith(_WARNING)), "")

    def _relay(self) -> None:
        while chunk := os.read(self._source, _CHUNK_BYTES):
            with self._lock:
                if self._passes_on:
                    # If the terminal was closed, keep reading. Otherwise the pipe fills up and blocks the JVM.
                    with suppress(OSError):
                        os.write(self._target, chunk)
                else:
                    self._held += chunk


@contextmanager
def quiet_start() -> Iterator[StartOutput]:
    """Give processes that start in the block a stderr that is relayed to this one once the block succeeds."""
    real = os.dup(_STDERR)
    source, target = os.pipe()
    output = StartOutput(source, real)
    os.dup2(target, _STDERR)
    os.close(target)
    try:
        yield output
        output.pass_on()
    finally:
        os.dup2(real, _STDERR)
