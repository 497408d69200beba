"""Writes the table of the pipelines suite in docs/performance.md from benchmarks/results/pipelines.json.

    python -m benchmarks.pipelines.page

The section lies between two markers of the page. A page without the markers gets it before the heading INSERT_BEFORE.
"""

from __future__ import annotations

from benchmarks.overview import PAGE, RESULTS, size_text
from benchmarks.results import QueryResult, Results, geometric_mean, read

FILE = RESULTS / "pipelines.json"
START = "<!-- The section on pipelines is written by: python -m benchmarks.pipelines.page -->"
END = "<!-- End of the section on pipelines -->"
INSERT_BEFORE = "## Where the engine does not win"

_HEADER = (
    "| step | Spark, first | engine, first | ratio | Spark, warm | engine, warm | ratio | ran in |",
    "|---|---|---|---|---|---|---|---|",
)
_PLACES = {"driver": "the driver", "tasks": "tasks of the engine", "spark": "Spark"}


def section(results: Results) -> str:
    """Return the section: the data and versions, the mean ratios, and a row for each step; ValueError for missing runs."""
    incomplete = [query.name for query in results.queries if query.ratio("spark", "kquery") is None]
    incomplete += [query.name for query in results.queries if query.first_ratio("spark", "kquery") is None]
    if incomplete:
        raise ValueError(
            f"these steps lack equal answers or first runs of both engines: {', '.join(dict.fromkeys(incomplete))}"
        )
    packages = results.environment["packages"]
    warm, first = results.ratios(), results.first_ratios()
    total_bytes = sum(file["bytes"] for file in results.files)
    options = results.options
    lines = [
        "## Jobs in the DataFrame API",
        "",
        f"{len(results.queries)} steps of jobs as people write them, in `benchmarks/pipelines`: at scale {results.scale:g}, they read",
        f"{size_text(total_bytes)} of CSV, Parquet, and JSON. Both engines run the same code; `kq.enable(spark)` turns the engine on, with",
        '`when="auto"`. A first run is the first step of a new process with a new session. Its time includes the import of the engine and',
        "`kq.enable`, and the engines take turns in going first. Warm runs alternate in one session. Times are medians in seconds. The",
        "first answer of each session is compared with Spark's, including the files that it writes. *Ran in* says where the engine ran the step's actions, or that it fell back to Spark.",
        "",
        "```bash",
        f"python -m benchmarks.bench run --suite pipelines --scale {results.scale:g} --cores {options['cores']} "
        f"--runs {options['runs']} --first {options['first']} --driver-memory {options['driver_memory']} "
        "--json benchmarks/results/pipelines.json",
        "```",
        "",
        "`python -m benchmarks.pipelines.page` writes this section from [the results](../benchmarks/results/pipelines.json).",
        f"Measured {results.finished[:10]} with Spark {packages['pyspark']} and kquery_spark {packages['kquery-spark']}. The geometric mean of the "
        "ratios is",
        f"**{geometric_mean(warm.values()):.1f}** for warm runs and **{geometric_mean(first.values()):.1f}** for first runs.",
        "",
        *_HEADER,
        *(_row(query) for query in results.queries),
    ]
    return "\n".join(lines)


def _row(query: QueryResult) -> str:
    spark, engine = query.engines["spark"], query.engines["kquery"]
    cells = [
        f"`{query.name}`",
        _seconds(spark.first),
        _seconds(engine.first),
        _ratio(query.first_ratio("spark", "kquery")),
        _seconds(spark.median),
        _seconds(engine.median),
        _ratio(query.ratio("spark", "kquery")),
        _ran_in(engine.decision.get("places", [])),
    ]
    return f"| {' | '.join(cells)} |"


def _ran_in(places: list[str]) -> str:
    return ", ".join(dict.fromkeys(_PLACES[place] for place in places)) or _PLACES["spark"]


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def _ratio(value: float | None) -> str:
    # one decimal would round 0.96 to a tie
    return "" if value is None else f"{value:.2f}" if value < 2 else f"{value:.1f}"


def replace_section(page: str, new_section: str) -> str:
    """Return the page with ``new_section`` between the markers; without markers, put it before INSERT_BEFORE."""
    marked = f"{START}\n\n{new_section}\n\n{END}"
    before, start, remainder = page.partition(START)
    _, end, after = remainder.partition(END)
    if start and end:
        return f"{before}{marked}{after}"
    before, heading, after = page.partition(INSERT_BEFORE)
    if start or not heading:
        raise ValueError(f"the page needs {START!r} and {END!r}, or the heading {INSERT_BEFORE!r}")
    return f"{before}{marked}\n\n{heading}{after}"


def main() -> None:
    """Write the section into the page, and print the path of the page."""
    PAGE.write_text(replace_section(PAGE.read_text(), section(read(FILE))))
    print(PAGE)


if __name__ == "__main__":
    main()
