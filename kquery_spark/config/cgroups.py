"""Reads the limits of a container from Linux's control groups, version 2 or 1."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path


def cgroup_directories(controller: str, root: Path = Path("/")) -> Iterator[Path]:
    """Yield the directories of this process's control groups, from its own group up to the topmost visible group.

    controller: ``memory`` or ``cpu``. root: the directory with ``proc`` and ``sys/fs/cgroup``. In a container, the path of
    the process's own group may be a path of the host; then only the topmost directory exists.
    """
    base = root / "sys/fs/cgroup"
    for line in read_kernel_file(root / "proc/self/cgroup").splitlines():
        _, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        if controllers == "":  # version 2
            top = base
        elif controller in controllers.split(","):
            top = base / controller if (base / controller).exists() else base / controllers
        else:
            continue
        directory = top / path.lstrip("/")
        while directory != top and top in directory.parents:
            yield directory
            directory = directory.parent
        yield top


@cache
def cpu_quota(root: Path = Path("/")) -> int:
    """Return the number of cores that the smallest CPU quota allows, rounded up like in the JVM; 0 without a quota.

    A quota is the processor time, in microseconds, that the group may use in each period. Example: a quota of 150,000 in
    periods of 100,000 allows 1.5 cores, rounded up to 2. Quotas are assumed not to change.
    """
    cores = []
    for directory in cgroup_directories("cpu", root):
        quota, period = [*read_kernel_file(directory / "cpu.max").split(), "", ""][:2]
        if not quota:
            quota = read_kernel_file(directory / "cpu.cfs_quota_us").strip()
            period = read_kernel_file(directory / "cpu.cfs_period_us").strip()
        if quota.isdigit() and period.isdigit() and int(quota) and int(period):  # otherwise "max", or -1
            cores.append(math.ceil(int(quota) / int(period)))
    return min(cores, default=0)


def read_kernel_file(path: Path) -> str:
    """Return the content of a file below ``/proc`` or ``/sys``; an empty string if the file does not exist."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text()
    return ""
