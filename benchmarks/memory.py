"""Peak memory of a process and what it started: the JVM, the Python workers below it, and the driver."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass

import psutil


@dataclass(frozen=True)
class Memory:
    """Resident bytes without pages of files, which the system's file cache holds for all (the engine maps its input).

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
    return int(info.rss - getattr(info, "shared", 0))  # told on Linux only


def measure(pid: int) -> Memory:
    """Memory now of the process ``pid`` and everything below it."""
    try:
        root = psutil.Process(pid)
        driver = _own(root)
        below = root.children(recursive=True)
    except psutil.NoSuchProcess:
        return Memory()
    jvm = workers = 0
    for process in below:
        try:
            size, name = _own(process), process.name()
        except psutil.NoSuchProcess:
            continue
        if name.startswith("java"):
            jvm += size
        else:
            workers += size
    return Memory(driver, jvm, workers)


class MemorySampler:
    """Samples in a thread and keeps the largest of each part."""

    def __init__(self, pid: int, interval: float = 0.1) -> None:
        self._pid = pid
        self._interval = interval
        self._stop = threading.Event()
        self._lock = threading.Lock()
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
        now = measure(self._pid)
        with self._lock:
            self._peak = now

    def peak(self) -> Memory:
        """The largest driver, JVM and workers since ``reset``, a sample of now included."""
        self._take()
        with self._lock:
            return self._peak

    def _take(self) -> None:
        now = measure(self._pid)
        with self._lock:
            old = self._peak
            self._peak = Memory(
                max(old.driver, now.driver), max(old.jvm, now.jvm), max(old.workers, now.workers)
            )

    def _sample(self) -> None:
        while not self._stop.wait(self._interval):
            self._take()
