"""Damaged files, each read in a child process: an error that names the file, or rows; never a signal.

``python -m tests.sources.mutated_files 100000 --seed 1 --format parquet`` reads that number of files through ``ExecutionContext``. With
``--spark`` those that give rows there are then read by Spark, ``kquery_plan`` and ``kq.enable``, too, and the rows compared.
``--only NUMBER`` repeats one case. The campaign ends after ``--run-seconds`` and reports what it has read.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.sources.mutations import local, on_spark
from tests.sources.mutations.cases import damaged
from tests.sources.mutations.formats import MODULES, format_named
from tests.sources.mutations.outcomes import ROWS, Outcome, Report

SECONDS = 30.0
_PROGRESS_SECONDS = 60.0
_EVERY_ERROR = 25


def run(
    format_name: str,
    seed: int,
    numbers: Iterable[int],
    directory: Path,
    *,
    spark: bool = False,
    seconds: float = SECONDS,
    deadline: float = math.inf,
) -> Iterator[Outcome]:
    """The outcomes of the cases of a seed with these numbers.

    directory: an empty one for the files. deadline: the value of ``time.monotonic()`` after which no case is read.
    """
    fmt = format_named(format_name)
    inputs = fmt.make(directory)
    with_rows = []
    for outcome in local.campaign(fmt, inputs, seed, list(numbers), seconds, deadline):
        yield outcome
        # where the engine raises an error, Spark answers itself: some of these are enough
        if outcome.kind == ROWS or outcome.number % _EVERY_ERROR == 0:
            with_rows.append(outcome.number)
    if spark:
        yield from on_spark.campaign(fmt, inputs, seed, with_rows, seconds, deadline)


def description(format_name: str, seed: int, number: int, directory: Path) -> str:
    """What a case damages."""
    fmt = format_named(format_name)
    with damaged(fmt, fmt.make(directory), seed, number) as case:
        return str(case)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.sources.mutated_files", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=sorted(MODULES), default="parquet")
    parser.add_argument(
        "--spark", action="store_true", help="read with Spark, kquery_plan and kq.enable, and compare"
    )
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--only", type=int, help="read just this case")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="the time limit for a file")
    parser.add_argument(
        "--run-seconds", type=float, default=3600.0, help="run time of the campaign (default: 3600)"
    )
    args = parser.parse_args()
    numbers = range(args.first, args.first + args.count) if args.only is None else [args.only]
    format_named(args.format).prepare()  # may compile loops, which takes minutes on a busy machine
    report, start = Report(), time.monotonic()
    said_at = start
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        for outcome in run(
            args.format,
            args.seed,
            numbers,
            Path(one),
            spark=args.spark,
            seconds=args.seconds,
            deadline=start + args.run_seconds,
        ):
            findings = len(report.findings)
            report.add(outcome)
            if len(report.findings) > findings or args.only is not None:
                said = description(args.format, args.seed, outcome.number, Path(tempfile.mkdtemp(dir=other)))
                print(f"{outcome.kind} by {outcome.way}: {said}\n    {outcome.detail[:3000]}", flush=True)
            if time.monotonic() - said_at > _PROGRESS_SECONDS:
                said_at = time.monotonic()
                print(f"... case {outcome.number} after {said_at - start:.0f} s", file=sys.stderr, flush=True)
    print(report)
    print(f"{len(report.findings)} findings, {time.monotonic() - start:.0f} s")
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
