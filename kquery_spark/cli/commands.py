"""The commands of the console script ``kquery-spark``: thin wrappers of the public API.

The docstring of a command is its help text.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import kquery_spark as kq
from kquery_spark.cli.engines import (
    ENGINES,
    check,
    choose,
    log_level_option,
    overwrite_option,
    own_session,
    rows_option,
    strict_option,
)
from kquery_spark.cli.failures import Exit, Failure, run
from kquery_spark.cli.output import Output, check_output
from kquery_spark.cli.paths import check_new_directory, check_new_file
from kquery_spark.cli.tables import (
    TableSpec,
    check_tables,
    read_sql,
    register_in_spark,
    register_locally,
    table_option,
)
from kquery_spark.sources.formats import DEFAULT_FORMAT, FORMATS
from kquery_spark.spark_bridge.plan.query_text import check_query

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

LOCAL = "local"
*_FIRST_ENDINGS, _LAST_ENDING = [entry.endings[0] for entry in FORMATS if entry.writable]
_ENDINGS = f"{', '.join(_FIRST_ENDINGS)} or {_LAST_ENDING}"


def _query_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the arguments that all commands with a query share: the SQL or ``--file``, and the tables."""
    command = click.option("--file", "sql_file", help="Read the SQL from this file.")(
        log_level_option()(command)
    )
    return click.argument("sql", required=False)(table_option()(command))


def _sql_text(sql: str | None, sql_file: str | None) -> str:
    if (sql is None) == (sql_file is None):
        raise click.UsageError("pass the SQL as an argument or with --file, not both")
    return sql if sql is not None else read_sql(str(sql_file))


