"""What Spark's settings say of the memory of the process tree that a task runs in."""

from __future__ import annotations

import weakref

from pyspark import SparkContext

from kquery_spark.config.memory import ContainerFacts
from kquery_spark.spark_bridge.session.byte_sizes import parse_bytes

_MEBIBYTE = 1 << 20
_LEAST_OVERHEAD = "384m"  # Spark's
_OVERHEAD_FACTOR = "0.1"  # of the heap
_facts: weakref.WeakKeyDictionary[SparkContext, ContainerFacts] = weakref.WeakKeyDictionary()


def container_facts(context: SparkContext) -> ContainerFacts:
    """Facts of a context's executors, whose settings do not change; with a local master, of the driver."""
    facts = _facts.get(context)
    if facts is None:
        settings = dict(context.getConf().getAll())
        facts = _facts[context] = facts_of(settings, str(context.master), context.defaultParallelism)
    return facts


def facts_of(settings: dict[str, str], master: str, parallelism: int) -> ContainerFacts:
    """The same by settings; ``parallelism``: threads of a local master."""
    if master.startswith("local") and not master.startswith("local-cluster"):
        return ContainerFacts(parallelism, _memory_bytes(settings.get("spark.driver.memory", "1g")), 0)
    heap = _memory_bytes(settings.get("spark.executor.memory", "1g"))
    if settings.get("spark.memory.offHeap.enabled", "false") == "true":
        heap += parse_bytes(settings.get("spark.memory.offHeap.size", "0"))
    tasks = _tasks(settings, master)
    if not master.startswith("yarn"):  # a container of Kubernetes is a cgroup, which says so itself
        return ContainerFacts(tasks, heap, 0)
    python = _memory_bytes(settings.get("spark.executor.pyspark.memory", "0"))
    return ContainerFacts(tasks, heap, heap + _overhead(settings) + python)


def _tasks(settings: dict[str, str], master: str) -> int:
    cores = settings.get("spark.executor.cores")
    if cores is None and master.startswith("local-cluster"):
        cores = master.split(",")[1].strip()
    # a standalone executor without that setting takes all cores of its worker, which only the executor knows
    return max(1, int(cores or 1) // max(1, int(settings.get("spark.task.cpus", "1"))))


def _overhead(settings: dict[str, str]) -> int:
    """Memory beside the heap that Spark asks YARN for."""
    given = settings.get("spark.executor.memoryOverhead")
    if given is not None:
        return _memory_bytes(given)
    factor = float(settings.get("spark.executor.memoryOverheadFactor", _OVERHEAD_FACTOR))
    least = _memory_bytes(settings.get("spark.executor.minMemoryOverhead", _LEAST_OVERHEAD))
    return max(int(_memory_bytes(settings.get("spark.executor.memory", "1g")) * factor), least)


def _memory_bytes(text: str) -> int:
    """The bytes of a memory setting, which is in MiB if it names no unit."""
    return parse_bytes(text, unit=_MEBIBYTE)
