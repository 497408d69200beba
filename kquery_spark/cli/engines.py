"""Options that commands and jobs share, and ``--engine``: runs a query on Spark, in the engine, or in both to compare."""

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
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

_NO_JVM = "JAVA_GATEWAY_EXITED"  # PySpark's error condition for a JVM that ended before it was connected
ENGINES = ("spark", "kquery", "both")

strict_option = click.option(
    "--strict", is_flag=True, help="Fail if a part of the query falls back to Spark."
)
rows_option = click.option(
    "--rows",
    default=20,
    show_default=True,
    type=click.IntRange(min=1),
    help="Rows to show without --output.",
)


def overwrite_option(replaced: str = "output") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option ``--overwrite``. replaced: what the help text says it replaces."""
    return click.option("--overwrite", is_flag=True, help=f"Replace an existing {replaced}.")


def log_level_option(where: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option ``--log-level`` of Spark. where: what the help text adds, such as " on stderr"."""
    return click.option("--log-level", default="OFF", show_default=True, help=f"Log level of Spark{where}.")


def job_options(replaced: str = "output") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the options of a ``spark-submit`` job. The job receives ``engine``, ``strict``, ``overwrite``, ``log_level``.

    replaced: what ``--overwrite`` replaces.
    """
    engine_option = click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default="kquery",
        show_default=True,
        help="both: compare both before writing",
    )

    def add_options(command: Callable[..., None]) -> Callable[..., None]:
        # ``--help`` lists options in the reverse order of their decorators.
        command = overwrite_option(replaced)(log_level_option(" on stderr")(command))
        return engine_option(strict_option(command))

    return add_options


def job_session(name: str, log_level: str = "OFF") -> SparkSession:
    """Return the session of a ``spark-submit`` job, with the settings of its command line and properties file."""
    from pyspark.sql import SparkSession

    # The setting applies before the context logs its first line. ``setLogLevel`` would be too late.
    return SparkSession.builder.appName(name).config("spark.log.level", log_level).getOrCreate()


def own_session(name: str, log_level: str = "OFF") -> SparkSession:
    """Return the session of ``kquery-spark``: all cores of this machine, and the engine's recommended settings."""
    from pyspark.sql import SparkSession

    # Workers run the interpreter of this process, even if its virtual environment is not activated.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = configure(SparkSession.builder).appName(name)
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    if "MASTER" not in os.environ:
        builder = builder.master("local[*]")
    builder = builder.config("spark.log.level", log_level)
    return _started(builder) if log_level == "OFF" and os.name == "posix" else builder.getOrCreate()


def _started(builder: SparkSession.Builder) -> SparkSession:
    """Return the session, and suppress the lines that its JVM prints before the log level applies."""
    with quiet_start() as output:
        try:
            return builder.getOrCreate()
        except PySparkException as error:
            if _NO_JVM not in str(error):
                raise
            cause = f" ({output.first_line})" if output.first_line else ""
            raise Failure(
                Exit.UNEXPECTED,
                f"Spark did not start{cause}: it needs Java, 17 or newer for Spark 4; install it, or set JAVA_HOME to it",
            ) from error


def choose(frame: DataFrame, engine: str, strict: bool = False) -> DataFrame:
    """Return the DataFrame that computes the result on ``engine``.

    With ``both``, first run Spark and the engine, print the comparison, and fail if the results differ. strict: fail if a
    part of the query would fall back to Spark.
    """
    if engine == "spark":
        return frame
    fast = frame.transform(kq.kquery_plan, fallback="error") if strict else frame.transform(kq.kquery_plan)
    if engine == "both":
        check(frame)
    return fast


def check(frame: DataFrame) -> None:
    """Verify ``frame`` and print the report. Raises Failure if the results differ."""
    report = kq.verify(frame)
    click.echo(str(report))
    if not report.ok:
        raise Failure(
            Exit.DIFFERENT_ANSWERS, "the answers of Spark and the engine differ; nothing was written"
        )
