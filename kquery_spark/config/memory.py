"""The memory budget of a task: what the container leaves to Python, settled where and when the task starts.

    limit  = the smallest of the cgroup's limit, the container that Spark asked YARN for, physical memory
    room   = the smaller of
               limit - the JVM's heap and off-heap memory - what the JVM takes beside them
               limit - what the cgroup uses now, less file pages that it can drop
    share  = room / tasks at once - what the worker process itself takes; at most the room below RLIMIT_AS
    budget = share / 2, at least 16 MiB, at most 1 GiB

The half is for copies: an operator that merges, sorts or joins what it holds makes a second one of a part of it. Spark
applies ``spark.executor.pyspark.memory`` to each worker as RLIMIT_AS. An explicit ``spark.kquery.memoryBytes`` wins.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from kquery_spark.config.cgroups import cgroup_directories, read_text
from kquery_spark.config.engine import DEFAULT_MAX_MEMORY_BYTES, EngineConfig

LEAST_MEMORY_BYTES = 16 << 20
JVM_EXTRA_BYTES = 128 << 20  # classes, compiled code and threads, at least; a tenth of a large heap
_CACHE_BUDGET_DIVISOR = 4  # of the budget, what may be left of it for build sides that stay between tasks
_UNLIMITED_BYTES = 1 << 60  # cgroup v1 says so by a number near 2**63


@dataclass(frozen=True)
class ContainerFacts:
    """What the driver knows of the container that a task runs in.

    tasks: that run in it at once. jvm_bytes: heap and off-heap memory of the JVM beside them. container_bytes: what Spark
    asked YARN for; 0 where the cgroup alone says what there is.
    """

    tasks: int = 1
    jvm_bytes: int = 0
    container_bytes: int = 0

    @property
    def jvm_total(self) -> int:
        """All that the JVM may come to take."""
        return self.jvm_bytes and self.jvm_bytes + max(JVM_EXTRA_BYTES, self.jvm_bytes // 10)


@dataclass(frozen=True)
class ProcessLimits:
    """What this process sees, in bytes: limit and use of its cgroup and of its address space; 0 where there is no limit.

    own_bytes: memory of its own. physical: the machine's.
    """

    cgroup_limit: int = 0
    cgroup_used: int = 0
    address_limit: int = 0
    address_used: int = 0
    own_bytes: int = 0
    physical: int = 0

    @staticmethod
    def read(root: Path = Path("/")) -> ProcessLimits:
        """As they are now; ``root`` has ``proc`` and ``sys/fs/cgroup``."""
        used_of = [(limit, _cgroup_use(directory)) for limit, directory in _limited_cgroups(root)]
        limit, used = min(used_of, key=lambda pair: pair[0] - pair[1], default=(0, 0))
        sizes = read_text(root / "proc/self/statm").split()
        page = os.sysconf("SC_PAGE_SIZE")
        address, resident, shared = (int(n) * page for n in (sizes + ["0"] * 3)[:3])
        return ProcessLimits(
            limit, used, _address_limit(), address, max(0, resident - shared), _physical(root)
        )


def task_budget(facts: ContainerFacts, limits: ProcessLimits) -> int:
    """Bytes of state that a task may hold before it spills; see the module for the formula."""
    tasks = max(1, facts.tasks)
    known = [n for n in (limits.cgroup_limit, facts.container_bytes, limits.physical) if n]
    shares = [2 * DEFAULT_MAX_MEMORY_BYTES]
    if known:
        shares.append((min(known) - facts.jvm_total) // tasks - limits.own_bytes)
    if limits.cgroup_limit:
        shares.append((limits.cgroup_limit - limits.cgroup_used) // tasks)
    if limits.address_limit:
        shares.append(limits.address_limit - limits.address_used)
    return max(LEAST_MEMORY_BYTES, min(shares) // 2)


def with_budget(
    config: EngineConfig, facts: ContainerFacts, retained: int = 0, limits: ProcessLimits | None = None
) -> EngineConfig:
    """The settings with the budget of a task that starts now, of which ``retained`` bytes are taken by what is kept.

    An explicit memory_bytes stays as it is, but a process that keeps nothing else has to be able to keep build sides.
    """
    if config.memory_bytes:
        return config
    budget = task_budget(facts, ProcessLimits.read() if limits is None else limits)
    cache_bytes = min(
        config.kept_bytes,
        budget // 2 if budget >= DEFAULT_MAX_MEMORY_BYTES else budget // _CACHE_BUDGET_DIVISOR,
    )
    left = budget if budget >= DEFAULT_MAX_MEMORY_BYTES else max(LEAST_MEMORY_BYTES, budget - retained)
    return replace(config, memory_bytes=left, kept_bytes=cache_bytes)


def _address_limit() -> int:
    try:
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        return 0 if soft == resource.RLIM_INFINITY else soft
    except (ImportError, OSError):  # not a Unix
        return 0


@cache
def _physical(root: Path) -> int:
    return _field(read_text(root / "proc/meminfo"), "MemTotal:") * 1024


@cache
def _limited_cgroups(root: Path) -> list[tuple[int, Path]]:
    """The cgroups of this process that have a memory limit, with the limit, which is assumed not to change."""
    limits = []
    for directory in cgroup_directories("memory", root):
        limit = _number(directory / "memory.max") or _number(directory / "memory.limit_in_bytes")
        if 0 < limit < _UNLIMITED_BYTES:
            limits.append((limit, directory))
    return limits


def _cgroup_use(directory: Path) -> int:
    """What a cgroup uses, less the pages of files that it can drop."""
    used = _number(directory / "memory.current") or _number(directory / "memory.usage_in_bytes")
    statistics = read_text(directory / "memory.stat")
    files = _field(statistics, "total_inactive_file") or _field(statistics, "inactive_file")
    return max(0, used - files)


def _number(path: Path) -> int:
    text = read_text(path).strip()
    return int(text) if text.isdigit() else 0  # "max": no limit


def _field(text: str, name: str) -> int:
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == name and words[1].isdigit():
            return int(words[1])
    return 0
