"""numpy's sorts on AMD's Zen 4, where its choice of instructions is the slow one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kquery_spark.config import processor
from kquery_spark.config.cgroups import cpu_quota

ZEN_4 = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nflags\t\t: fpu avx2 avx512f avx512dq"
ZEN_3 = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nflags\t\t: fpu avx2"
ZEN_5 = "vendor_id\t: AuthenticAMD\ncpu family\t: 26\nflags\t\t: fpu avx2 avx512f"
INTEL = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nflags\t\t: fpu avx2 avx512f"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(ZEN_4, True), (ZEN_3, False), (ZEN_5, False), (INTEL, False), ("processor: 0", False)],
)
def test_zen_4_is_recognized_by_its_family_and_avx512(tmp_path, text, expected):
    path = tmp_path / "cpuinfo"
    path.write_text(f"processor\t: 0\n{text}\n\nprocessor\t: 1\n{ZEN_4}\n")
    assert processor.is_zen_4(path) is expected


def test_other_systems_have_no_list(tmp_path):
    assert not processor.is_zen_4(tmp_path / "cpuinfo")


CODE = """
import sys
from pathlib import Path
from pathlib import Path
from kquery_spark.config import processor
from kquery_spark.config.cgroups import cpu_quota
assert "numpy" not in sys.modules
processor.is_zen_4 = lambda: True
processor.sort_quickly()
import numpy as np
from numpy._core._multiarray_umath import __cpu_features__ as features
print(features[next(n for n in ("X86_V4", "AVX512F") if n in features)], np.sort(np.array([2, 1])).tolist())
"""


@pytest.mark.parametrize("own", [None, ""])
def test_a_process_of_ours_sorts_without_avx512_unless_set_otherwise(own):
    environment = {k: v for k, v in os.environ.items() if k != "NPY_DISABLE_CPU_FEATURES"}
    if own is not None:
        environment["NPY_DISABLE_CPU_FEATURES"] = own
    done = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", CODE],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    if own is None:
        assert done.stdout == "False [1, 2]\n"
    else:
        assert done.stdout.endswith("[1, 2]\n")


def test_numpy_that_is_there_already_is_left_alone(monkeypatch):
    monkeypatch.delenv("NPY_DISABLE_CPU_FEATURES", raising=False)
    monkeypatch.setattr(processor, "is_zen_4", lambda: True)
    import numpy  # noqa: F401

    processor.sort_quickly()
    assert "NPY_DISABLE_CPU_FEATURES" not in os.environ


@pytest.mark.parametrize(
    ("version", "name"), [("2.0.2", "AVX512F"), ("2.3.5", "AVX512F"), ("2.4.6", "X86_V4"), ("3.0", "X86_V4")]
)
def test_names_of_features_by_numpys_version(version, name):
    assert name in processor._features(version).split()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_cores_are_those_of_the_process_alone():
    code = (
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
        "from kquery_spark import ExecutionContext\n"
        "from kquery_spark.config.processor import available_cores\n"
        "assert available_cores() == 1 and ExecutionContext()._config.parallelism == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def _files(root, contents):
    for name, text in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("contents", "cores"),
    [
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 2),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "10000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 0),
        # the smallest of nested groups
        (
            {
                "proc/self/cgroup": "0::/pod/container\n",
                "sys/fs/cgroup/pod/container/cpu.max": "max 100000\n",
                "sys/fs/cgroup/pod/cpu.max": "300000 100000\n",
                "sys/fs/cgroup/cpu.max": "800000 100000\n",
            },
            3,
        ),
        # version 1, in a container that sees the path of the host
        (
            {
                "proc/self/cgroup": "4:memory:/docker/a\n3:cpu,cpuacct:/docker/a\n0::/\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "250000\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            3,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            0,
        ),
        ({}, 0),
    ],
)
def test_a_cpu_quota_bounds_the_cores(tmp_path, contents, cores):
    _files(tmp_path, contents)
    assert cpu_quota(tmp_path) == cores
    assert processor.available_cores(tmp_path) == min(cores or 10**6, processor.available_cores())


@pytest.fixture
def one_core_group():
    """A CPU control group of version 1 with a quota of one core."""
    directory = Path(f"/sys/fs/cgroup/cpu/kquery_test_{os.getpid()}")
    try:
        directory.mkdir()
        (directory / "cpu.cfs_quota_us").write_text("100000")
    except OSError:
        pytest.skip("this process may not make CPU control groups of version 1")
    yield directory
    directory.rmdir()


def test_threads_are_bounded_by_the_quota_of_a_real_group(one_core_group):
    code = (
        f"open('{one_core_group}/cgroup.procs', 'w').write('0')\n"
        "from kquery_spark import ExecutionContext\n"
        "assert ExecutionContext()._config.parallelism == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
