"""Writes the chart and the table at the start of docs/performance.md from the recorded runs in benchmarks/results.

    python -m benchmarks.overview

The chart is docs/pictures/performance.svg. The table replaces the lines between the two markers of the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks import plots
from benchmarks.results import Results, read

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "performance.md"
CHART = ROOT / "docs" / "pictures" / "performance.svg"
START = "<!-- The table is written by: python -m benchmarks.overview -->"
END = "<!-- End of the table -->"

_HEADER = (
    "| workload | data | queries | geometric mean | lowest query | queries below 1 | measured |",
    "|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True)
class Workload:
    """A result file, without its ending, and how the page names the workload and its data; {size} is the size of the files."""

    file: str
    title: str
    data: str


WORKLOADS = (
    Workload("tpch-sf1", "TPC-H, scale factor 1", "{size} of Parquet"),
    Workload("tpch-sf10", "TPC-H, scale factor 10", "{size} of Parquet"),
    Workload("tpcds-sf1", "TPC-DS, scale factor 1", "{size} of Parquet"),
    Workload("taxi-30m", "Taxi trips, grouped", "30 million trips, {size} of Parquet and CSV"),
    Workload("micro-sf1", "Single operations", "10 million rows, {size} of Parquet"),
    Workload("pipelines-0.1", "Jobs in the DataFrame API", "{size} of CSV, Parquet, and JSON"),
    Workload("small", "Small queries", "up to 500,000 rows, {size} of Parquet"),
)


@dataclass(frozen=True)
class Row:
    """The numbers of one workload. ``mean`` and ``lowest`` are Spark's time divided by the engine's."""

    title: str
    data: str
    queries: int
    mean: float
    lowest: float
    lowest_query: str
    below_one: tuple[str, ...]
    measured: str

    @classmethod
    def from_results(cls, workload: Workload, results: Results) -> Row:
        """Compute the row; raise ValueError if a query has no pair of equal answers."""
        ratios = results.ratios()
        if len(ratios) != len(results.queries):
            raise ValueError(f"{workload.file}: some queries have no equal answers of both engines")
        lowest_query = min(ratios, key=ratios.__getitem__)
        versions = results.environment["packages"]
        measured = (
            f"{results.finished[:10]}, Spark {versions['pyspark']}, kquery_spark {versions['kquery-spark']}"
        )
        total_bytes = sum(file["bytes"] for file in results.files)
        return cls(
            title=workload.title,
            data=workload.data.format(size=_size(total_bytes)),
            queries=len(ratios),
            mean=results.summary()["spark_over_kquery"]["geometric_mean"],
            lowest=ratios[lowest_query],
            lowest_query=lowest_query,
            below_one=tuple(sorted(name for name, ratio in ratios.items() if ratio < 1)),
            measured=measured,
        )

    def as_markdown(self) -> str:
        """Return the row of the Markdown table."""
        return (
            f"| {self.title} | {self.data} | {self.queries} | **{self.mean:.1f}** "
            f"| {_ratio(self.lowest)} (`{self.lowest_query}`) | {len(self.below_one)} | {self.measured} |"
        )


def rows() -> list[Row]:
    """Return one row for each workload, in the order of the table."""
    return [Row.from_results(w, read(RESULTS / f"{w.file}.json")) for w in WORKLOADS]


def table(table_rows: list[Row]) -> str:
    """Return the Markdown table."""
    return "\n".join([*_HEADER, *(row.as_markdown() for row in table_rows)])


def replace_table(page: str, new_table: str, start: str = START, end: str = END) -> str:
    """Return the page with another table between two markers; ValueError if a marker is missing."""
    before, found_start, remainder = page.partition(start)
    _, found_end, after = remainder.partition(end)
    if not (found_start and found_end):
        raise ValueError(f"the page needs the lines {start!r} and {end!r}")
    return f"{before}{start}\n\n{new_table}\n\n{end}{after}"


def _ratio(value: float) -> str:
    # one decimal would round 0.96 to a tie
    return f"{value:.2f}" if value < 1 else f"{value:.1f}"


def _size(total_bytes: int) -> str:
    return f"{total_bytes / 1e9:.1f} GB" if total_bytes >= 1e8 else f"{total_bytes / 1e6:.0f} MB"


def main() -> None:
    """Write the chart and the table."""
    computed = rows()
    plots.overview([(row.title, row.mean, row.lowest) for row in computed], CHART)
    PAGE.write_text(replace_table(PAGE.read_text(), table(computed)))
    print(CHART, PAGE, sep="\n")


if __name__ == "__main__":
    main()
