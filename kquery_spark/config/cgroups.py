"""Control groups of Linux, version 2 or 1: the limits that a container sets for the processes in it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path


def cgroup_directories(controller: str, root: Path = Path("/")) -> Iterator[Path]:
    """The control groups of this process for ``memory`` or ``cpu``, from its own up to the topmost one that it sees.

    root: has ``proc`` and ``sys/fs/cgroup``. In a container the path of the process's own group may be the host's, so that
    only the topmost directory exists.
    """
    base = root / "sys/fs/cgroup"
    for line in read_text(root / "proc/self/cgroup").splitlines():
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
    """The cores that the smallest CPU quota allows, rounded up as the JVM does; 0 where there is none.

    A quota is the processor time, in microseconds, that the group may use in each period. It is assumed not to change.
    """
    cores = []
    for directory in cgroup_directories("cpu", root):
        quota, period = [*read_text(directory / "cpu.max").split(), "", ""][:2]
        if not quota:
            quota = read_text(directory / "cpu.cfs_quota_us").strip()
            period = read_text(directory / "cpu.cfs_period_us").strip()
        if quota.isdigit() and period.isdigit() and int(quota) and int(period):  # otherwise "max", or -1
            cores.append(math.ceil(int(quota) / int(period)))
    return min(cores, default=0)


def read_text(path: Path) -> str:
    """What a file of the kernel says; an empty string where there is no such file."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text()
    return ""
