"""Holds back what Spark's JVM prints while it starts, so that a one-line error is one line."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_STDERR = 2
_CHUNK_BYTES = 1 << 16
_DRAIN_SECONDS = 1.0
_WARNING = "WARNING:"  # what the JVM itself says of modules that Spark asks for


class StartOutput:
    """What processes that were started meanwhile print on stderr: held back first, passed on later."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self._held = bytearray()
        self._passes_on = False
        self._lock = threading.Lock()
        threading.Thread(target=self._relay, name="stderr of the JVM", daemon=True).start()

    def pass_on(self) -> None:
        """Drop what was held back; what comes from now on is printed."""
        deadline = time.monotonic() + _DRAIN_SECONDS
        while time.monotonic() < deadline and select.select([self._source], [], [], 0)[0]:
            time.sleep(0.001)  # the thread has yet to read what was printed before
        with self._lock:
            self._passes_on = True
            self._held.clear()

    @property
    def first_line(self) -> str:
        """The first line that was held back and is no warning, which says why a start failed; empty if there is none."""
        with self._lock:
            lines = self._held.decode(errors="replace").split("\n")
        return next((line.strip() for line in lines if line.strip() and not line.startswith(_WARNING)), "")

    def _relay(self) -> None:
        while chunk := os.read(self._source, _CHUNK_BYTES):
            with self._lock:
                if self._passes_on:
                    os.write(self._target, chunk)
                else:
                    self._held += chunk


@contextmanager
def quiet_start() -> Iterator[StartOutput]:
    """Give processes that start within a stderr of their own, which leads to this one's once the block ended well."""
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
