"""A spark-submit job: run the SQL of a file over tables given by their paths.

    spark-submit --properties-file conf/kquery-spark.conf jobs/run_sql.py query.sql \\
        --table trips=/data/trips.parquet --table zones=csv:/data/zones --output /data/result.parquet

Without --output the result is shown. An output is written whole or not at all.
"""

from __future__ import annotations

import sys

import click

from kquery_spark.cli.engines import choose, job_options, job_session, rows_option
from kquery_spark.cli.failures import run
from kquery_spark.cli.output import Output
from kquery_spark.cli.tables import TableSpec, read_sql, register_in_spark, table_option


@click.command(name="run_sql.py", help=__doc__)
@click.argument("sql_file")
@table_option()
@click.option(
    "--output",
    help="Directory to write; its ending selects the format: .parquet (default), .csv, .json or .orc.",
)
@rows_option
@job_options()
def main(
    sql_file: str,
    tables: tuple[TableSpec, ...],
    output: str | None,
    engine: str,
    strict: bool,
    overwrite: bool,
    rows: int,
    log_level: str,
) -> None:
    """Register the tables, run the query, write or show its result."""
    sql = read_sql(sql_file)
    spark = job_session("run_sql", log_level)
    try:
        place = Output(spark, output, overwrite) if output else None
        register_in_spark(spark, tables)
        result = choose(spark.sql(sql), engine, strict)
        if place is None:
            result.show(rows, truncate=False)
        else:
            place.write(result)
            click.echo(f"wrote {output}, engine {engine}")
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(run("run_sql", lambda: main(standalone_mode=False)))
