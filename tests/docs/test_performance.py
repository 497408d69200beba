"""The chart and the table of docs/performance.md hold the numbers of benchmarks/results."""

from __future__ import annotations

import json
import re
from statistics import geometric_mean
from typing import Any

import pytest

from benchmarks import overview

ROWS = overview.rows()


def table_cells() -> dict[str, list[str]]:
    """The cells of the page's table after the first one, by workload."""
    page = overview.PAGE.read_text()
    lines = page.partition(overview.START)[2].partition(overview.END)[0].strip().splitlines()[2:]
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]
    return {title: cells for title, *cells in rows}


def recorded(file: str) -> dict[str, Any]:
    return json.loads((overview.RESULTS / f"{file}.json").read_text())


def ratios(file: str) -> dict[str, float]:
    """Spark's recorded median divided by the engine's, by query."""
    queries = {query["name"]: query["engines"] for query in recorded(file)["queries"]}
    assert {one["status"] for engines in queries.values() for one in engines.values()} == {"ok"}
    return {
        name: engines["spark"]["median_seconds"] / engines["kquery"]["median_seconds"]
        for name, engines in queries.items()
    }


@pytest.mark.parametrize("workload", overview.WORKLOADS, ids=lambda workload: workload.file)
def test_a_row_holds_the_numbers_of_its_file(workload: overview.Workload) -> None:
    _, queries, mean, lowest, below_one, measured = table_cells()[workload.title]
    expected = ratios(workload.file)
    assert int(queries) == len(expected)
    assert float(mean) == pytest.approx(geometric_mean(expected.values()), abs=0.0501)
    ratio, name = re.fullmatch(r"([\d.]+) \(`(\w+)`\)", lowest).groups()
    assert float(ratio) == pytest.approx(min(expected.values()), abs=0.0501)
    assert expected[name] == min(expected.values())
    assert int(below_one) == sum(ratio < 1 for ratio in expected.values())
    run = recorded(workload.file)
    packages = run["environment"]["packages"]
    assert measured.startswith(run["finished"][:10])
    assert packages["pyspark"] in measured and packages["kquery-spark"] in measured


def test_the_page_has_the_table_that_the_script_writes() -> None:
    page = overview.PAGE.read_text()
    assert overview.replace_table(page, overview.table(ROWS)) == page, "run: python -m benchmarks.overview"


def test_the_readme_and_the_releases_show_the_recorded_run_of_tpch() -> None:
    queries = [query["engines"] for query in recorded("tpch-sf1")["queries"]]
    spark, engine = ([one[name]["median_seconds"] for one in queries] for name in ("spark", "kquery"))
    expected = {
        "Spark, s": [f"{seconds:.2f}" for seconds in spark],
        "kquery_spark, s": [f"{seconds:.2f}" for seconds in engine],
        "Spark / kquery_spark": [f"{a / b:.1f}" for a, b in zip(spark, engine, strict=True)],
    }
    readme = (overview.ROOT / "README.md").read_text()
    for label, cells in expected.items():
        lines = re.findall(rf"^\| {label} \| (.+) \|$", readme, re.MULTILINE)
        assert " | ".join(lines).split(" | ") == cells
    row = next(row for row in ROWS if row.title == "TPC-H, scale factor 1")
    planning = recorded("tpch-sf1")["summary"]["kquery_planning_median_seconds"]
    numbers = f"| {row.mean:.1f} | {row.lowest:.1f} (query {row.lowest_query}) | {planning * 1000:.0f} ms |"
    assert f"| 4.3.0 {numbers}" in (overview.ROOT / "docs" / "compatibility.md").read_text()
    assert f"| TPC-H, scale factor 1, 22 queries | **{row.mean:.1f}** | {row.lowest:.1f} |" in readme


def test_the_chart_shows_every_mean() -> None:
    strings = re.findall(r">([^<>]+)</text>", overview.CHART.read_text())
    for row in ROWS:
        assert row.title in strings
    means = [string for string in strings if re.fullmatch(r"\d+\.\d", string)]
    assert means == [f"{row.mean:.1f}" for row in ROWS], "run: python -m benchmarks.overview"


def test_the_script_draws_the_same_chart_twice(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    workloads = [(row.title, row.mean, row.lowest) for row in ROWS]
    first, second = (overview.plots.overview(workloads, tmp_path / name) for name in ("a.svg", "b.svg"))
    assert first.read_bytes() == second.read_bytes()


def test_a_page_without_markers_is_an_error() -> None:
    with pytest.raises(ValueError, match="the page needs the lines"):
        overview.replace_table("# Performance", "")
