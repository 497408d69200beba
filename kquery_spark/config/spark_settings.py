"""The Spark settings the engine likes, each with its reason; ``conf/`` and ``kq.configure`` use these.

None of them may make Spark fail or give another answer where it would not without: what holds only on some clusters is
in ``OPTIONAL``, for the administrator to choose.
"""

from __future__ import annotations

import os
import socket
import textwrap
from collections.abc import Mapping
from typing import NamedTuple, Protocol, TypeVar


class SparkSetting(NamedTuple):
    """One Spark property, the value we ask for and one or two sentences saying why."""

    key: str
    value: str
    reason: str


SOCKET_DIRECTORY = "/tmp"
"""Short, and on every Unix: the path of a socket may take about 100 bytes."""

SETTINGS: tuple[SparkSetting, ...] = (
    SparkSetting(
        "spark.python.unix.domain.socket.enabled",
        "true",
        "Spark talks to its Python workers over a Unix domain socket. Over TCP every Python task waits about "
        "50 ms for a delayed acknowledgement; this way it is about 15 ms. The one setting that matters most.",
    ),
    SparkSetting(
        "spark.python.unix.domain.socket.dir",
        SOCKET_DIRECTORY,
        "Where these sockets are. Spark's default is Java's temporary directory. In a YARN container its path is too long "
        "for a socket, and no Python function would run.",
    ),
    SparkSetting(
        "spark.python.worker.reuse",
        "true",
        "A worker lives on between tasks, so imports, Arrow's warm memory pool and small tables that were "
        "read for a join are there for the next task. Spark's default, written down because we lean on it.",
    ),
    SparkSetting(
        "spark.sql.execution.arrow.maxBytesPerBatch",
        "64m",
        "Shuffled data reaches a reduce task as rows of a few MB each; this bounds how many of them arrive "
        "in one batch by their bytes, where Spark's other limit counts rows only. The default of newer Sparks; "
        "functions of yours that take batches may get more and smaller ones.",
    ),
)
"""Every setting, most important first. Leaving one out never changes an answer, only its speed."""

OPTIONAL: tuple[SparkSetting, ...] = (
    SparkSetting(
        "spark.python.daemon.module",
        "kquery_spark.runtime.spark.daemon",
        "For clusters, where kquery_spark is installed wherever Python workers run: without it there no Python "
        "function at all would run, not even one that has nothing to do with the engine. Spark's Python daemon "
        "with the engine already imported: a new worker of the engine starts about half a second sooner, what is "
        "imported is kept out of the garbage collection after each task, and numpy sorts by AVX2 where that is "
        "faster (AMD's Zen 4). For your own Python functions it is PySpark's daemon. On a local master the "
        "engine's workers have it by themselves.",
    ),
)
"""Settings that are right only where their condition holds: comments in ``conf/``, and nothing that ``configure`` sets."""


class _Builder(Protocol):
    """The part of ``SparkSession.Builder`` (and of ``SparkConf`` look-alikes) that ``configure`` needs."""

    def config(self, key: str, value: str) -> object: ...


B = TypeVar("B", bound=_Builder)


def configure(builder: B) -> B:
    """Apply ``SETTINGS`` to a ``SparkSession.builder`` and return it, so that calls can be chained.

    Values set on the builder win, before and afterwards. A running session keeps its own settings: those of the
    Python workers are read when the first worker starts.
    """
    chosen: Mapping[str, object] = getattr(builder, "_options", {})
    for setting in settings_here():
        if setting.key not in chosen:
            builder.config(setting.key, setting.value)
    return builder


def settings_here() -> tuple[SparkSetting, ...]:
    """``SETTINGS`` that this machine can do: without Unix domain sockets where it has none, or no directory for them."""
    directory = os.path.isdir(SOCKET_DIRECTORY) and os.access(SOCKET_DIRECTORY, os.W_OK | os.X_OK)
    if hasattr(socket, "AF_UNIX") and directory:
        return SETTINGS
    return tuple(s for s in SETTINGS if not s.key.startswith("spark.python.unix.domain.socket."))


def render_properties() -> str:
    """The text of ``conf/kquery-spark.conf``: a properties file in which a comment explains each line."""
    blocks = [
        "# Settings for spark-submit --properties-file: what kq.configure(SparkSession.builder) applies.\n"
        "# Written from kquery_spark/config/spark_settings.py; a test keeps the two equal.\n"
    ]
    for setting in SETTINGS + OPTIONAL:
        comment = textwrap.fill(setting.reason, width=108, initial_indent="# ", subsequent_indent="# ")
        line = f"{setting.key}={setting.value}"
        blocks.append(f"{comment}\n{line if setting in SETTINGS else f'#{line}'}\n")
    return "\n".join(blocks)
