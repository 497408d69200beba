"""Children that read damaged files: forked for local reads, and what became of them."""

from __future__ import annotations

import math
import os
import select
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from tests.sources.mutations.outcomes import Outcome

Write = Callable[[bytes], object]


@dataclass(frozen=True)
class Ending:
    """How a child ended. is_late: it had to be killed. has_finished: it exited with code 0, so it has read all cases."""

    is_late: bool
    has_finished: bool
    description: str


class Child:
    """A child process and the pipe that it writes outcomes into. errors: its stderr, where C++ writes why it aborts."""

    def __init__(self, pid: int, descriptor: int, errors: IO[bytes]) -> None:
        self.pid = pid
        self._descriptor = descriptor
        self._errors = errors

    @classmethod
    def forked(cls, work: Callable[[Write], None]) -> Child:
        """A copy of this process that runs ``work``."""
        ours, theirs = os.pipe()
        errors = tempfile.TemporaryFile()  # noqa: SIM115
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.dup2(errors.fileno(), 2)
                work(lambda line: os.write(theirs, line))
                code = 0
            finally:
                os._exit(code)
        os.close(theirs)
        return cls(pid, ours, errors)

    def outcomes(self, seconds: float, deadline: float = math.inf) -> Iterator[Outcome]:
        """Outcomes until the child ends, is silent for longer than the time limit, or the deadline passes."""
        pending = b""
        while select.select([self._descriptor], [], [], _wait_seconds(seconds, deadline))[0]:
            data = os.read(self._descriptor, 1 << 16)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            yield from map(Outcome.from_line, lines)

    def end(self) -> Ending:
        """Ends the child if it does not end by itself."""
        status = self._status(2.0)
        is_late = status is None
        if is_late:
            os.kill(self.pid, signal.SIGKILL)
            status = self._status(60.0)
        os.close(self._descriptor)
        return Ending(is_late, status == 0, f"{_described(status or 0)} {self._last_words()}")

    def _status(self, seconds: float) -> int | None:
        """The exit status; None if the child still runs after some seconds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                return status
            time.sleep(0.01)
        return None

    def _last_words(self) -> str:
        with self._errors:
            self._errors.seek(0)
            return self._errors.read()[-600:].decode(errors="replace")


def _wait_seconds(seconds: float, deadline: float) -> float:
    """The time limit, or the time until the deadline if that is shorter."""
    return max(0.0, min(seconds, deadline - time.monotonic()))


def _described(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit code {os.WEXITSTATUS(status)}"
