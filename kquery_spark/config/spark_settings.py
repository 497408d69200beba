"""The Spark settings the engine likes, each with its reason; ``conf/`` and ``kq.configure`` use these."""

from __future__ import annotations

import textwrap
from typing import NamedTuple, Protocol, TypeVar


class SparkSetting(NamedTuple):
    """One Spark property, the value we ask for and one or two sentences saying why."""

    key: str
    value: str
    reason: str


SETTINGS: tuple[SparkSetting, ...] = (
    SparkSetting(
        "spark.python.unix.domain.socket.enabled",
        "true",
        "Spark talks to its Python workers over a Unix domain socket. Over TCP every Python task waits about "
        "50 ms for a delayed acknowledgement; this way it is about 15 ms. The one setting that matters most.",
    ),
    SparkSetting(
        "spark.python.worker.reuse",
        "true",
        "A worker lives on between tasks, so imports, Arrow's warm memory pool and small tables that were "
        "read for a join are there for the next task. Spark's default, written down because we lean on it.",
    ),
    SparkSetting(
        "spark.python.daemon.module",
        "kquery_spark.runtime.spark.daemon",
        "Spark's Python daemon with the engine already imported, so that a new worker starts about half a second "
        "sooner, and with what is imported kept out of the garbage collection after each task; numpy sorts by AVX2 "
        "where that is faster (AMD's Zen 4). kquery_spark must be installed wherever workers run.",
    ),
    SparkSetting(
        "spark.sql.execution.arrow.pyspark.enabled",
        "true",
        "toPandas() and createDataFrame() move whole Arrow batches instead of pickled rows.",
    ),
    SparkSetting(
        "spark.sql.execution.arrow.maxBytesPerBatch",
        "64m",
        "Shuffled data reaches a reduce task as rows of a few MB each; this bounds how many of them arrive "
        "in one batch by their bytes, where Spark's other limit counts rows only.",
    ),
)
"""Every setting, most important first. Leaving one out never changes an answer, only its speed."""


class _Builder(Protocol):
    """The part of ``SparkSession.Builder`` (and of ``SparkConf`` look-alikes) that ``configure`` needs."""

    def config(self, key: str, value: str) -> object: ...


B = TypeVar("B", bound=_Builder)


def configure(builder: B) -> B:
    """Apply ``SETTINGS`` to a ``SparkSession.builder`` and return it, so that calls can be chained.

    Values set on the builder afterwards win. A running session keeps its own settings: those of the
    Python workers are read when the first worker starts.
    """
    for setting in SETTINGS:
        builder.config(setting.key, setting.value)
    return builder


def render_properties() -> str:
    """The text of ``conf/kquery-spark.conf``: a properties file in which a comment explains each line."""
    blocks = [
        "# Settings for spark-submit --properties-file: what kq.configure(SparkSession.builder) applies.\n"
        "# Written from kquery_spark/config/spark_settings.py; a test keeps the two equal.\n"
    ]
    for setting in SETTINGS:
        comment = textwrap.fill(setting.reason, width=108, initial_indent="# ", subsequent_indent="# ")
        blocks.append(f"{comment}\n{setting.key}={setting.value}\n")
    return "\n".join(blocks)
