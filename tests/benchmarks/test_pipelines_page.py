"""The table of the pipelines suite in docs/performance-notes.md."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.overview import replace_table
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


def without_first_runs(query: QueryResult) -> QueryResult:
    return replace(
        query, engines={name: replace(one, first_seconds=()) for name, one in query.engines.items()}
    )


def test_the_table_has_first_and_warm_times():
    text = page.table(example_results())
    assert "| `a` | 3.00 | 1.50 | 2.00 | tasks of the engine | 12.00 | 6.00 | 2.00 |" in text
    assert "| `b` | 0.96 | 1.00 | 0.96 | Spark | 4.00 | 5.00 | 0.80 |" in text
    assert text.endswith("The geometric mean is 1.4, and 1.3 for first runs.")


def test_the_table_has_columns_for_first_runs_only_if_there_are_any():
    results = example_results()
    a, b = results.queries
    text = page.table(replace(results, queries=(without_first_runs(a), without_first_runs(b))))
    assert "| `a` | 3.00 | 1.50 | 2.00 | tasks of the engine |\n" in text
    assert "first" not in text
    assert text.endswith("The geometric mean is 1.4.")
    text = page.table(replace(results, queries=(without_first_runs(a), b)))
    assert "| `a` | 3.00 | 1.50 | 2.00 | tasks of the engine |  |  |  |\n" in text
    assert text.endswith("and 0.8 for first runs.")


def test_the_table_needs_equal_answers():
    results = example_results()
    wrong = replace(results.queries[0].engines["kquery"], status="wrong")
    query = QueryResult("a", {**results.queries[0].engines, "kquery": wrong})
    with pytest.raises(ValueError, match="no equal answers of both engines: a"):
        page.table(replace(results, queries=(query,)))


def test_the_page_shows_the_recorded_run():
    text = page.PAGE.read_text()
    assert replace_table(text, page.table(read(page.FILE)), page.START, page.END) == text, (
        "run: python -m benchmarks.pipelines.page"
    )
