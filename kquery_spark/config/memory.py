"""Computes the memory budget of a task from the limits of its container, in the worker process when the task starts.

    limit  = min(the cgroup's limit, the size of the YARN container, physical memory)
    share  = min((limit - JVM memory) / concurrent tasks - memory of this worker process,
                 (cgroup's limit - cgroup's current use without reclaimable file pages) / concurrent tasks,
                 RLIMIT_AS - address space of this process)
    budget = share / 2, at least 16 MiB and at most 1 GiB

JVM memory is its heap, its off-heap memory, and an estimate for classes, compiled code and threads. Only half of the share
is used because operators copy: a merge, sort or join needs a second copy of a part of its state.

Example: a container of 8 GiB has a JVM with a heap of 4 GiB, and 4 concurrent tasks. The JVM may use 4 + 0.4 GiB. Each task
has a share of (8 - 4.4) / 4 = 0.9 GiB minus the 0.1 GiB of its worker = 0.8 GiB, and a budget of 0.4 GiB.

Spark applies ``spark.executor.pyspark.memory`` to each worker as RLIMIT_AS. An explicit ``spark.kquery.memoryBytes``
replaces the computed budget.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from kquery_spark.config.cgroups import cgroup_directories, read_kernel_file
from kquery_spark.config.engine import DEFAULT_MAX_MEMORY_BYTES, EngineConfig

MIN_MEMORY_BYTES = 16 << 20
JVM_EXTRA_BYTES = 128 << 20  # minimum for classes, compiled code and threads; a tenth of a larger heap
_CACHE_BUDGET_DIVISOR = 4  # cached build sides may use this fraction of a budget that is below the maximum
_UNLIMITED_BYTES = 1 << 60  # cgroup v1 writes a number near 2**63 for no limit


@dataclass(frozen=True)
class ContainerFacts:
    """Facts about a task's container that only the driver knows.

    tasks: the number of tasks that run in it concurrently. jvm_bytes: heap and off-heap memory of the JVM in the container.
    container_bytes: the container size that Spark requested from YARN; 0 if only the cgroup limits the container.
    """

    tasks: int = 1
    jvm_bytes: int = 0
    container_bytes: int = 0

    @property
    def jvm_total(self) -> int:
        """The largest expected memory use of the JVM."""
        return self.jvm_bytes and self.jvm_bytes + max(JVM_EXTRA_BYTES, self.jvm_bytes // 10)


@dataclass(frozen=True)
class ProcessLimits:
    """Limits and use, in bytes, of this process's cgroup and address space; a limit of 0 means that there is none.

    own_bytes: resident memory that this process does not share with others. physical: the machine's memory.
    """

    cgroup_limit: int = 0
    cgroup_used: int = 0
    address_limit: int = 0
    address_used: int = 0
    own_bytes: int = 0
    physical: int = 0

    @staticmethod
    def read(root: Path = Path("/")) -> ProcessLimits:
        """Read the current values. root: the directory with ``proc`` and ``sys/fs/cgroup``."""
        limits_and_use = [(limit, _cgroup_use(directory)) for limit, directory in _limited_cgroups(root)]
        # A process belongs to nested groups with limits; the group with the least free memory counts.
        limit, used = min(limits_and_use, key=lambda pair: pair[0] - pair[1], default=(0, 0))
        sizes = read_kernel_file(root / "proc/self/statm").split()
        page = os.sysconf("SC_PAGE_SIZE")
        address, resident, shared = (int(n) * page for n in (sizes + ["0"] * 3)[:3])
        return ProcessLimits(
            limit, used, _address_limit(), address, max(0, resident - shared), _physical(root)
        )


def task_budget(facts: ContainerFacts, limits: ProcessLimits) -> int:
    """Return the bytes of state that a task may hold before it spills, by the formula in the module's docstring."""
    tasks = max(1, facts.tasks)
    known = [n for n in (limits.cgroup_limit, facts.container_bytes, limits.physical) if n]
    shares = [2 * DEFAULT_MAX_MEMORY_BYTES]
    if known:
        shares.append((min(known) - facts.jvm_total) // tasks - limits.own_bytes)
    if limits.cgroup_limit:
        shares.append((limits.cgroup_limit - limits.cgroup_used) // tasks)
    if limits.address_limit:
        shares.append(limits.address_limit - limits.address_used)
    return max(MIN_MEMORY_BYTES, min(shares) // 2)


def with_budget(
    config: EngineConfig, facts: ContainerFacts, retained: int = 0, limits: ProcessLimits | None = None
) -> EngineConfig:
    """Return the settings with the memory budget of a task that starts now.

    retained: bytes that the worker process's caches (build sides, footers) already use. An explicit memory_bytes does not
    change.

    A worker with the maximum budget has enough memory for its caches beside the budget, so its cache of build sides may grow
    to half of the budget, and cached bytes do not reduce the task's budget. In a smaller container, build sides may use only
    a quarter of the budget, and the task gets what the caches have not used yet. Example: if the budget is 400 MiB and the
    caches hold 80 MiB, the task may hold 320 MiB, and cached build sides may grow to 100 MiB.
    """
    if config.memory_bytes:
        return config
    budget = task_budget(facts, ProcessLimits.read() if limits is None else limits)
    if budget >= DEFAULT_MAX_MEMORY_BYTES:
        task_bytes, largest_cache = budget, budget // 2
    else:
        task_bytes = max(MIN_MEMORY_BYTES, budget - retained)
        largest_cache = budget // _CACHE_BUDGET_DIVISOR
    cache_bytes = min(config.build_cache_bytes, largest_cache)
    return replace(config, memory_bytes=task_bytes, build_cache_bytes=cache_bytes)


def _address_limit() -> int:
    try:
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        return 0 if soft == resource.RLIM_INFINITY else soft
    except (ImportError, OSError):  # not a Unix
        return 0


@cache
def _physical(root: Path) -> int:
    return _field(read_kernel_file(root / "proc/meminfo"), "MemTotal:") * 1024


@cache
def _limited_cgroups(root: Path) -> list[tuple[int, Path]]:
    """Return the memory limits and directories of this process's limited cgroups. Limits are assumed not to change."""
    limits = []
    for directory in cgroup_directories("memory", root):
        limit = _number(directory / "memory.max") or _number(directory / "memory.limit_in_bytes")
        if 0 < limit < _UNLIMITED_BYTES:
            limits.append((limit, directory))
    return limits


def _cgroup_use(directory: Path) -> int:
    """Return the memory use of a cgroup without file pages that the kernel can reclaim."""
    used = _number(directory / "memory.current") or _number(directory / "memory.usage_in_bytes")
    statistics = read_kernel_file(directory / "memory.stat")
    files = _field(statistics, "total_inactive_file") or _field(statistics, "inactive_file")
    return max(0, used - files)


def _number(path: Path) -> int:
    content = read_kernel_file(path).strip()
    return int(content) if content.isdigit() else 0  # "max": no limit


def _field(content: str, name: str) -> int:
    for line in content.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == name and words[1].isdigit():
            return int(words[1])
    return 0
