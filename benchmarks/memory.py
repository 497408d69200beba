"""Peak memory of a process and what it started: the JVM, the Python workers below it, and the driver."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import asdict, dataclass

import psutil

_RELIST = 1.0  # seconds after which processes are looked for again


@dataclass(frozen=True)
class Memory:
    """Resident bytes without shared pages, such as those of mapped libraries, which all processes use together.

    Pages that forked workers share count once for each, so ``workers`` is an upper bound.
    """

    driver: int = 0
    jvm: int = 0
    workers: int = 0

    @property
    def total(self) -> int:
        """JVM and workers: what the query engines hold. The driver also holds the harness and its answers."""
        return self.jvm + self.workers

    def as_json(self) -> dict[str, int]:
        """The parts and the total."""
        return {**asdict(self), "total": self.total}


def _own(process: psutil.Process) -> int:
    info = process.memory_info()
    return int(info.rss - getattr(info, "shared", 0))  # known on Linux only


class Family:
    """A process and its descendants. They are listed once and measured often, because listing takes longer."""

    def __init__(self, pid: int) -> None:
        self.listed = time.monotonic()
        self._members: list[tuple[str, psutil.Process]] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(pid)
            self._members.append(("driver", root))
            for process in root.children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    part = "jvm" if process.name().startswith("java") else "workers"
                    self._members.append((part, process))

    def memory(self) -> Memory:
        """Memory now of those that are still there."""
        sizes = dict.fromkeys(("driver", "jvm", "workers"), 0)
        for part, process in self._members:
            with contextlib.suppress(psutil.NoSuchProcess):
                sizes[part] += _own(process)
        return Memory(**sizes)


class MemorySampler:
    """Samples memory in a thread, and records the maximum of the driver, the JVM, and the workers.

    Processes are listed at most once per second, because that delays the thread that is timed by 5 to 20 ms. So a new
    process may go unnoticed for a second.
    """

    def __init__(self, pid: int, interval: float = 0.1) -> None:
        self._pid = pid
        self._interval = interval
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._family = Family(pid)
        self._peak = Memory()
        self._thread = threading.Thread(target=self._sample, name="memory sampler", daemon=True)

    def __enter__(self) -> MemorySampler:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def reset(self) -> None:
        """Forget the peak, take a sample now."""
        with self._lock:
            self._family = Family(self._pid)
            self._peak = self._family.memory()

    def peak(self) -> Memory:
        """The largest driver, JVM and workers since ``reset``, a sample of now included."""
        with self._lock:
            self._family = Family(self._pid)
            self._take()
            return self._peak

    def _take(self) -> None:
        now, old = self._family.memory(), self._peak
        self._peak = Memory(max(old.driver, now.driver), max(old.jvm, now.jvm), max(old.workers, now.workers))

    def _sample(self) -> None:
        while not self._stop.wait(self._interval):
            with self._lock:
                if time.monotonic() - self._family.listed > _RELIST:
                    self._family = Family(self._pid)
                self._take()
