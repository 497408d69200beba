"""numpy's sorts on AMD's Zen 4, where its choice of instructions is the slow one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kquery_spark.config import processor

ZEN_4 = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nflags\t\t: fpu avx2 avx512f avx512dq"
ZEN_3 = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nflags\t\t: fpu avx2"
ZEN_5 = "vendor_id\t: AuthenticAMD\ncpu family\t: 26\nflags\t\t: fpu avx2 avx512f"
INTEL = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nflags\t\t: fpu avx2 avx512f"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(ZEN_4, True), (ZEN_3, False), (ZEN_5, False), (INTEL, False), ("processor: 0", False)],
)
def test_zen_4_is_told_by_its_family_and_avx512(tmp_path, text, expected):
    path = tmp_path / "cpuinfo"
    path.write_text(f"processor\t: 0\n{text}\n\nprocessor\t: 1\n{ZEN_4}\n")
    assert processor.is_zen_4(path) is expected


def test_other_systems_have_no_list(tmp_path):
    assert not processor.is_zen_4(tmp_path / "cpuinfo")


CODE = """
import sys
from pathlib import Path
from kquery_spark.config import processor
assert "numpy" not in sys.modules
processor.is_zen_4 = lambda: True
processor.sort_quickly()
import numpy as np
from numpy._core._multiarray_umath import __cpu_features__ as features
print(features[next(n for n in ("X86_V4", "AVX512F") if n in features)], np.sort(np.array([2, 1])).tolist())
"""


@pytest.mark.parametrize("own", [None, ""])
def test_a_process_of_ours_sorts_without_avx512_unless_told_otherwise(own):
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
