"""The processor: the cores that are ours, and what numpy has to be told about it before it is imported."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path

from kquery_spark.config.cgroups import cpu_quota

_SETTING = "NPY_DISABLE_CPU_FEATURES"
_CPUINFO = Path("/proc/cpuinfo")
_ZEN_3_AND_4 = 25  # the processor family of AMD's; of these only Zen 4 has AVX-512
_OLD_NAMES = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL"  # before numpy 2.4
_NAMES = "X86_V4 AVX512_ICL AVX512_SPR"


def available_cores(root: Path = Path("/")) -> int:
    """Cores that this process may use: in a container or under ``taskset`` fewer than the machine's.

    root: see ``cgroup_directories``.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, cpu_quota(root) or cores)


def sort_quickly() -> None:
    """Have numpy sort by AVX2 on AMD's Zen 4; in processes of ours, before anything imports numpy.

    By AVX-512 an integer takes 40 to 55 ns there, by AVX2 8 to 11: it stores with an instruction that Zen 4 has in
    microcode (numpy/x86-simd-sort issue 6). Sorting, grouping by many keys and joins stand on that. Who has set
    ``NPY_DISABLE_CPU_FEATURES`` is left alone.
    """
    if _SETTING in os.environ or "numpy" in sys.modules or not is_zen_4():
        return
    os.environ[_SETTING] = _features(version("numpy"))


def is_zen_4(cpuinfo: Path = _CPUINFO) -> bool:
    """Whether the first processor of Linux's list is a Zen 4; False where there is no such list."""
    try:
        first = cpuinfo.read_text().split("\n\n", 1)[0]
    except OSError:
        return False
    facts = {
        name.strip(): value.strip() for name, _, value in (line.partition(":") for line in first.splitlines())
    }
    flags = facts.get("flags", "").split()
    family = facts.get("cpu family")
    return facts.get("vendor_id") == "AuthenticAMD" and family == str(_ZEN_3_AND_4) and "avx512f" in flags


def _features(numpy_version: str) -> str:
    major, minor = map(int, numpy_version.split(".")[:2])
    return _NAMES if (major, minor) >= (2, 4) else _OLD_NAMES
