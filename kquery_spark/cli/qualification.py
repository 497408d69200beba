"""``kquery-spark qualify``: reads event logs or SQL files and writes the report files."""

from __future__ import annotations

import json
from pathlib import Path

import click

from kquery_spark.cli.engines import own_session
from kquery_spark.cli.paths import cannot_write, missing_path
from kquery_spark.cli.tables import TableSpec, check_tables, register_in_spark
from kquery_spark.qualify.html import render_html
from kquery_spark.qualify.logs import qualify_logs
from kquery_spark.qualify.report import Qualification
from kquery_spark.qualify.sql_files import qualify_sql, sql_files


def qualify_path(path: Path, tables: tuple[TableSpec, ...], log_level: str) -> Qualification:
    """Qualify the logs or the SQL files at a path; only SQL files start Spark."""
    if not path.exists():
        raise missing_path(str(path))
    files = sql_files(path)
    if not files:
        if tables:
            raise click.UsageError(f"--table is for SQL files, and there are none at {path}")
        return qualify_logs(path)
    check_tables(tables)
    spark = own_session("kquery-spark qualify", log_level)
    register_in_spark(spark, tables)
    return qualify_sql(spark, files)


def write_reports(result: Qualification, path: Path, html_file: Path | None, json_file: Path | None) -> None:
    """Write the requested files and print their names."""
    if html_file is not None:
        _write(html_file, render_html(result, f"Queries of {path.name} in kquery_spark"))
    if json_file is not None:
        _write(json_file, f"{json.dumps(result.as_dict(), indent=1)}\n")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise cannot_write(str(file), error) from None
    click.echo(f"wrote {file}")
