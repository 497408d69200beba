"""The share of a suite's queries that runs in the engine, and whether the answers equal those of Spark: a table for the documentation.

python -m benchmarks.coverage --suite tpcds --scale 0.1 --out docs/tpcds_coverage.md

Every query is planned with ``when="always"`` and verified: as the engine runs it at this scale, and again with
``spark.kquery.smallBytes=0``, which cuts what would be one task into stages with exchanges.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

import kquery_spark as kq
from benchmarks.compare import session
from benchmarks.engines.spark import register, session_settings
from benchmarks.environment import environment
from benchmarks.suites import SQL_SUITES, SUITES, Query
from kquery_spark.cli.failures import Exit, Failure, explain_failure
from kquery_spark.cli.failures import run as run_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_STAGES = {"spark.kquery.smallBytes": "0"}
_PACKAGES = ("pyspark", "pyarrow", "numpy", "duckdb", "duckdb-extension-tpcds", "tpchgen-cli")


@dataclass(frozen=True)
class Verdict:
    """Whether an answer equals that of Spark; ``problem`` is the difference, or the error that was raised instead."""

    equal: bool
    rows: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Line:
    """One query: its share in the engine, what falls back to Spark and why, and the verdicts on its answers."""

    query: str
    coverage: float
    reasons: tuple[str, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def equal(self) -> bool:
        """Whether every answer was Spark's."""
        return all(verdict.equal for verdict in self.verdicts)


def cover(spark: SparkSession, query: Query, timeout: float = 600.0) -> Line:
    """Plan a query and verify it in both ways; a query that takes longer than ``timeout`` seconds is stopped."""
    with session_settings(spark, query.settings):
        explained = kq.explain(spark.sql(query.sql))
        reasons = tuple(f"{node}: {sentence}" for node, sentence in explained.reasons)
        verdicts = []
        for settings in ({}, IN_STAGES):
            with session_settings(spark, settings):
                verdicts.append(_verdict(spark, query, timeout))
    return Line(query.name, float(explained.coverage), reasons, tuple(verdicts))


def _verdict(spark: SparkSession, query: Query, timeout: float) -> Verdict:
    timer = threading.Timer(timeout, spark.sparkContext.cancelAllJobs)
    timer.start()
    started = time.monotonic()
    try:
        report = kq.verify(spark.sql(query.sql))
    except Exception as error:
        if time.monotonic() - started >= timeout:
            return Verdict(False, problem=f"stopped after {timeout:g} s")
        return Verdict(False, problem=explain_failure(error).message)
    finally:
        timer.cancel()
    if report.error is not None:
        return Verdict(bool(report.ok), problem=f"both raise {report.error}")
    return Verdict(bool(report.ok), report.rows, "" if report.ok else "; ".join(map(str, report.differences)))


def page(suite: str, scale: float, lines: Sequence[Line]) -> str:
    """The documentation's page: the command and versions, the counts, and a row for each query."""
    found = environment()
    packages = [f"{name} {found['packages'][name]}" for name in _PACKAGES if name in found["packages"]]
    whole = sum(line.coverage == 1.0 and not line.reasons for line in lines)
    same = sum(line.equal for line in lines)
    empty = sum(line.equal and line.verdicts[0].rows == 0 for line in lines)
    head = [
        f"# Queries of {suite} in the engine",
        "",
        "Written by a run; do not edit:",
        "",
        f"    python -m benchmarks.coverage --suite {suite} --scale {scale:g} --out docs/{suite}_coverage.md",
        "",
        f"kquery_spark {kq.__version__}, Python {found['python']}, {', '.join(packages)}; {found['cores']} cores.",
        *(["", SUITES[suite].note] if SUITES[suite].note else []),
        "",
        f"- **{whole} of {len(lines)}** queries run whole in the engine (coverage 1.0: nothing is handed over by Spark).",
        f"- **{same} of {len(lines)}** give Spark's answer, as one task where the data is small and cut into stages.",
        f"- {empty} of these answers have no rows at this scale, which says less.",
        "",
        "*Coverage* is the share of the nodes of Spark's optimized plan that the engine runs with",
        '`kquery_plan(when="always")`. *Equal* compares columns, types and all rows with Spark\'s (`kq.verify`); '
        "*in stages* does so with",
        "`spark.kquery.smallBytes=0`.",
        "",
        "| query | coverage | equal | in stages | rows | what falls back to Spark, and why |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *map(_row, lines)]) + "\n"


def _row(line: Line) -> str:
    marks = ["yes" if verdict.equal else "**no**" for verdict in line.verdicts]
    problems = dict.fromkeys(verdict.problem for verdict in line.verdicts if verdict.problem)
    notes = "; ".join([*line.reasons, *problems]).replace("|", "\\|").replace("\n", " ")
    cells = [line.query, f"{line.coverage:.2f}", *marks, f"{line.verdicts[0].rows:,}", notes]
    return f"| {' | '.join(cells)} |".replace("  |", " |")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--suite", type=click.Choice(list(SQL_SUITES)), default="tpcds", show_default=True)
@click.option(
    "--scale", default=0.1, show_default=True, type=click.FloatRange(min=0), help="Scale factor of the data."
)
@click.option("--queries", help="Names and ranges, such as 1,3,6-8 (default: all).")
@click.option("--cores", default=os.cpu_count() or 2, show_default="all", type=click.IntRange(min=1))
@click.option("--timeout", default=600.0, show_default=True, help="Time limit of a query in seconds.")
@click.option("--data", default=".benchdata", show_default=True, type=click.Path(path_type=Path),
              help="Directory of the data.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the page to this file.")
def cli(
    suite: str, scale: float, queries: str | None, cores: int, timeout: float, data: Path, out: Path | None
) -> None:
    """Write the coverage page of a suite. A wrong answer exits with 7."""
    try:
        picked = SUITES[suite].chosen(queries)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    tables = SUITES[suite].data(data.absolute(), scale)
    spark = session("coverage", cores=cores)
    register(spark, tables)
    lines = []
    for query in picked:
        lines.append(cover(spark, query, timeout))
        click.echo(_row(lines[-1]))
    spark.stop()
    text = page(suite, scale, lines)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)
        click.echo(f"wrote {out}")
    wrong = [line.query for line in lines if not line.equal]
    if wrong:
        raise Failure(Exit.DIFFERENT_ANSWERS, f"not Spark's answer: {', '.join(wrong)}")


def main() -> None:
    """Run the command; click's own exceptions go to the caller, who turns them into exit codes."""
    cli.main(prog_name="coverage", standalone_mode=False)


if __name__ == "__main__":
    sys.exit(run_command("coverage", main))
