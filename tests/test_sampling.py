"""Tests which cases of slow parametrized tests ``make check`` runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests import sampling
from tests.conftest import ROOT
from tests.sampling import OMITTED_MARKS


class _Item:
    """A stand-in for ``pytest.Item`` with the members that ``mark_cases_beyond_sample`` uses."""

    def __init__(self, path: str, case: str, *marks: str) -> None:
        self.path = ROOT / "tests" / path
        self.nodeid = f"tests/{path}::test_it[{case}]"
        self.marks = set(marks)

    def get_closest_marker(self, name: str) -> Any:
        return SimpleNamespace() if name in self.marks else None

    def iter_markers(self, name: str) -> Iterator[Any]:
        return iter([SimpleNamespace(args=(True,))] if name in self.marks else [])

    def add_marker(self, name: str) -> None:
        self.marks.add(name)


def _sampled(monkeypatch: pytest.MonkeyPatch, items: list[_Item]) -> set[str]:
    monkeypatch.setattr(sampling, "MAX_CASES", {"slow": 2, "slow/test_whole.py": 9})
    sampling.mark_cases_beyond_sample(items)  # type: ignore[arg-type]
    return {item.nodeid for item in items if not item.marks}


def test_the_number_of_cases_of_a_slow_directory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [_Item("slow/test_a.py", str(i)) for i in range(7)]
    chosen = _sampled(monkeypatch, items)
    assert len(chosen) == 2
    fewer = [_Item("slow/test_a.py", item.nodeid[-2]) for item in items if item.nodeid not in chosen][1:]
    again = _sampled(monkeypatch, [*(_Item("slow/test_a.py", name[-2]) for name in chosen), *fewer])
    assert again == chosen  # other cases do not change the sample


def test_longer_paths_and_other_directories_have_limits_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [_Item(path, str(i)) for path in ("slow/test_whole.py", "fast/test_b.py") for i in range(7)]
    assert len(_sampled(monkeypatch, items)) == 14


@pytest.mark.parametrize("mark", ["exhaustive", "faults", "tables", "skipif"])
def test_cases_that_marks_deselect_do_not_use_up_the_sample(
    monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    items = [_Item("slow/test_a.py", str(i), mark) for i in range(20)] + [
        _Item("slow/test_a.py", case) for case in "ab"
    ]
    assert _sampled(monkeypatch, items) == {items[-2].nodeid, items[-1].nodeid}


def test_the_omitted_marks_are_those_of_make_check(pytestconfig: pytest.Config) -> None:
    (expression,) = re.findall(r"-m '([^']*)'", " ".join(map(shlex.quote, pytestconfig.getini("addopts"))))
    assert expression == " and ".join(f"not {mark}" for mark in OMITTED_MARKS)
