"""Selects the cases of slow parametrized tests that ``make check`` and ``make test`` run; of other tests, they run all.

``make test-all`` runs every case. The sample consists of the cases whose ids have the smallest hashes, so it hardly changes
if cases are added or removed.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

#: The largest number of cases of one test that ``make check`` runs, by directory or file. The longest matching path applies.
MAX_CASES = {
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
OMITTED_MARKS = ("exhaustive", "faults", "tables", "wheel", "image")  # as in pyproject.toml
_DIRECTORY = Path(__file__).parent


def mark_cases_beyond_sample(items: Iterable[pytest.Item]) -> None:
    """Mark the cases beyond the sample as exhaustive. Cases that ``make check`` omits do not use up the sample."""
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        name, _, case = item.nodeid.partition("[")
        if case and not _is_omitted(item):
            cases[name].append(item)
    for cases_of_test in cases.values():
        limit = _max_cases(cases_of_test[0].path)
        if limit is not None and len(cases_of_test) > limit:
            for item in sorted(cases_of_test, key=lambda item: zlib.crc32(item.nodeid.encode()))[limit:]:
                item.add_marker("exhaustive")


def _is_omitted(item: pytest.Item) -> bool:
    """Return whether ``make check`` deselects or skips a case."""
    is_skipped = any(mark.args and mark.args[0] is True for mark in item.iter_markers("skipif"))
    return is_skipped or any(item.get_closest_marker(mark) for mark in OMITTED_MARKS)


def _max_cases(path: Path) -> int | None:
    """Return the largest number of cases for each test of a file; None for all cases."""
    relative = path.relative_to(_DIRECTORY).as_posix()
    names = [name for name in MAX_CASES if relative == name or relative.startswith(f"{name}/")]
    return MAX_CASES[max(names, key=len)] if names else None
