"""The demo: one Spark session, the same queries on Spark and in the engine, answers compared, times printed.

python -m benchmarks.demo --rows 3000000 --scale 0.1
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

import kquery_spark as kq
from benchmarks import taxi, tpch
from benchmarks.compare import Comparison, compare, machine, session
from kquery_spark.cli.failures import Exit, Failure, run

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

TAXI_QUERY = "SELECT passenger_count, MAX(fare_amount) FROM {table} GROUP BY passenger_count"
TPCH_QUERIES = (1, 3, 6)
EXPLAINED = "TPC-H 3"
SHOWN_ROWS = 11


@contextmanager
def _bar(console: Console, text: str, total: int) -> Iterator[tuple[Progress, TaskID]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=console.is_terminal) as progress:
        yield progress, progress.add_task(text, total=total)


def queries() -> dict[str, str]:
    """The demo's queries by the names they are printed under."""
    named = {
        f"taxi, {format_}": TAXI_QUERY.format(table=f"tripdata_{format_}") for format_ in ("parquet", "csv")
    }
    return named | {f"TPC-H {number}": tpch.query(number) for number in TPCH_QUERIES}


def register(spark: SparkSession, data: Path) -> None:
    """The tables of ``queries()`` as temporary views; both taxi tables have the same declared types."""
    trips = data / "taxi"
    spark.read.parquet(str(trips / "parquet")).createOrReplaceTempView("tripdata_parquet")
    text = spark.read.csv(str(trips / "csv"), header=True, schema=taxi.DDL)
    text.createOrReplaceTempView("tripdata_csv")
    tpch.register(spark, data / "tpch")


def make_data(console: Console, data: Path, rows: int, scale: float) -> None:
    """Taxi trips and TPC-H tables below ``data``, unless they are there."""
    with _bar(console, f"making {rows:,} taxi trips", rows) as (progress, task):
        taxi.generate(data / "taxi", rows, progress=lambda done: progress.advance(task, done))
    with console.status(f"making TPC-H data, scale {scale:g}"):
        tpch.generate(data / "tpch", scale)


def rows_table(result: pa.Table) -> Table:
    """The first rows of a result as text."""
    table = Table(show_edge=False, pad_edge=False)
    for name in result.column_names:
        table.add_column(Text(name), overflow="fold")
    for row in result.slice(0, SHOWN_ROWS).to_pylist():
        # Text, because data may hold what looks like rich's own markup
        table.add_row(*(Text("NULL" if value is None else str(value)) for value in row.values()))
    if result.num_rows > SHOWN_ROWS:
        table.caption = f"{result.num_rows - SHOWN_ROWS} more rows"
    return table


def summary_table(comparisons: list[Comparison]) -> Table:
    """One line a query: both medians, their ratio, whether the answers are the same."""
    table = Table(title="warm medians, planning and running, result in Python")
    for heading in ("query", "rows", "Spark", "kquery", "ratio", "in the engine", "same as Spark"):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for one in comparisons:
        table.add_row(
            one.name,
            f"{one.rows:,}",
            f"{one.spark_median * 1000:,.0f} ms",
            f"{one.engine_median * 1000:,.0f} ms",
            f"{one.ratio:.1f}x",
            "all of it" if one.accelerated and not one.reasons else "not all",
            yes_no(one.same),
        )
    return table


def yes_no(same: bool) -> str:
    """The word a reader looks for."""
    return "yes" if same else "NO"


def show(console: Console, one: Comparison, sql: str, result: pa.Table) -> None:
    """Print a query, its first rows, the comparison in one line, and what falls back to Spark."""
    console.rule(one.name)
    console.print(Syntax(sql.strip(), "sql", background_color="default", word_wrap=True))
    console.print(rows_table(result))
    console.print(
        f"same as Spark SQL: {yes_no(one.same)}   Spark {one.spark_median * 1000:,.0f} ms   "
        f"kquery_spark {one.engine_median * 1000:,.0f} ms   {one.ratio:.1f} times as fast",
        highlight=False,
    )
    for reason in one.reasons:
        console.print(f"falls back to Spark: {reason}", markup=False, highlight=False)
    if one.difference:
        console.print(one.difference, markup=False)


@click.command(help="Compare Spark and kquery_spark on taxi trips and TPC-H data.")
@click.option(
    "--rows",
    default=taxi.DEFAULT_ROWS,
    show_default=True,
    type=click.IntRange(min=12),
    help="Number of taxi trips.",
)
@click.option(
    "--scale", default=0.1, show_default=True, type=click.FloatRange(min=0.001), help="TPC-H scale factor."
)
@click.option(
    "--runs", default=5, show_default=True, type=click.IntRange(min=1), help="Timed runs of each engine."
)
@click.option("--data", default=".benchdata/demo", show_default=True, type=click.Path(path_type=Path),
              help="Directory of the generated data.")  # fmt: skip
def main(rows: int, scale: float, runs: int, data: Path) -> None:
    """Make the data, run every query on both engines, print rows, answers compared, times and a plan."""
    console = Console()
    make_data(console, data, rows, scale)
    with console.status("starting Spark"):
        spark = session("kquery_spark demo")
    try:
        register(spark, data)
        comparisons: list[Comparison] = []
        for name, sql in queries().items():
            with _bar(console, f"{name}: {runs} runs of each engine", runs + 1) as (progress, task):
                one, result = compare(spark, name, sql, runs, lambda: progress.advance(task))
            show(console, one, sql, result)
            comparisons.append(one)
        console.rule(f"explain {EXPLAINED}")
        console.print(str(kq.explain(spark.sql(queries()[EXPLAINED]))), markup=False, highlight=False)
        console.rule("summary")
        console.print(summary_table(comparisons))
    finally:
        spark.stop()
    console.print(", ".join(f"{key} {value}" for key, value in machine().items()), highlight=False)
    console.print(tpch.FAIR_USE, highlight=False)
    different = [one.name for one in comparisons if not one.same]
    if different:
        raise Failure(Exit.DIFFERENT_ANSWERS, f"not Spark's answer: {', '.join(different)}")


if __name__ == "__main__":
    sys.exit(run("demo", lambda: main(standalone_mode=False)))
