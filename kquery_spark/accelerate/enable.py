"""``kq.enable(spark)``: runs the actions of a session's DataFrames, and SQL that writes, in the engine with no code changes.

While any session is enabled, the actions and ``crosstab`` of PySpark's DataFrame class, ``sql`` of its session class, and
``pivot`` of its GroupedData class are wrapped. For other sessions, and for queries that fall back to Spark, a wrapper calls
PySpark's own method. ``spark.kquery.enabled=false`` switches a session off without ``disable``.

This module imports no part of the planner. A thread imports the planner after ``enable`` (see ``preload``), and the wrappers
import it when an action needs it.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, GroupedData, SparkSession

from kquery_spark.accelerate.options import Fallback, When, check_options
from kquery_spark.accelerate.preload import import_planner, import_planner_in_background
from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.frames.grouped_data import grouped_frame, pivot_by
from kquery_spark.spark_bridge.frames.lazy_dataframe import SHOW, LazyDataFrame, show_string_of
from kquery_spark.spark_bridge.frames.pyspark_names import ClassicDataFrame
from kquery_spark.spark_bridge.plan.write_statements import may_write
from kquery_spark.spark_bridge.session.bridge import check_session, get_bridge, session_identity
from kquery_spark.spark_bridge.session.bypass import bypass, is_bypassed
from kquery_spark.spark_bridge.session.failures import warn_user


@dataclass(frozen=True)
class _Options:
    fallback: Fallback
    when: When


@dataclass(frozen=True)
class _Wrapped:
    """An attribute of one of PySpark's classes and the wrapper that replaces it."""

    owner: type
    name: str
    original: Any
    wrapper: Any


_sessions: dict[str, _Options] = {}
_options_for_all_sessions: _Options | None = None
_installed: list[_Wrapped] = []
_install_lock = threading.Lock()


def enable(spark: SparkSession, *, fallback: Fallback = "spark", when: When = "auto") -> None:
    """Let the engine run the actions of this session's DataFrames.

    Actions: collect, take, head, first, count, show, toPandas, toArrow, toLocalIterator, foreach,
    foreachPartition, write and writeTo; also ``spark.sql`` of INSERT and CREATE TABLE AS SELECT, and the query
    for the values of ``crosstab`` and of a ``pivot`` without values. ``fallback`` and ``when`` have the same
    meaning as for ``kquery_plan``. A second call replaces the options of the first. On an unsupported release
    of Spark, the function only emits a FallbackWarning.
    """
    check_options(fallback, when)
    try:
        get_bridge(spark)
    except Unsupported as unknown:
        warn_user(f"Spark runs the queries of this session: {unknown.reason}")
        return
    if when != "never":
        import_planner_in_background()
    _sessions[session_identity(spark)] = _Options(fallback, when)
    _install()


def disable(spark: SparkSession) -> None:
    """Undo ``enable``: Spark runs the session's actions again."""
    check_session(spark)
    _sessions.pop(session_identity(spark), None)
    _uninstall_unused()


def enable_everywhere(*, fallback: Fallback = "spark", when: When = "auto") -> None:
    """Enable the engine in every classic session of this process, including future ones, as ``kquery-spark run`` does."""
    global _options_for_all_sessions
    check_options(fallback, when)
    _options_for_all_sessions = _Options(fallback, when)
    _install()


def disable_everywhere() -> None:
    """Undo ``enable_everywhere``."""
    global _options_for_all_sessions
    _options_for_all_sessions = None
    _uninstall_unused()


_Subject = DataFrame | GroupedData | SparkSession
"""An object of PySpark with wrapped methods."""


def _options(subject: _Subject) -> _Options | None:
    """Return the options of the session of ``subject``; None if PySpark's own method has to run."""
    if isinstance(subject, GroupedData):
        return _options(grouped_frame(subject))
    if is_bypassed() or isinstance(subject, LazyDataFrame) or not (_sessions or _options_for_all_sessions):
        return None
    session = subject if isinstance(subject, SparkSession) else subject.sparkSession
    options = _sessions.get(session_identity(session), _options_for_all_sessions)
    if options is None or options.when == "never":
        return None
    return None if isinstance(subject, DataFrame) and subject.isStreaming else options


