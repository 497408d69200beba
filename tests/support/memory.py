"""What a piece of work in this process takes of memory at its peak, and a stop before it takes all that the machine has."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEGABYTES = 1 << 20
_MOST = 1500 * MEGABYTES  # that work may ask for before its allocations fail


class Peak:
    """Bytes that the work took more than there were before, known when it is over."""

    nbytes = 0


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure what the block takes; its allocations fail where it is far too much."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_status("VmSize") + _MOST, hard))
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what it is now
    before, peak = _status("VmRSS"), Peak()
    try:
        yield peak
    finally:
        peak.nbytes = _status("VmHWM") - before
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(f"{name}:")))


def resident_memory() -> int:
    """Bytes that this process has in memory."""
    return _status("VmRSS")
