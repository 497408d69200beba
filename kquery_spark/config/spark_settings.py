"""Lists the Spark settings that the engine recommends, each with its reason, for ``conf/`` and ``kq.configure``.

No setting in ``SETTINGS`` may make Spark fail or change an answer on any cluster. Settings that are right only on some
clusters are in ``OPTIONAL``, and the administrator chooses them.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import NamedTuple, Protocol, TypeVar

from kquery_spark.errors import ConfigError, type_name


class SparkSetting(NamedTuple):
    """One Spark property, the recommended value, and one or two sentences with the reason."""

    key: str
    value: str
    reason: str


SOCKET_DIRECTORY = "/tmp"
"""Every Unix has this directory, and its path is short: the path of a socket may take only about 100 bytes."""

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
        "The directory of these sockets. Spark's default is Java's temporary directory. In a YARN container its path is too "
        "long for a socket, and no Python function would run.",
    ),
    SparkSetting(
        "spark.python.worker.reuse",
        "true",
        "A worker lives on between tasks, so the next task finds imports, Arrow's warm memory pool and the cached build "
        "sides of joins. It has this value by default and is listed because the engine depends on it.",
    ),
    SparkSetting(
        "spark.sql.execution.arrow.maxBytesPerBatch",
        "64m",
        "Shuffled data reaches a reduce task as rows of a few MB each. This limits the bytes of the rows in one "
        "batch; Spark's other limit only counts rows. It is the default of newer Spark releases. Your own "
        "functions of batches may get more and smaller batches.",
    ),
)
"""Every setting, most important first. Leaving one out never changes an answer, only its speed."""

OPTIONAL: tuple[SparkSetting, ...] = (
    SparkSetting(
        "spark.python.daemon.module",
        "kquery_spark.runtime.spark.daemon",
        "Only for clusters where kquery_spark is installed on every machine that runs Python workers. On a machine "
        "without it, no Python function would run, not even one that does not use the engine. It replaces Spark's "
        "Python daemon by one with the engine already imported: a new worker of the engine starts about half a second "
        "sooner, the garbage collection after each task skips the imported modules, and numpy sorts with AVX2 "
        "where that is faster (AMD's Zen 4). For your own Python functions it behaves like PySpark's daemon. On a "
        "local master the engine's workers use it without this setting.",
    ),
)
"""Settings that are right only under a condition: ``conf/`` has them as comments, and ``configure`` does not set them."""


class _Builder(Protocol):
    """The part of ``SparkSession.Builder`` that ``configure`` needs."""

    def config(self, key: str, value: str) -> object: ...


B = TypeVar("B", bound=_Builder)


def configure(builder: B) -> B:
    """Apply ``SETTINGS`` to a ``SparkSession.builder`` and return it, so that calls can be chained.

    Values set on the builder win, before and afterwards. A running session keeps its own settings: those of the
    Python workers are read when the first worker starts.
    """
    if not hasattr(builder, "config"):
        raise ConfigError(
            f"configure takes SparkSession.builder before getOrCreate(), not {type_name(builder)}; "
            "the settings of a running session cannot be changed"
        )
    chosen: Mapping[str, object] = getattr(builder, "_options", {})
    for setting in supported_settings():
        if setting.key not in chosen:
            builder.config(setting.key, setting.value)
    return builder


def supported_settings() -> tuple[SparkSetting, ...]:
    """Return the ``SETTINGS`` that this machine supports: without those for sockets if it lacks Unix domain sockets."""
    directory = os.path.isdir(SOCKET_DIRECTORY) and os.access(SOCKET_DIRECTORY, os.W_OK | os.X_OK)
    if hasattr(socket, "AF_UNIX") and directory:
        return SETTINGS
    return tuple(s for s in SETTINGS if not s.key.startswith("spark.python.unix.domain.socket."))
