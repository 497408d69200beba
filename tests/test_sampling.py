"""The sample of slow parametrized tests: which cases of a test ``make check`` runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests import sampling
from tests.conftest import ROOT


class _Item:
    """A collected case of a test, as far as ``mark_cases_beyond_sample`` looks at it."""

    def __init__(self, path: str, case: str, *marks: str) -> None:
        self.path = ROOT / "tests" / path
        self.nodeid = f"tests/{path}::test_it[{case}]"
        self.marks = set(marks)

    def get_closest_marker(self, name: str) -> Any:
        return SimpleNamespace() if name in self.marks else None

    def add_marker(self, name: str) -> None:
        self.marks.add(name)


def _sampled(monkeypatch: pytest.MonkeyPatch, items: list[_Item]) -> set[str]:
    monkeypatch.setattr(sampling, "MAX_CASES", {"slow": 2, "slow/test_whole.py": 9})
    sampling.mark_cases_beyond_sample(items)  # type: ignore[arg-type]
    return {item.nodeid for item in items if not item.marks}


def test_a_test_of_a_slow_directory_has_at_most_so_many_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [_Item("slow/test_a.py", str(i)) for i in range(7)]
    chosen = _sampled(monkeypatch, items)
    assert len(chosen) == 2
    fewer = [_Item("slow/test_a.py", item.nodeid[-2]) for item in items if item.nodeid not in chosen][1:]
    again = _sampled(monkeypatch, [*(_Item("slow/test_a.py", name[-2]) for name in chosen), *fewer])
    assert again == chosen  # other cases do not change the sample


def test_longer_paths_and_other_directories_have_limits_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [_Item(path, str(i)) for path in ("slow/test_whole.py", "fast/test_b.py") for i in range(7)]
    assert len(_sampled(monkeypatch, items)) == 14


@pytest.mark.parametrize("mark", ["exhaustive", "faults", "tables"])
def test_cases_that_do_not_run_anyway_do_not_count(monkeypatch: pytest.MonkeyPatch, mark: str) -> None:
    items = [_Item("slow/test_a.py", str(i), mark) for i in range(20)] + [
        _Item("slow/test_a.py", case) for case in "ab"
    ]
    assert _sampled(monkeypatch, items) == {items[-2].nodeid, items[-1].nodeid}