@dataclass(frozen=True)
class _Action:
    """How an enabled session runs an action of PySpark's DataFrame.

    run: calls the action of an EngineFrame, which runs it through ``Execution`` and ``Actions`` like any accelerated frame.
    query_to_plan: returns the query to plan, given the action's arguments. ``take`` is planned with its limit and ``count``
    with its aggregate, as in PySpark, so that the engine does not compute rows and columns that the action does not return.
    For a write, it returns a copy that Spark has not planned yet (see ``_unplanned``).
    """

    run: Callable[..., Any]
    query_to_plan: Callable[..., DataFrame] = lambda frame, *_, **__: frame

    def __call__(self, frame: DataFrame, options: _Options, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the action, or NotImplemented for a query that falls back to Spark."""
        if not import_planner(options.fallback):
            return NotImplemented
        from kquery_spark.accelerate.api import kquery_plan
        from kquery_spark.accelerate.execution.dataframe import execution_of

        query = self.query_to_plan(frame, *args, **kwargs)
        fast = kquery_plan(query, fallback=options.fallback, when=options.when)
        if not isinstance(fast, LazyDataFrame):
            return NotImplemented
        execution = execution_of(fast)
        if execution is not None and self.query_to_plan is not _unplanned:
            execution.keep_current_values()
        return self.run(fast, *args, **kwargs)


def _same_action(name: str) -> _Action:
    """Return the action that calls the EngineFrame's method of the same name with the same arguments."""
    return _Action(lambda fast, *args, **kwargs: getattr(fast, name)(*args, **kwargs))


def _limited_to_shown(frame: DataFrame, n: int = 20, *_: Any, **__: Any) -> DataFrame:
    """Return the first n + 1 rows: Spark shows n rows and needs one more to know whether the result has more."""
    valid = isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**31 - 1
    return frame.limit(n + 1) if valid else frame


def _unplanned(frame: DataFrame, *_: Any, **__: Any) -> DataFrame:
    """Return a copy of the DataFrame that Spark has not planned yet.

    Spark plans each write anew, so a write sees the current caches and the current time. If the DataFrame itself were
    planned, later writes and ``collect`` would reuse this plan with the caches and the time of the first write. Returns the
    DataFrame itself if it cannot be copied, for example on an unsupported release, where ``kquery_plan`` warns.
    """
    from kquery_spark.spark_bridge.relations.catalog_snapshot import unplanned_copy

    try:
        return unplanned_copy(frame, get_bridge(frame.sparkSession))
    except Exception:
        return frame


def _sql(session: SparkSession, options: _Options, /, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:
    """Run a statement that writes. Other statements, and statements with arguments, fall back to Spark.

    Spark's analyzer binds arguments.
    """
    if args or kwargs or not isinstance(sqlQuery, str) or not may_write(sqlQuery):
        return NotImplemented
    if not import_planner(options.fallback):
        return NotImplemented
    from kquery_spark.accelerate.statements import run_write

    result = run_write(session, sqlQuery, options.fallback, options.when)
    return NotImplemented if result is None else result


def _pivot(grouped: GroupedData, options: _Options, /, pivot_col: Any, values: Any = None) -> Any:
    """Pivot by a column. If the caller passed no values, the engine finds them if it can, otherwise Spark."""
    if values is not None or not isinstance(pivot_col, str) or not import_planner(options.fallback):
        return NotImplemented
    from kquery_spark.accelerate.pivots import pivot_values

    found = pivot_values(grouped_frame(grouped), pivot_col, options.fallback, options.when)
    return NotImplemented if found is None else pivot_by(grouped, pivot_col, found)


def _crosstab(frame: DataFrame, options: _Options, /, col1: Any, col2: Any) -> Any:
    """Count the pairs of values of two columns. The engine finds the values of the second column if it can."""
    if not isinstance(col1, str) or not isinstance(col2, str) or not import_planner(options.fallback):
        return NotImplemented
    from kquery_spark.accelerate.pivots import crosstab

    table = crosstab(frame, col1, col2, options.fallback, options.when)
    return NotImplemented if table is None else table


_SAME_NAME_ACTIONS = (
    "collect",
    "toArrow",
    "toPandas",
    "toLocalIterator",
    "foreach",
    "foreachPartition",
)
_ACTIONS: dict[str, _Action] = {
    **{name: _same_action(name) for name in _SAME_NAME_ACTIONS},
    "take": _Action(lambda fast, num: fast.collect(), lambda frame, num: frame.limit(num)),
    SHOW: _Action(show_string_of, _limited_to_shown),
    "count": _Action(lambda fast: int(fast.collect()[0][0]), lambda frame: frame.groupBy().count()),
    "write": _Action(lambda fast: fast.write, _unplanned),
    "writeTo": _Action(lambda fast, table: fast.writeTo(table), _unplanned),
}


def _install() -> None:
    """Wrap the methods that the docstring of this module lists, unless they are wrapped already."""
    with _install_lock:
        if _installed:
            return
        # These are added to _installed at the end, so that nothing counts as installed after an error.
        members: list[_Wrapped] = []
        runs: list[tuple[type, str, Callable[..., Any]]] = [
            (SparkSession, "sql", _sql),
            (GroupedData, "pivot", _pivot),
            (ClassicDataFrame, "crosstab", _crosstab),
        ]
        runs += [(ClassicDataFrame, name, action) for name, action in _ACTIONS.items()]
        for owner, name, run in runs:
            original = getattr(owner, name, None)
            # PySpark 3.5 has no toArrow. Other code may have replaced a property by a descriptor of its own.
            if not (isinstance(original, property) or callable(original)):
                continue
            if isinstance(original, property):
                assert original.fget is not None
                wrapper: Any = property(_wrapper(name, original.fget, run), doc=original.__doc__)
            else:
                wrapper = _wrapper(name, original, run)
            members.append(_Wrapped(owner, name, original, wrapper))
        _installed.extend(members)
        for wrapped in _installed:
            setattr(wrapped.owner, wrapped.name, wrapped.wrapper)


def _uninstall_unused() -> None:
    """Restore PySpark's methods if no session is enabled any more, except for methods that other code has wrapped since."""
    with _install_lock:
        if _sessions or _options_for_all_sessions:
            return
        for wrapped in _installed:
            if getattr(wrapped.owner, wrapped.name) is wrapped.wrapper:
                setattr(wrapped.owner, wrapped.name, wrapped.original)
        _installed.clear()


def _wrapper(name: str, original: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that calls ``run`` if the engine may run the action, and otherwise PySpark's own method.

    Nested calls bypass the wrapper, because they belong to the same action. Otherwise, a DataFrame that falls back to
    Spark would be planned a second time. Invalid arguments are passed to PySpark's own method, which raises the error.
    """
    try:
        signature = inspect.signature(original)
    except ValueError:  # other code has replaced the method by an object without a signature
        signature = inspect.signature(lambda *_, **__: None)

    def action(self: _Subject, *args: Any, **kwargs: Any) -> Any:
        options = _options(self)
        if options is None or not _accepts(signature, self, *args, **kwargs):
            return original(self, *args, **kwargs)
        with bypass():
            result = run(self, options, *args, **kwargs)
            return original(self, *args, **kwargs) if result is NotImplemented else result

    # Tracebacks, and the names of Spark's stages, contain the name of the code.
    action.__code__ = action.__code__.replace(co_name=name)
    return functools.wraps(original)(action)


def _accepts(signature: inspect.Signature, /, *args: Any, **kwargs: Any) -> bool:
    """True if a call of that signature is valid."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True
