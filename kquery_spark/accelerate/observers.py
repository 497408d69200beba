"""Query events: callbacks registered by ``on_query``, and the log (``spark.kquery.log=info``)."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

import pyarrow as pa

from kquery_spark.config.engine import EngineConfig

Place = Literal["driver", "tasks", "spark"]
LOGGER = logging.getLogger("kquery_spark.queries")


@dataclass(frozen=True)
class QueryEvent:
    """The event passed to ``on_query`` callbacks: a query was planned, or an action on an accelerated query ended.

    action: its name in PySpark; empty for "planned". place: where the action ran or the query will run: in the driver, in
    Spark tasks that run the engine, or in Spark alone. coverage: share of the plan's nodes that run in the engine, 0 to 1.
    sentences: the decision on each part, and why other nodes fall back to Spark. seconds: duration of planning or of the
    action. failure: the failure of the engine after which Spark ran the query again, or the error that was raised.
    rows: the number of rows that the action returned; None for actions that do not return rows, such as ``count``, ``show``,
    and writes.
    """

    kind: Literal["planned", "finished", "failed"]
    action: str
    place: Place
    coverage: float
    sentences: tuple[str, ...]
    seconds: float
    failure: str | None = None
    rows: int | None = None

    def __str__(self) -> str:
        what = self.kind if self.kind == "planned" else f"{self.action} {self.kind}"
        places = {"driver": "in the driver", "tasks": "in tasks of the engine", "spark": "by Spark alone"}
        line = f"{what} {places[self.place]}, {self.seconds * 1000:,.0f} ms, coverage {self.coverage:.2f}"
        details = [text for text in (*self.sentences, self.failure or "") if text]
        return ": ".join([line, " ".join(details)]) if details else line


_callbacks: list[Callable[[QueryEvent], None]] = []
_setup_lock = threading.Lock()


def on_query(callback: Callable[[QueryEvent], None]) -> Callable[[], None]:
    """Call ``callback`` with a QueryEvent when a query has been planned, and when an action on an accelerated query ends.

    ``foreach``, ``foreachPartition``, ``toLocalIterator`` and ``writeTo`` emit only the event of their planning. The
    callback runs in the thread of the action, for all sessions of this process. Its errors are logged and otherwise ignored.
    Returns a function that removes the callback.
    """
    _callbacks.append(callback)

    def remove() -> None:
        if callback in _callbacks:
            _callbacks.remove(callback)

    return remove


def is_observed(config: EngineConfig | None) -> bool:
    """True if there is a callback or ``config`` turns the log on; otherwise no event is built."""
    return bool(_callbacks) or _is_logged(config)


def notify(event: QueryEvent, config: EngineConfig | None) -> None:
    """Log the event if ``config`` turns the log on, and call all callbacks."""
    if _is_logged(config):
        _log(event)
    for callback in tuple(_callbacks):
        try:
            callback(event)
        except Exception:
            LOGGER.exception("a callback of kq.on_query failed")


def _is_logged(config: EngineConfig | None) -> bool:
    return config is not None and config.log != "off"


def _log(event: QueryEvent) -> None:
    """Log one line at level INFO; it goes to stderr if the program has not configured logging."""
    with _setup_lock:
        if not LOGGER.isEnabledFor(logging.INFO):
            LOGGER.setLevel(logging.INFO)
        if not LOGGER.hasHandlers():
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("kquery_spark: %(message)s"))
            LOGGER.addHandler(handler)
    LOGGER.info("%s", event)


@dataclass
class ActionWatch:
    """Facts about a running action: where it runs, what failed, and the number of rows that it returned."""

    place: Place = "spark"
    failure: str | None = None
    rows: int | None = None


_current_watch: ContextVar[ActionWatch | None] = ContextVar("kquery_spark_action", default=None)


@contextmanager
def watched_action(action: str, config: EngineConfig, coverage: Callable[[], float]) -> Iterator[ActionWatch]:
    """Time an action and emit an event when it ends; ``coverage`` is called only if a callback or the log needs it.

    An action that another action calls emits no event: for example, without Arrow, PySpark's ``toPandas`` calls ``collect``.
    """
    outer = _current_watch.get()
    if outer is not None or not is_observed(config):
        yield outer or ActionWatch()
        return
    watch = ActionWatch()
    kind: Literal["finished", "failed"] = "finished"
    token = _current_watch.set(watch)
    start = perf_counter()
    try:
        yield watch
    except BaseException as error:
        first_line = str(error).strip().partition("\n")[0]
        kind, watch.failure, watch.rows = "failed", f"{type(error).__name__}: {first_line}", None
        raise
    finally:
        seconds = perf_counter() - start
        _current_watch.reset(token)
        notify(
            QueryEvent(kind, action, watch.place, coverage(), (), seconds, watch.failure, watch.rows), config
        )


def row_count(result: object) -> int | None:
    """Return the number of rows of a result that is a list, an Arrow table, or a pandas DataFrame; None for other types."""
    if isinstance(result, list):
        return len(result)
    if isinstance(result, pa.Table):
        return int(result.num_rows)
    pandas = sys.modules.get("pandas")  # imported by PySpark if the result is one of its DataFrames
    return len(result) if pandas is not None and isinstance(result, pandas.DataFrame) else None
