"""The 22 TPC-H-derived queries on both engines, as a table and as JSON.

python -m benchmarks.bench --scale 1 --queries 1,3,6 --json results.json
"""

from __future__ import annotations

import json
import math
import sys
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from benchmarks import tpch
from benchmarks.compare import Comparison, compare, machine, session
from benchmarks.demo import summary_table
from kquery_spark.cli.failures import Exit, Failure, run


def parse_queries(text: str) -> list[int]:
    """``1,3,6-8`` as numbers; anything that names no query is an error."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise click.BadParameter(f"'{part}' is not a query number or a range of them")
        numbers += range(int(first), int(last or first) + 1)
    unknown = [number for number in numbers if number not in tpch.QUERIES]
    if unknown or not numbers:
        raise click.BadParameter(f"there are queries 1 to 22, not {', '.join(map(str, unknown)) or 'none'}")
    return numbers


def geometric_mean(comparisons: list[Comparison]) -> float:
    """The mean ratio, in which twice as fast and half as fast cancel out."""
    return math.exp(sum(math.log(one.ratio) for one in comparisons) / len(comparisons))


@click.command(help="The 22 TPC-H-derived queries on Spark and kquery_spark.")
@click.option(
    "--scale", default=1.0, show_default=True, type=click.FloatRange(min=0.001), help="TPC-H scale factor."
)
@click.option("--queries", default="1-22", show_default=True, help="Numbers and ranges, such as 1,3,6-8.")
@click.option(
    "--runs", default=3, show_default=True, type=click.IntRange(min=1), help="Timed runs of each engine."
)
@click.option("--data", type=click.Path(path_type=Path), help="Where the data is or is made.")
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write every time to this file.",
)
def main(scale: float, queries: str, runs: int, data: Path | None, json_path: Path | None) -> None:
    """Make the data, run the queries, print a table, write the JSON."""
    numbers = parse_queries(queries)
    console = Console()
    folder = tpch.generate(data or Path(".benchdata") / f"tpch-{scale:g}", scale)
    started = datetime.now(UTC)
    spark = session("kquery_spark bench")
    comparisons: list[Comparison] = []
    try:
        tpch.register(spark, folder)
        for number in numbers:
            with console.status(f"query {number}"):
                one, _ = compare(spark, f"TPC-H {number}", tpch.query(number), runs)
            comparisons.append(one)
            console.print(
                f"{one.name}: {one.ratio:.1f}x, same as Spark SQL: {'yes' if one.same else 'NO'}",
                highlight=False,
            )
    finally:
        spark.stop()
    console.print(summary_table(comparisons))
    spark_total = sum(one.spark_median for one in comparisons)
    engine_total = sum(one.engine_median for one in comparisons)
    mean = geometric_mean(comparisons)
    console.print(
        f"sum of medians: Spark {spark_total:.1f} s, kquery_spark {engine_total:.1f} s, "
        f"{spark_total / engine_total:.1f} times as fast; geometric mean {mean:.1f}",
        highlight=False,
    )
    console.print(tpch.FAIR_USE, highlight=False)
    if json_path is not None:
        record = {
            "started": started.isoformat(timespec="seconds"),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "scale": scale,
            "runs": runs,
            "machine": machine(),
            "queries": [one.as_json() for one in comparisons],
            "note": tpch.FAIR_USE,
        }
        json_path.write_text(json.dumps(record, indent=2) + "\n")
    different = [one.name for one in comparisons if not one.same]
    if different:
        raise Failure(Exit.DIFFERENT_ANSWERS, f"not Spark's answer: {', '.join(different)}")


if __name__ == "__main__":
    sys.exit(run("bench", lambda: main(standalone_mode=False)))
