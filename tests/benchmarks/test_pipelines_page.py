"""The section on pipelines of docs/performance.md."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.pipelines import page
from benchmarks.results import EngineResult, QueryResult, Results, read


def example_results() -> Results:
    def engine(first: float, warm: float, **decision: Any) -> EngineResult:
        return EngineResult("ok", first_seconds=(first,), warm_seconds=(warm,), decision=decision)

    queries = (
        QueryResult("a", {"spark": engine(12, 3), "kquery": engine(6, 1.5, places=["tasks"])}),
        QueryResult("b", {"spark": engine(4, 0.96), "kquery": engine(5, 1, places=[])}),
    )
    return Results(
        "pipelines", 1.0, ("spark", "kquery"), "then", "2026-01-02T03:04:05", {"cores": 2, "runs": 3, "first": 1,
        "driver_memory": "4g"}, {"packages": {"pyspark": "4.3.0", "kquery-spark": "0.3.0"}}, {},
        [{"table": "t", "file": "f", "bytes": 3_000_000_000, "sha256": "x"}], queries,
    )  # fmt: skip


def test_the_section_has_first_and_warm_times():
    text = page.section(example_results())
    assert "| `a` | 12.0 | 6.00 | 2.0 | 3.00 | 1.50 | 2.0 | tasks of the engine |" in text
    assert "| `b` | 4.00 | 5.00 | 0.80 | 0.96 | 1.00 | 0.96 | Spark |" in text
    assert "3.0 GB of CSV" in text
    assert "**1.4** for warm runs and **1.3** for first runs" in text


def test_a_section_needs_first_runs_and_equal_answers():
    without = replace(example_results().queries[0].engines["kquery"], first_seconds=())
    query = QueryResult("a", {**example_results().queries[0].engines, "kquery": without})
    with pytest.raises(ValueError, match="first runs of both engines: a"):
        page.section(replace(example_results(), queries=(query,)))


def test_the_section_is_inserted_and_replaced():
    first = page.replace_section(f"# P\n\n{page.INSERT_BEFORE}\n\nend\n", "one")
    assert first == f"# P\n\n{page.START}\n\none\n\n{page.END}\n\n{page.INSERT_BEFORE}\n\nend\n"
    assert page.replace_section(first, "two") == first.replace("one", "two")
    with pytest.raises(ValueError, match="the page needs"):
        page.replace_section("# P", "one")


def test_the_page_shows_the_recorded_run():
    text = page.PAGE.read_text()
    if page.FILE.exists():
        assert page.replace_section(text, page.section(read(page.FILE))) == text, (
            "run: python -m benchmarks.pipelines.page"
        )
    else:
        assert page.START not in text
        assert page.INSERT_BEFORE in text
