"""``python -m tests.fuzz.sql_inputs DIR``: Spark's own test inputs in Spark and in the engine."""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import click
from pyspark.sql import SparkSession

from kquery_spark.config.spark_settings import configure
from tests.fuzz.sql_inputs.modes import MODES, Mode
from tests.fuzz.sql_inputs.parse import find_inputs
from tests.fuzz.sql_inputs.report import as_json, differences, render, render_one
from tests.fuzz.sql_inputs.run import Result, run_inputs
from tests.fuzz.sql_inputs.tables import create_test_tables, find_test_data

DIFFERENT_ANSWERS = 7


def test_session(warehouse: str) -> SparkSession:
    """A local session of two cores with the suite's tables in a warehouse of its own."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = configure(SparkSession.builder).appName("kquery_spark sql inputs")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.warehouse.dir": warehouse,
        "spark.driver.memory": "2g",
        "spark.sql.datetime.java8API.enabled": "true",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.master(os.environ.get("MASTER", "local[2]")).getOrCreate()


def run_part(
    directory: Path,
    paths: Sequence[Path],
    modes: Sequence[Mode],
    every: bool,
    extra: dict[str, str],
    output: Path | None = None,
) -> list[Result]:
    """The results of some of the files, in a session of this process. ``output`` is written after each file."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # errors are expected here
    results: list[Result] = []

    def file_is_done(line: str) -> None:
        click.echo(line, err=True)
        if output is not None:
            output.write_text(json.dumps(as_json(results), indent=1) + "\n")

    with tempfile.TemporaryDirectory(prefix="kquery-warehouse-", ignore_cleanup_errors=True) as warehouse:
        spark = test_session(warehouse)
        try:
            create_test_tables(spark, find_test_data(directory))
            for result in run_inputs(spark, directory, paths, modes, every, extra, file_is_done):
                results.append(result)
                if result.outcome.kind == "differ":
                    click.echo(render_one(result), err=True)
            return results
        finally:
            spark.stop()


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--modes", default="as-is", show_default=True, help=f"Comma-separated: {', '.join(MODES)}.")
@click.option(
    "--files", multiple=True, help="Only files whose path below DIR matches this pattern (repeatable)."
)
@click.option(
    "--config-dims", type=click.Choice(["first", "all"]), default="first", show_default=True,
    help="Whether files with CONFIG_DIM lines run once or with every combination.",
)  # fmt: skip
@click.option(
    "--set", "extra", multiple=True, metavar="KEY=VALUE", help="A setting of all sessions (repeatable)."
)
@click.option("--json", "output", type=click.Path(path_type=Path), help="File for counts and differences.")
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes, a Spark each."
)
def main(
    directory: Path,
    modes: str,
    files: tuple[str, ...],
    config_dims: str,
    extra: tuple[str, ...],
    output: Path | None,
    jobs: int,
) -> None:
    """Run the SQL test inputs in DIRECTORY (sql/core/src/test/resources/sql-tests/inputs) in Spark and in the engine.

    Exit code 7 when an answer differs.
    """
    chosen = [mode for mode in MODES if mode in modes.split(",")]
    unknown = set(modes.split(",")) - set(MODES)
    if unknown:
        raise click.UsageError(f"unknown modes {', '.join(sorted(unknown))}; there are {', '.join(MODES)}")
    paths = find_inputs(directory, files)
    settings = dict(pair.split("=", 1) for pair in extra)
    results = _run(directory, paths, chosen, config_dims == "all", settings, jobs, output)
    click.echo(render(results))
    if output is not None:
        output.write_text(json.dumps(as_json(results), indent=1) + "\n")
    if differences(results):
        sys.exit(DIFFERENT_ANSWERS)


def _run(
    directory: Path,
    paths: list[Path],
    modes: Sequence[Mode],
    every: bool,
    extra: dict[str, str],
    jobs: int,
    output: Path | None,
) -> list[Result]:
    if jobs == 1:
        return run_part(directory, paths, modes, every, extra, output)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        parts = [
            pool.submit(run_part, directory, paths[job::jobs], modes, every, extra) for job in range(jobs)
        ]
        return [result for part in parts for result in part.result()]


if __name__ == "__main__":
    main()
