"""The measurements of benchmarks.scale, with small cases."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import scale
from tests.conftest import ROOT

SMALL_CASES = (
    replace(scale.CASES[0], write=scale.small_files(12)),
    replace(scale.CASES[-1], write=scale.skewed_keys(0.5, 10_000)),
)


@pytest.mark.parametrize("case", SMALL_CASES, ids=["files", "join"])
def test_a_case_compares_answers_and_removes_its_files(spark: Any, tmp_path: Path, case: scale.Case) -> None:
    result = scale.measure(spark, case, tmp_path, 1)
    assert result.plan_bytes > 100
    assert result.tasks >= 1
    assert result.spark_seconds > result.spark_planning_seconds > 0
    assert result.engine_seconds > 0
    assert len(scale.cells(result)) == len(scale.HEADINGS)
    assert not list(tmp_path.iterdir())


def test_a_file_gets_a_limited_number_of_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "_MAX_LINKS", 2)
    scale.small_files(5)(tmp_path / "t")
    files = sorted((tmp_path / "t" / "part=0").iterdir())
    assert len(files) == 5
    assert len({file.stat().st_ino for file in files}) == 3


def test_a_query_that_falls_back_to_spark_has_no_tasks(spark: Any, tmp_path: Path) -> None:
    case = scale.Case("fallback", scale.small_files(1), "SELECT percentile_approx(v, 0.5) AS p FROM t")
    with pytest.raises(ValueError, match=r"fallback: .*percentile"):
        scale.measure(spark, case, tmp_path, 1)
    result = scale.measure(spark, replace(case, falls_back=True), tmp_path, 1)
    assert result.tasks == result.plan_bytes == 0
    assert not list(tmp_path.iterdir())


def test_the_page_has_the_recorded_results() -> None:
    recorded = json.loads((ROOT / "benchmarks" / "results" / "scale.json").read_text())
    results = [scale.CaseResult(**case) for case in recorded["cases"]]
    lines = (ROOT / "docs" / "scale.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert rows[0] == f"| {' | '.join(scale.HEADINGS)} |"
    assert rows[2:] == [f"| {' | '.join(scale.cells(result))} |" for result in results]
