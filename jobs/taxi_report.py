"""A spark-submit job: what New York's taxis earned, by month and number of passengers.

    spark-submit --properties-file conf/kquery-spark.conf jobs/taxi_report.py DATA REPORT --engine kquery

DATA holds yellow-trip records (Parquet, or CSV with a header) under ``year=2019/month=N/``; REPORT is a
directory that gets Parquet files, all of them or none.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING
from urllib.parse import unquote

import click

from kquery_spark.cli.engines import choose, job_options, job_session
from kquery_spark.cli.failures import Exit, Failure, run
from kquery_spark.cli.output import Output, output_format
from kquery_spark.cli.tables import TableSpec, read_table, table_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The first 17 columns of the TLC's yellow-trip records, so that reading CSV needs no pass to guess types.
COLUMNS = (
    "VendorID INT, tpep_pickup_datetime TIMESTAMP_NTZ, tpep_dropoff_datetime TIMESTAMP_NTZ, "
    "passenger_count INT, trip_distance DOUBLE, RatecodeID INT, store_and_fwd_flag STRING, "
    "PULocationID INT, DOLocationID INT, payment_type INT, fare_amount DOUBLE, extra DOUBLE, "
    "mta_tax DOUBLE, tip_amount DOUBLE, tolls_amount DOUBLE, improvement_surcharge DOUBLE, "
    "total_amount DOUBLE"
)

REPORT = """
SELECT
  year,
  month,
  passenger_count,
  count(*) AS trips,
  max(fare_amount) AS highest_fare,
  avg(trip_distance) AS average_miles,
  sum(tip_amount) AS tips,
  sum(total_amount) AS earned
FROM tripdata
WHERE fare_amount > 0
GROUP BY year, month, passenger_count
ORDER BY year, month, passenger_count
"""


def trips(spark: SparkSession, path: str) -> DataFrame:
    """The trip records below ``path``; CSV is read with the TLC's types, once all headers have been checked."""
    spec = TableSpec("tripdata", path)
    format_ = table_format(spark, spec)
    if format_ != "csv":
        return read_table(spark, TableSpec("tripdata", path, format_))
    # Spark matches a given schema to CSV columns by position, so a file with another column order must be rejected
    headers = {file: header for file in files_below(spark, path) if (header := header_of(spark, file))}
    # If all files are empty, report the first column as missing.
    for file, header in headers.items() or [(path, [])]:
        check_header(file, header)
    return read_table(spark, TableSpec("tripdata", path, format_, COLUMNS))


def files_below(spark: SparkSession, path: str) -> list[str]:
    """The paths of all files that Spark reads for ``path``, which may be a pattern."""
    return [unquote(uri) for uri in spark.read.text(path).inputFiles()]


def header_of(spark: SparkSession, file: str) -> list[str]:
    """The column names in the first line of a CSV file; none if it is empty."""
    pattern = re.sub(r"([{}\[\]*?\\])", r"\\\1", file)  # escape the characters of globs
    return spark.read.option("header", True).csv(pattern).columns


def check_header(file: str, header: list[str]) -> None:
    """Raise Failure unless the header begins with the columns of ``COLUMNS``."""
    expected = [column.split()[0] for column in COLUMNS.split(", ")]
    for position, column in enumerate(expected):
        if position >= len(header) or header[position] != column:
            found = f"'{header[position]}'" if position < len(header) else "nothing"
            raise Failure(
                Exit.BAD_SQL, f"column {position + 1} of {file} should be '{column}', found {found}"
            )


@click.command(name="taxi_report.py", help=__doc__)
@click.argument("data")
@click.argument("report")
@job_options(replaced="report")
def main(data: str, report: str, engine: str, strict: bool, overwrite: bool, log_level: str) -> None:
    """Read trips, aggregate them, write the report."""
    if output_format(report).name != "parquet":
        raise Failure(
            Exit.OUTPUT, f"cannot write {report}: the report is Parquet; use a name that ends with .parquet"
        )
    spark = job_session("taxi_report", log_level)
    try:
        output = Output(spark, report, overwrite)
        trips(spark, data).createOrReplaceTempView("tripdata")
        output.write(choose(spark.sql(REPORT), engine, strict))
        click.echo(f"wrote {report}: {spark.read.parquet(report).count()} rows, engine {engine}")
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(run("taxi_report", lambda: main(standalone_mode=False)))
