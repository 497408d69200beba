"""``python -m tests.fuzz.random_queries``: random queries and expressions in Spark and in the engine."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Literal

import click

from kquery_spark.cli.engines import log_level_option, own_session
from kquery_spark.cli.failures import Exit, Failure, run
from kquery_spark.cli.paths import check_new_directory, check_new_file
from kquery_spark.progress import Progress, progress
from kquery_spark.spark_bridge.session.bridge import get_bridge
from tests.fuzz.random_queries.record import Record
from tests.fuzz.random_queries.report import Mismatch
from tests.fuzz.random_queries.run import Campaign
from tests.fuzz.random_queries.run import fuzz as run_campaign

_PROGRESS_SECONDS = 30


def seed_list(seeds: str | None, seed: int) -> tuple[int, ...]:
    """Return the seeds of ``--seeds``, or the single one of ``--seed``."""
    if seeds is None:
        return (seed,)
    try:
        numbers = tuple(dict.fromkeys(int(part) for part in seeds.split(",")))
    except ValueError:
        raise click.UsageError(f"--seeds takes whole numbers with commas between, not {seeds!r}") from None
    return numbers


class Reporter:
    """Prints each difference as a test, and the progress: as a bar, or, without a display, as a line every 30 seconds."""

    def __init__(self, output: Path | None, bar: Progress) -> None:
        self._output = output
        self._bar = bar
        self._last = time.monotonic()

    def report_mismatch(self, mismatch: Mismatch) -> None:
        """Print a difference, and write it to its own file if there is an output directory."""
        text = str(mismatch)
        self._bar.hide()
        click.echo(text)
        if self._output is None:
            return
        self._output.mkdir(parents=True, exist_ok=True)
        stem = f"test_fuzz_{mismatch.seed}_{mismatch.number}"
        existing_files = len(list(self._output.glob(f"{stem}*.py")))
        (self._output / f"{stem}{f'_{existing_files + 1}' if existing_files else ''}.py").write_text(text)

    def progress(self, record: Record) -> None:
        """Update the bar; if there is none, print a line every 30 seconds."""
        self._bar.done = record.cases
        if not self._bar.is_shown and time.monotonic() - self._last >= _PROGRESS_SECONDS:
            self._last = time.monotonic()
            rate = record.cases / max(record.seconds, 1)
            click.echo(f"{record.cases:,} cases in {record.seconds:,.0f} s ({rate:.0f} a second)", err=True)


@click.command()
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), help="Run time in seconds (default: 60)."
)
@click.option("--cases", type=click.IntRange(min=1), help="Number of cases, including those of the record.")
@click.option("--seed", default=0, show_default=True, help="Seed of the random cases.")
@click.option("--seeds", help="Several seeds to alternate, such as 1,2,3.")
@click.option(
    "--only",
    type=click.Choice(["both", "queries", "expressions"]),
    default="both",
    show_default=True,
    help="Whole queries over several tables, batches of expressions over one, or both.",
)
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSON file of counts and findings. If it exists, the run continues there.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory for one test file per difference.",
)
@log_level_option()
def fuzz(
    seconds: float | None,
    cases: int | None,
    seed: int,
    seeds: str | None,
    only: Literal["both", "queries", "expressions"],
    record: Path | None,
    output: Path | None,
    log_level: str,
) -> None:
    """Run random queries and expressions in both engines; exit with 7 and write a small test if they differ."""
    check_new_file(record)
    if output is not None:
        check_new_directory(str(output), str(output), overwrite=True)
    seconds = 60.0 if seconds is None and cases is None else seconds
    campaign = Campaign(seed_list(seeds, seed), seconds, cases, only)
    spark = own_session("kquery_spark fuzz", log_level)
    with progress("fuzz", "cases", cases, enabled=get_bridge(spark).config().progress) as bar:
        reporter = Reporter(output, bar)
        result = run_campaign(spark, campaign, record, reporter.report_mismatch, reporter.progress)
    click.echo(str(result))
    if result.mismatches:
        raise Failure(Exit.DIFFERENT_ANSWERS, f"{result.mismatches} differences between Spark and the engine")


if __name__ == "__main__":
    sys.exit(run("fuzz", lambda: fuzz(standalone_mode=False)))
