"""``run``, ``merge``, ``compare`` and ``plot``: the benchmark's commands, also ``kquery-spark bench``.

python -m benchmarks.bench run --suite tpch --scale 1 --engines spark,kquery,duckdb --json results.json
python -m benchmarks.bench run --suite pipelines --first --json pipelines.json
python -m benchmarks.bench merge first.json second.json third.json --json results.json
python -m benchmarks.bench compare before.json after.json
python -m benchmarks.bench plot results.json --output charts
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from rich.console import Console

from benchmarks import plots, results, runner
from benchmarks.engines import ENGINES, Settings
from benchmarks.report import change_table, memory_lines, result_table, summary_lines, unlike
from benchmarks.suites import SUITES
from kquery_spark.cli.failures import Exit, Failure
from kquery_spark.cli.failures import run as run_command
from kquery_spark.progress import progress

_FILE = click.Path(path_type=Path, dir_okay=False)


def parse_engines(text: str) -> tuple[str, ...]:
    """``spark,kquery,duckdb`` or ``all``; any other name is an error."""
    if text == "all":
        return ENGINES
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = [name for name in names if name not in ENGINES]
    if unknown or not names:
        raise click.BadParameter(f"engines are {', '.join(ENGINES)}, not {', '.join(unknown) or 'none'}")
    return names


def parse_conf(pairs: Sequence[str]) -> dict[str, str]:
    """``("key=value", ...)`` as a mapping; one without an equals sign is an error."""
    for pair in pairs:
        if "=" not in pair:
            raise click.BadParameter(f"a setting is KEY=VALUE, not {pair}")
    found = (pair.partition("=") for pair in pairs)
    return {key.strip(): value.strip() for key, _, value in found}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Time queries on Spark, kquery_spark and other engines; every answer is compared before its time counts."""


@cli.command()
@click.option("--suite", type=click.Choice(list(SUITES)), default="tpch", show_default=True)
@click.option(
    "--scale",
    default=1.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    help="Scale factor of the data.",
)
@click.option("--queries", help="Names and ranges, such as 1,3,6-8 or sort,top_k (default: all).")
@click.option(
    "--engines",
    default="spark,kquery",
    show_default=True,
    help=f"Comma-separated names: {', '.join(ENGINES)}, or all.",
)
@click.option(
    "--runs", default=3, show_default=True, type=click.IntRange(min=1), help="Warm runs of each engine."
)
@click.option(
    "--seconds",
    default=0.0,
    show_default=True,
    type=click.FloatRange(min=0),
    help="Repeat short queries until their warm runs have taken this many seconds, up to ten times --runs.",
)
@click.option(
    "--first",
    is_flag=False,
    flag_value=1,
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Also time this many first runs of Spark and kquery, each in a new process (without a number: 1).",
)
@click.option(
    "--cores",
    default=os.cpu_count() or 2,
    show_default="all",
    type=click.IntRange(min=1),
    help="Number of concurrent tasks and threads.",
)
@click.option(
    "--shuffle-partitions",
    type=click.IntRange(min=1),
    help="spark.sql.shuffle.partitions (default: one per core).",
)
@click.option("--driver-memory", default="4g", show_default=True, help="Heap size of the JVM.")
@click.option(
    "--when",
    type=click.Choice(["auto", "always"]),
    default="auto",
    show_default=True,
    help="auto: queries that the engine should not win run on Spark. always: the engine runs all that it can.",
)
@click.option(
    "--conf",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of Spark or of spark.kquery; can be repeated.",
)
@click.option(
    "--users",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Also run this many concurrent users.",
)
@click.option("--data", default=".benchdata", show_default=True, type=click.Path(path_type=Path),
              help="Directory of the data and of Spark's answers.")  # fmt: skip
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the results to this file.",
)
def run(
    suite: str,
    scale: float,
    queries: str | None,
    engines: str,
    runs: int,
    seconds: float,
    first: int,
    cores: int,
    shuffle_partitions: int | None,
    driver_memory: str,
    when: str,
    conf: tuple[str, ...],
    users: int,
    data: Path,
    json_path: Path | None,
) -> None:
    """Run a suite, print a table, write the JSON. A wrong answer of ours exits with 7."""
    chosen = SUITES[suite]
    try:
        picked = chosen.chosen(queries)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    settings = Settings(cores, shuffle_partitions or cores, driver_memory, when, parse_conf(conf))
    console = Console()
    plan = runner.Plan(
        chosen, picked, scale, parse_engines(engines), runs, settings, data.absolute(), users, seconds, first
    )
    shows_progress = settings.conf.get("spark.kquery.progress", "true") == "true"
    with progress("bench", "queries", runner.query_count(plan), enabled=shows_progress) as bar:

        def say(line: str) -> None:
            bar.hide()
            console.print(line, markup=False, highlight=False)
            bar.advance()

        found = runner.run(plan, say)
    _show(found, console, json_path)


def _show(found: results.Results, console: Console, json_path: Path | None) -> None:
    console.print(result_table(found))
    for line in summary_lines(found):
        console.print(line, markup=False, highlight=False)
    if found.note:
        console.print(found.note, highlight=False)
    if json_path is not None:
        found.write(json_path)
        console.print(f"wrote {json_path}", highlight=False)
    if found.failed():
        raise Failure(Exit.DIFFERENT_ANSWERS, f"not Spark's answer: {', '.join(found.failed())}")


@cli.command()
@click.argument("files", type=_FILE, nargs=-1, required=True)
@click.option("--json", "json_path", type=_FILE, help="Write the merged results to this file.")
def merge(files: tuple[Path, ...], json_path: Path | None) -> None:
    """Merge results of the same queries from several sessions: each median is that of the warm runs of all sessions."""
    runs = [_read(file) for file in files]
    differences = dict.fromkeys(sentence for run in runs[1:] for sentence in unlike(runs[0], run))
    if differences:
        raise click.UsageError(f"these runs do not belong together: {'; '.join(differences)}")
    try:
        found = results.merged(runs)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    _show(found, Console(), json_path)


@cli.command()
@click.argument("before", type=_FILE)
@click.argument("after", type=_FILE)
def compare(before: Path, after: Path) -> None:
    """Compare two results query by query, in percent; negative is faster."""
    first, second = _read(before), _read(after)
    console = Console()
    for sentence in unlike(first, second):
        console.print(f"not quite the same: {sentence}", markup=False, highlight=False)
    console.print(change_table(first, second))
    for line in memory_lines(first, second):
        console.print(line, markup=False, highlight=False)


@cli.command()
@click.argument("files", type=_FILE, nargs=-1, required=True)
@click.option(
    "--output",
    default="charts",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Directory of the charts.",
)
def plot(files: tuple[Path, ...], output: Path) -> None:
    """Draw bars and speed-up of each result, and scaling over several of them."""
    for path in plots.draw([_read(file) for file in files], output):
        click.echo(str(path))


def _read(path: Path) -> results.Results:
    try:
        return results.read(path)
    except FileNotFoundError:
        raise Failure(Exit.MISSING_PATH, f"path does not exist: {path}") from None
    except ValueError as error:
        raise Failure(Exit.UNREADABLE, str(error)) from None


def main(arguments: list[str] | None = None) -> None:
    """Run the commands; click's own exceptions go to the caller, who turns them into exit codes."""
    command: Callable[..., object] = cli.main
    command(arguments, prog_name="bench", standalone_mode=False)


if __name__ == "__main__":
    sys.exit(run_command("bench", main))