def _frame(sql: str, tables: tuple[TableSpec, ...], log_level: str) -> DataFrame:
    check_tables(tables)
    spark = own_session("kquery-spark", log_level)
    register_in_spark(spark, tables)
    check_query(spark, sql)
    return spark.sql(sql)


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(package_name="kquery-spark")
@click.pass_context
def cli(context: click.Context) -> None:
    """A query engine that PySpark calls on Arrow batches: Spark's answers, faster."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        raise Failure(Exit.USAGE, "a command is missing")


@cli.command()
@_query_options
@click.option(
    "--engine",
    type=click.Choice([*ENGINES, LOCAL]),
    default="kquery",
    show_default=True,
    help="both: run Spark, too, and compare; local: run in this process, without Spark and Java.",
)
@click.option(
    "--output",
    help=f"Directory to write. Its ending selects the format: {_ENDINGS} (default: {DEFAULT_FORMAT.name}).",
)
@overwrite_option()
@strict_option
@rows_option
def sql(
    sql: str | None,
    sql_file: str | None,
    tables: tuple[TableSpec, ...],
    engine: str,
    output: str | None,
    overwrite: bool,
    strict: bool,
    rows: int,
    log_level: str,
) -> None:
    """Run a query over files and show or write its result."""
    text = _sql_text(sql, sql_file)
    if engine == LOCAL:
        _run_locally(text, tables, output, overwrite, rows)
        return
    check_output(output, overwrite)
    check_tables(tables)
    spark = own_session("kquery-spark", log_level)
    destination = Output(spark, output, overwrite) if output else None
    register_in_spark(spark, tables)
    result = choose(spark.sql(text), engine, strict)
    if destination is None:
        result.show(rows, truncate=False)
    else:
        destination.write(result)
        click.echo(f"wrote {output}, engine {engine}")


def _run_locally(
    text: str, tables: tuple[TableSpec, ...], output: str | None, overwrite: bool, rows: int
) -> None:
    from kquery_spark.cli.local_output import LocalOutput

    destination = LocalOutput(output, overwrite) if output else None
    context = kq.ExecutionContext()
    register_locally(context, tables)
    result = context.sql(text)
    if destination is None:
        result.show(rows, truncate=False)
    else:
        destination.write(result)
        click.echo(f"wrote {output}, engine {LOCAL}")


@cli.command()
@_query_options
def explain(sql: str | None, sql_file: str | None, tables: tuple[TableSpec, ...], log_level: str) -> None:
    """Show which parts of a query run in the engine, which fall back to Spark and why, and the stages."""
    frame = _frame(_sql_text(sql, sql_file), tables, log_level)
    click.echo(str(kq.explain(frame)))


@cli.command()
@_query_options
def verify(sql: str | None, sql_file: str | None, tables: tuple[TableSpec, ...], log_level: str) -> None:
    """Run a query on Spark and in the engine, and compare the answers; exit with 7 if they differ."""
    check(_frame(_sql_text(sql, sql_file), tables, log_level))


@cli.command()
@table_option(required=True)
@click.option(
    "--engine",
    type=click.Choice([LOCAL, "kquery"]),
    default=LOCAL,
    show_default=True,
    help="local: run in this process, without Spark and Java; kquery: run on Spark.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=32010,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port; 0 selects a free one.",
)
@click.option("--token-file", help="Require the bearer token stored in this file.")
@click.option("--tls-certificate", help="PEM file of the certificate for TLS. Needs --tls-key.")
@click.option("--tls-key", help="PEM file of the certificate's private key.")
@click.option(
    "--max-queries",
    type=click.IntRange(min=1),
    help="Queries that run at the same time; others wait. [default: 64]",
)
@click.option(
    "--query-seconds", type=click.FloatRange(min=0, min_open=True), help="Time limit of a query in seconds."
)
@click.option(
    "--read-ahead-mib",
    type=click.IntRange(min=1),
    help="Memory in MiB for results of all queries that clients have not read yet. [default: 256]",
)
@log_level_option()
def serve(
    tables: tuple[TableSpec, ...],
    engine: str,
    host: str,
    port: int,
    token_file: str | None,
    tls_certificate: str | None,
    tls_key: str | None,
    max_queries: int | None,
    query_seconds: float | None,
    read_ahead_mib: int | None,
    log_level: str,
) -> None:
    """Serve tables to Arrow Flight and Flight SQL clients (ADBC, kq.connect) until interrupted."""
    from kquery_spark.cli.service import Address, check_address, serve_tables, service_limits

    address = Address(host, port, token_file, tls_certificate, tls_key)
    limits = service_limits(max_queries, query_seconds, read_ahead_mib)
    check_address(address)
    check_tables(tables)
    spark = None if engine == LOCAL else own_session("kquery-spark serve", log_level)
    context = kq.ExecutionContext(spark)
    register_locally(context, tables)
    serve_tables(context, address, limits)


@cli.command(name="run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--when",
    type=click.Choice(["auto", "always"]),
    default="auto",
    show_default=True,
    help="auto: use the engine where it should win; always: wherever it can.",
)
@click.argument("job")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run_job(job: str, arguments: tuple[str, ...], when: Literal["auto", "always"]) -> None:
    """Run a PySpark job, as python JOB ARGUMENTS does, with its actions accelerated."""
    from kquery_spark.cli.jobs import run_script

    run_script(job, arguments, when)


_PASS_ON = {"ignore_unknown_options": True, "help_option_names": []}


@cli.command(context_settings=_PASS_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def demo(arguments: tuple[str, ...]) -> None:
    """Compare Spark and kquery_spark on taxi trips and TPC-H data (needs a checkout)."""
    _from_checkout("demo").main(list(arguments), standalone_mode=False)


@cli.command(context_settings=_PASS_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """Run a benchmark suite, compare two runs, or plot results (needs a checkout)."""
    _from_checkout("bench").main(list(arguments))


@cli.command()
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
    from kquery_spark.cli.fuzzing import Reporter, seed_list
    from kquery_spark.fuzz.run import Campaign
    from kquery_spark.fuzz.run import fuzz as run_campaign
    from kquery_spark.progress import progress
    from kquery_spark.spark_bridge.session.bridge import get_bridge

    check_new_file(record)
    if output is not None:
        check_new_directory(str(output), str(output), overwrite=True)
    seconds = 60.0 if seconds is None and cases is None else seconds
    campaign = Campaign(seed_list(seeds, seed), seconds, cases, only)
    spark = own_session("kquery-spark fuzz", log_level)
    with progress("fuzz", "cases", cases, enabled=get_bridge(spark).config().progress) as bar:
        reporter = Reporter(output, bar)
        result = run_campaign(spark, campaign, record, reporter.report_mismatch, reporter.progress)
    click.echo(str(result))
    if result.mismatches:
        raise Failure(Exit.DIFFERENT_ANSWERS, f"{result.mismatches} differences between Spark and the engine")


@cli.command()
@click.option(
    "--rows",
    type=click.IntRange(min=1000),
    default=2_000_000,
    show_default=True,
    help="Rows of the table to measure with.",
)
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, writable=True),
    help="A directory that all workers can read; needed on a cluster of several machines.",
)
@log_level_option()
def calibrate(rows: int, directory: str | None, log_level: str) -> None:
    """Measure the cost model of when="auto" on this machine or cluster, and print it as settings."""
    from kquery_spark.accelerate.calibrate import calibrate as measure

    for name, value in (
        measure(own_session("kquery-spark calibrate", log_level), directory, rows).settings().items()
    ):
        click.echo(f"{name}={value}")


@cli.command()
def warm() -> None:
    """Compile the engine's loops on this machine now, for example when a container image is built.

    Without this command, the first queries do not use the loops, and a background process compiles them.
    """
    from kquery_spark.cli.warming import compile_loops

    compile_loops(click.echo)


@cli.command()
@click.argument("path", type=click.Path(path_type=Path))
@table_option()
@click.option(
    "--html",
    "html_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write an HTML report to this file.",
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write all numbers to this file.",
)
@click.option(
    "--rows", default=20, show_default=True, type=click.IntRange(min=1), help="Queries and reasons to show."
)
@log_level_option()
def qualify(
    path: Path,
    tables: tuple[TableSpec, ...],
    html_file: Path | None,
    json_file: Path | None,
    rows: int,
    log_level: str,
) -> None:
    """Report which parts of Spark's queries the engine would run, and an estimate of the time saved.

    PATH: an event log or a directory of logs, read without Spark; or SQL files, which Spark plans but does not run.
    """
    from kquery_spark.cli.qualification import qualify_path, write_reports
    from kquery_spark.qualify.text import render_text

    check_new_file(html_file)
    check_new_file(json_file)
    result = qualify_path(path, tables, log_level)
    click.echo(render_text(result, rows))
    write_reports(result, path, html_file, json_file)


def _from_checkout(name: str) -> Any:
    try:
        return importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "benchmarks":
            raise
        raise Failure(
            Exit.USAGE, f"{name} needs the data and queries of the repository: clone it and run make {name}"
        ) from None


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run("kquery-spark", lambda: cli(standalone_mode=False)))
