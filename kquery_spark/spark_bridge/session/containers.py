"""Computes the memory limit of the process tree of a task from Spark's settings."""

from __future__ import annotations

import weakref

from pyspark import SparkContext

from kquery_spark.config.memory import ContainerFacts
from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.session.setting_values import is_true, parse_bytes

_MEBIBYTE = 1 << 20
_LEAST_OVERHEAD = "384m"  # Spark's minimum overhead
_OVERHEAD_FACTOR = 0.1  # Spark's default overhead as a share of the heap
_LARGEST_FACTOR = 1e6
_MOST_DIGITS = 10
_facts: weakref.WeakKeyDictionary[SparkContext, ContainerFacts] = weakref.WeakKeyDictionary()


def container_facts(context: SparkContext) -> ContainerFacts:
    """The facts about a context's executors, or about the driver with a local master; their settings never change."""
    facts = _facts.get(context)
    if facts is None:
        settings = dict(context.getConf().getAll())
        facts = _facts[context] = container_facts_from_settings(
            settings, str(context.master), context.defaultParallelism
        )
    return facts


def container_facts_from_settings(settings: dict[str, str], master: str, parallelism: int) -> ContainerFacts:
    """Compute the result of ``container_facts`` from settings. parallelism: the number of threads of a local master.

    An invalid value counts as Spark's default, because Spark itself raises an error where it uses the setting.
    """
    if master.startswith("local") and not master.startswith("local-cluster"):
        return ContainerFacts(parallelism, _memory_bytes(settings, "spark.driver.memory", "1g"), 0)
    heap = _memory_bytes(settings, "spark.executor.memory", "1g")
    jvm = heap
    if is_true(settings.get("spark.memory.offHeap.enabled", "false")):
        jvm += _memory_bytes(settings, "spark.memory.offHeap.size", "0", unit=1)
    tasks = _tasks(settings, master)
    if not master.startswith("yarn"):  # a Kubernetes container is a cgroup, whose limit the process can read
        return ContainerFacts(tasks, jvm, 0)
    python = _memory_bytes(settings, "spark.executor.pyspark.memory", "0")
    return ContainerFacts(tasks, jvm, jvm + _overhead(settings, heap) + python)


def _tasks(settings: dict[str, str], master: str) -> int:
    cores = settings.get("spark.executor.cores")
    if cores is None and master.startswith("local-cluster"):
        cores = master.split(",")[1].strip()
    # a standalone executor without that setting uses all cores of its worker, whose number only the executor knows
    return max(1, _count(cores) // _count(settings.get("spark.task.cpus")))


def _overhead(settings: dict[str, str], heap: int) -> int:
    """The memory besides the heap that Spark requests from YARN."""
    least = _memory_bytes(settings, "spark.executor.minMemoryOverhead", _LEAST_OVERHEAD)
    by_factor = max(int(heap * _factor(settings.get("spark.executor.memoryOverheadFactor"))), least)
    if "spark.executor.memoryOverhead" not in settings:
        return by_factor
    return _memory_bytes(settings, "spark.executor.memoryOverhead", str(by_factor // _MEBIBYTE))


def _count(text: str | None) -> int:
    """A number of cores; 1 if it is not set, or not a number above 0."""
    digits = (text or "").strip()
    return int(digits) if digits.isdecimal() and len(digits) < _MOST_DIGITS and int(digits) else 1


def _factor(text: str | None) -> float:
    try:
        factor = float(text or _OVERHEAD_FACTOR)
    except ValueError:
        return _OVERHEAD_FACTOR
    return factor if 0 <= factor <= _LARGEST_FACTOR else _OVERHEAD_FACTOR


def _memory_bytes(settings: dict[str, str], name: str, default: str, unit: int = _MEBIBYTE) -> int:
    """The bytes of a memory setting. unit: the unit of a value without one."""
    try:
        return parse_bytes(settings.get(name, default), unit)
    except Unsupported:
        return parse_bytes(default, unit)
