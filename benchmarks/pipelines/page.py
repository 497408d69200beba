"""Writes the table of the pipelines suite in docs/performance-notes.md from benchmarks/results/pipelines-0.1.json.

    python -m benchmarks.pipelines.page

The table and the geometric mean below it replace the lines between two markers of the page.
"""

from __future__ import annotations

from benchmarks.overview import RESULTS, ROOT, replace_table
from benchmarks.results import QueryResult, Results, geometric_mean, read

FILE = RESULTS / "pipelines-0.1.json"
PAGE = ROOT / "docs" / "performance-notes.md"
START = "<!-- The table of the pipelines suite is written by: python -m benchmarks.pipelines.page -->"
END = "<!-- End of the table of the pipelines suite -->"

_PLACES = {"driver": "the driver", "tasks": "tasks of the engine", "spark": "Spark"}


def table(results: Results) -> str:
    """Return a Markdown table with a row for each step, and the geometric means; ValueError if a step lacks equal answers.

    First runs have columns of their own if the results contain any.
    """
    ratios, first_ratios = results.ratios(), results.first_ratios()
    incomplete = [query.name for query in results.queries if query.name not in ratios]
    if incomplete:
        raise ValueError(f"these steps have no equal answers of both engines: {', '.join(incomplete)}")
    headings = ["step", "Spark", "kquery_spark", "Spark / kquery_spark", "ran in"]
    means = f"The geometric mean is {geometric_mean(ratios.values()):.1f}."
    if first_ratios:
        headings += ["Spark, first run", "kquery_spark, first run", "Spark / kquery_spark, first run"]
        means = f"{means[:-1]}, and {geometric_mean(first_ratios.values()):.1f} for first runs."
    rows = [_cells(query, bool(first_ratios)) for query in results.queries]
    lines = [_row(headings), "|" + "---|" * len(headings), *map(_row, rows), "", means]
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(query: QueryResult, has_first_runs: bool) -> list[str]:
    spark, engine = query.engines["spark"], query.engines["kquery"]
    places = engine.decision.get("places") or ["spark"]
    cells = [
        f"`{query.name}`",
        *map(_number, (spark.median, engine.median, query.ratio("spark", "kquery"))),
        ", ".join(dict.fromkeys(_PLACES[place] for place in places)),
    ]
    if has_first_runs:
        cells += map(_number, (spark.first, engine.first, query.first_ratio("spark", "kquery")))
    return cells


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def main() -> None:
    """Write the table into the page, and print the path of the page."""
    PAGE.write_text(replace_table(PAGE.read_text(), table(read(FILE)), START, END))
    print(PAGE)


if __name__ == "__main__":
    main()
