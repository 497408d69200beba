"""A task's memory budget follows its container: cgroups of both versions, RLIMIT_AS, what Spark asked YARN for."""

import resource
import subprocess
import sys

import pytest

from kquery_spark.config.engine import EngineConfig
from kquery_spark.config.memory import (
    JVM_EXTRA_BYTES,
    MIN_MEMORY_BYTES,
    ContainerFacts,
    ProcessLimits,
    task_budget,
    with_budget,
)

MB, GB = 1 << 20, 1 << 30


def tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_container_of_cgroup_version_2(tmp_path):
    """In its own namespace a container sees itself as the root."""
    files = {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": f"{1408 * MB}\n",
        "sys/fs/cgroup/memory.current": f"{900 * MB}\n",
        "sys/fs/cgroup/memory.stat": f"anon 5\nfile 7\ninactive_file {300 * MB}\nactive_file 3\n",
    }
    limits = ProcessLimits.read(tree(tmp_path, files))
    assert (limits.cgroup_limit, limits.cgroup_used) == (1408 * MB, 600 * MB)


def test_a_container_of_cgroup_version_1_whose_path_is_the_hosts(tmp_path):
    files = {
        "proc/self/cgroup": "9:name=systemd:/\n4:memory:/docker/abc\n0::/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GB}\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{500 * MB}\n",
        "sys/fs/cgroup/memory/memory.stat": f"inactive_file 1\ntotal_inactive_file {100 * MB}\n",
    }
    limits = ProcessLimits.read(tree(tmp_path, files))
    assert (limits.cgroup_limit, limits.cgroup_used) == (GB, 400 * MB)


def test_the_tightest_group_above_the_process_counts(tmp_path):
    files = {
        "proc/self/cgroup": "0::/yarn/container_1\n",
        "sys/fs/cgroup/yarn/container_1/memory.max": "max\n",
        "sys/fs/cgroup/yarn/container_1/memory.current": f"{MB}\n",
        "sys/fs/cgroup/yarn/memory.max": f"{GB}\n",
        "sys/fs/cgroup/yarn/memory.current": f"{10 * MB}\n",
        "sys/fs/cgroup/memory.max": f"{64 * GB}\n",
        "sys/fs/cgroup/memory.current": f"{63 * GB + 512 * MB}\n",
    }
    limits = ProcessLimits.read(tree(tmp_path, files))
    assert (limits.cgroup_limit, limits.cgroup_used) == (64 * GB, 63 * GB + 512 * MB)
    (tmp_path / "sys/fs/cgroup/memory.current").write_text("0\n")
    assert ProcessLimits.read(tmp_path).cgroup_limit == GB


def test_no_limit_and_no_linux(tmp_path):
    unlimited = {
        "proc/self/cgroup": "4:memory:/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "proc/meminfo": "MemTotal:       16777216 kB\nMemFree: 5 kB\n",
        "proc/self/statm": "1000 500 200 1 0 700 0\n",
    }
    limits = ProcessLimits.read(tree(tmp_path / "a", unlimited))
    page = resource.getpagesize()
    assert (limits.cgroup_limit, limits.physical) == (0, 16 * GB)
    assert (limits.own_bytes, limits.address_used) == (300 * page, 1000 * page)
    limits = ProcessLimits.read(tmp_path / "nothing")
    assert (limits.cgroup_limit, limits.physical, limits.own_bytes) == (0, 0, 0)
    assert ProcessLimits.read().own_bytes > MB


@pytest.mark.parametrize(
    ("facts", "limits", "budget"),
    [
        (ContainerFacts(), ProcessLimits(), GB),
        (ContainerFacts(4, GB), ProcessLimits(physical=64 * GB), GB),
        # a pod of 1 GB of heap and the least overhead, one task
        (
            ContainerFacts(1, GB),
            ProcessLimits(1408 * MB, 500 * MB, own_bytes=100 * MB, physical=64 * GB),
            (384 * MB - JVM_EXTRA_BYTES - 100 * MB) // 2,
        ),
        # the same with two tasks at once
        (
            ContainerFacts(2, GB),
            ProcessLimits(1408 * MB, 500 * MB, own_bytes=60 * MB),
            (192 * MB - JVM_EXTRA_BYTES // 2 - 60 * MB) // 2,
        ),
        # there is a limit, but someone else has taken nearly all of it
        (ContainerFacts(2), ProcessLimits(8 * GB, 8 * GB - 200 * MB), 50 * MB),
        # YARN without cgroups: what was asked for; the tenth of a large heap is the JVM's as well
        (
            ContainerFacts(4, 10 * GB, 14 * GB),
            ProcessLimits(physical=64 * GB),
            3 * GB // 4 // 2,
        ),
        # spark.executor.pyspark.memory
        (ContainerFacts(2, GB), ProcessLimits(address_limit=2 * GB, address_used=1536 * MB), 256 * MB),
        # nothing is left
        (ContainerFacts(8, GB), ProcessLimits(1100 * MB, 900 * MB), MIN_MEMORY_BYTES),
    ],
)
def test_the_budget_is_half_of_a_tasks_share(facts, limits, budget):
    assert task_budget(facts, limits) == budget


def test_an_explicit_budget_wins():
    small = ProcessLimits(cgroup_limit=GB, cgroup_used=GB)
    given = EngineConfig().with_settings({"spark.kquery.memoryBytes": "2g"})
    assert with_budget(given, ContainerFacts(), limits=small) is given
    assert with_budget(EngineConfig(), ContainerFacts(), limits=small).memory_bytes == MIN_MEMORY_BYTES


def test_build_sides_that_stay_count_against_a_small_budget():
    roomy = with_budget(EngineConfig(), ContainerFacts(), 300 * MB, ProcessLimits())
    assert (roomy.memory_bytes, roomy.build_cache_bytes) == (GB, EngineConfig().build_cache_bytes)
    limits = ProcessLimits(cgroup_limit=800 * MB)
    small = with_budget(EngineConfig(), ContainerFacts(), 80 * MB, limits)
    assert (small.memory_bytes, small.build_cache_bytes) == (320 * MB, 100 * MB)


def test_the_address_limit_of_a_real_process():
    program = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from kquery_spark.config.memory import ContainerFacts, ProcessLimits, task_budget
limits = ProcessLimits.read()
print(limits.address_limit, limits.address_used, task_budget(ContainerFacts(), limits))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    limit, used, budget = map(int, run.stdout.split())
    assert limit == GB and 0 < used < GB
    assert budget == (limit - used) // 2
