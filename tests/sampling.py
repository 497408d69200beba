"""Which cases of the parametrized tests ``make check`` runs: a sample where a case takes seconds, all elsewhere.

``make test-all`` runs every case. A hash of its id chooses a case, so the sample stays the same if other cases change.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

#: The number of cases of one test that ``make check`` runs, by the directory or file of the test. The longest path counts.
CASES = {
    "accelerate": 2,
    "accelerate/enable/test_every_action.py": 6,
    "accelerate/queries/test_tpch.py": 22,
    "benchmarks": 3,
    "faults": 3,
    "frontends/dataframe/test_against_pyspark.py": 40,
    "frontends/sql/analyzer/test_tpc.py": 4,
    "frontends/substrait/test_substrait_tpch.py": 4,
    "fuzz/test_sql_inputs.py": 1,
    "physical/test_join_memory.py": 8,
    "physical/test_min_max_filter.py": 4,
}
_DIRECTORY = Path(__file__).parent


def mark_cases_beyond_sample(items: Iterable[pytest.Item]) -> None:
    """Mark the cases that only ``make test-all`` runs as exhaustive, unless a test marks some of its cases itself."""
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        name, _, case = item.nodeid.partition("[")
        if case and item.get_closest_marker("exhaustive") is None:
            cases[name].append(item)
    for of_test in cases.values():
        limit = _limit(of_test[0].path)
        if limit is not None and len(of_test) > limit:
            for item in sorted(of_test, key=lambda item: zlib.crc32(item.nodeid.encode()))[limit:]:
                item.add_marker("exhaustive")


def _limit(path: Path) -> int | None:
    """Return the number of cases for the tests of a file; None for all."""
    relative = path.relative_to(_DIRECTORY).as_posix()
    names = [name for name in CASES if relative == name or relative.startswith(f"{name}/")]
    return CASES[max(names, key=len)] if names else None
