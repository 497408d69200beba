"""The output of ``kquery-spark fuzz``: differences as test files, and the progress."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kquery_spark.fuzz.record import Record
    from kquery_spark.fuzz.report import Mismatch
    from kquery_spark.progress import Progress

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
