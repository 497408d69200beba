"""``--engine``: run a query on Spark, in the engine, or in both with a comparison."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

import kquery_spark as kq
from kquery_spark.cli.failures import Exit, Failure
from kquery_spark.config.spark_settings import configure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    return builder.config("spark.log.level", log_level).getOrCreate()


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
