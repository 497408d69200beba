"""``--engine``: run a query on Spark, in the engine, or in both with a comparison."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click
from pyspark.errors import PySparkException

import kquery_spark as kq
from kquery_spark.cli.failures import Exit, Failure
from kquery_spark.cli.quiet_start import quiet_start
from kquery_spark.config.spark_settings import configure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_JVM = "JAVA_GATEWAY_EXITED"  # the condition of a JVM that ended before it could be talked to
ENGINES = ("spark", "kquery", "both")


def job_session(name: str, log_level: str = "OFF") -> SparkSession:
    """The session of a ``spark-submit`` job: everything as the command line and its properties file say."""
    from pyspark.sql import SparkSession

    # as a setting it is in force before the context's first words; setLogLevel would come after them
    return SparkSession.builder.appName(name).config("spark.log.level", log_level).getOrCreate()


def own_session(name: str, log_level: str = "OFF") -> SparkSession:
    """The session of ``kquery-spark``: all cores of this machine, the settings the engine likes."""
    from pyspark.sql import SparkSession

    # workers run the interpreter that runs this, whether or not its environment is active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = configure(SparkSession.builder).appName(name)
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    if "MASTER" not in os.environ:
        builder = builder.master("local[*]")
    builder = builder.config("spark.log.level", log_level)
    return _started(builder) if log_level == "OFF" and os.name == "posix" else builder.getOrCreate()


def _started(builder: SparkSession.Builder) -> SparkSession:
    """The session, without the lines that its JVM prints before the log level is in force."""
    with quiet_start() as output:
        try:
            return builder.getOrCreate()
        except PySparkException as error:
            if _NO_JVM not in str(error):
                raise
            cause = f" ({output.first_line})" if output.first_line else ""
            raise Failure(
                Exit.UNFORESEEN,
                f"Spark did not start{cause}: it needs Java, 17 or newer for Spark 4; install it, or set JAVA_HOME to it",
            ) from error


def choose(frame: DataFrame, engine: str, strict: bool = False) -> DataFrame:
    """The frame that computes the result on ``engine``.

    ``both`` runs Spark and the engine first, prints the comparison, and fails when they differ.
    ``strict`` makes a part that the engine would leave to Spark an error.
    """
    if engine == "spark":
        return frame
    fast = frame.transform(kq.kquery_plan, fallback="error") if strict else frame.transform(kq.kquery_plan)
    if engine == "both":
        check(frame)
    return fast


def check(frame: DataFrame) -> None:
    """Verify ``frame`` and print the report; different answers are a failure."""
    report = kq.verify(frame)
    click.echo(str(report))
    if not report.ok:
        raise Failure(
            Exit.DIFFERENT_ANSWERS, "the engine's answer is not Spark's answer; nothing was written"
        )
