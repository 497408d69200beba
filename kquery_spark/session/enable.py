"""``kq.enable(spark)``: actions of a session's DataFrames use the engine without a change of code.

PySpark's DataFrame class gets its actions wrapped, once; a wrapper does nothing but ask whether the session is
enabled, unless it is. ``spark.kquery.enabled=false`` switches a session off without ``disable``.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from kquery_spark.session.bridge import bridge
from kquery_spark.session.bypass import bypass, bypassed
from kquery_spark.session.engine_frame import execution_of
from kquery_spark.session.transform import Fallback, When, check_options, kquery_plan


@dataclass(frozen=True)
class _Options:
    fallback: Fallback
    when: When


_sessions: dict[str, _Options] = {}
_everywhere: _Options | None = None
_identities: weakref.WeakKeyDictionary[SparkSession, str] = weakref.WeakKeyDictionary()
_originals: dict[str, Any] = {}


def enable(spark: SparkSession, *, fallback: Fallback = "spark", when: When = "auto") -> None:
    """Let the engine run the actions of this session's DataFrames, where ``when`` says so.

    Actions: collect, take, head, first, count, show, toPandas, toArrow, toLocalIterator, foreach,
    foreachPartition, write and writeTo. ``fallback`` and ``when`` as for ``kquery_plan``. Enabling twice is
    harmless; the last options hold.
    """
    check_options(fallback, when)
    bridge(spark)
    _sessions[_identity(spark)] = _Options(fallback, when)
    _install()


def disable(spark: SparkSession) -> None:
    """Give the session's actions back to Spark."""
    _sessions.pop(_identity(spark), None)


def enable_everywhere(*, fallback: Fallback = "spark", when: When = "auto") -> None:
    """``enable`` for every classic session of this process, also those to come: what ``kquery-spark run`` does."""
    global _everywhere
    check_options(fallback, when)
    _everywhere = _Options(fallback, when)
    _install()


def disable_everywhere() -> None:
    """Undo ``enable_everywhere``."""
    global _everywhere
    _everywhere = None


def _identity(spark: SparkSession) -> str:
    """The JVM session's: PySpark may wrap one session in several objects."""
    found = _identities.get(spark)
    if found is None:
        found = _identities[spark] = str(spark._jsparkSession.sessionUUID())
    return found


def _options(frame: DataFrame) -> _Options | None:
    if bypassed() or execution_of(frame) is not None or not (_sessions or _everywhere):
        return None
    return _sessions.get(_identity(frame.sparkSession), _everywhere)


def _accelerated(frame: DataFrame, options: _Options) -> DataFrame:
    """The frame to act on; planning that fails where Spark may step in is a warning, not an end."""
    with bypass():
        return kquery_plan(frame, fallback=options.fallback, when=options.when)


def _install() -> None:
    """Wrap the actions of PySpark's classic DataFrame, once."""
    if _originals:
        return
    for name in ("collect", "toArrow", "toPandas", "toLocalIterator", "foreach", "foreachPartition"):
        _wrap(name, lambda frame, *_: frame)
    _wrap("take", lambda frame, num, *_: frame.limit(num), "collect")
    _wrap("_show_string", _shown)
    _wrap("writeTo", lambda frame, *_: frame)
    _wrap_count()
    _wrap_write()


def _shown(frame: DataFrame, n: Any = 20, *_: Any) -> DataFrame:
    """Spark shows n rows and asks for one more to know whether there are others."""
    valid = isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**31 - 1
    return frame.limit(n + 1) if valid else frame


def _wrap(name: str, narrowed: Callable[..., DataFrame], instead: str | None = None) -> None:
    original = _originals[name] = getattr(ClassicDataFrame, name)

    @functools.wraps(original)
    def action(self: DataFrame, *args: Any, **kwargs: Any) -> Any:
        options = _options(self)
        if options is None or self.isStreaming:
            return original(self, *args, **kwargs)
        given = args or tuple(kwargs.values())[:1]
        chosen = _accelerated(narrowed(self, *given), options)
        with bypass():
            return getattr(chosen, instead)() if instead else getattr(chosen, name)(*args, **kwargs)

    setattr(ClassicDataFrame, name, action)


def _wrap_count() -> None:
    original = _originals["count"] = ClassicDataFrame.count

    @functools.wraps(original)
    def count(self: ClassicDataFrame) -> int:
        options = _options(self)
        if options is None or self.isStreaming:
            return int(original(self))
        counted = _accelerated(self.groupBy().count(), options)
        with bypass():
            return int(counted.collect()[0][0])

    ClassicDataFrame.count = count  # type: ignore[method-assign]


def _wrap_write() -> None:
    original = _originals["write"] = ClassicDataFrame.write

    def write(self: DataFrame) -> DataFrameWriter:
        options = _options(self)
        if options is None or self.isStreaming:
            return DataFrameWriter(self)
        return _accelerated(self, options).write

    write.__doc__ = original.__doc__
    ClassicDataFrame.write = property(write)  # type: ignore[assignment, method-assign]
