"""Prometheus metrics of the engine's queries, fed by query events; needs the package ``prometheus_client``."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from kquery_spark.accelerate.observers import QueryEvent, on_query
from kquery_spark.errors import ConfigError
from kquery_spark.runtime.spark.spill_total import SPILL_TOTAL

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_PLANNING_BUCKETS_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_ACTION_BUCKETS_SECONDS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)


def export_metrics(registry: CollectorRegistry | None = None) -> Callable[[], None]:
    """Count the queries of all sessions of this process in Prometheus metrics; returns a function that stops counting.

    registry: a ``prometheus_client.CollectorRegistry`` (``kquery-spark[metrics]``); default: that package's global registry.
    Raises ConfigError if the package is missing or the registry already has these metrics. To publish the metrics, use
    functions of that package, such as ``start_http_server`` or ``push_to_gateway``.

    - ``kquery_queries_total{engine}``: planned queries, by how much of each the engine runs: ``whole``, ``part`` or
      ``none``.
    - ``kquery_planning_seconds``: histogram of planning times.
    - ``kquery_actions_total{action, place, outcome}``: ``place`` is ``driver``, ``tasks`` or ``spark``; ``outcome`` is
      ``finished``, ``failed`` (an error was raised) or ``rescued`` (the engine failed, and Spark ran the action again).
    - ``kquery_action_seconds{place}``: histogram of the durations of actions.
    - ``kquery_rows_total{place}``: rows that actions returned to the program.
    - ``kquery_spilled_bytes_total``: bytes that Spark's tasks spilled to disk because state exceeded their memory budget.
    """
    client = _client()
    metrics = _Metrics(client)
    target: Any = client.REGISTRY if registry is None else registry
    try:
        target.register(metrics)
    except ValueError:
        raise ConfigError(
            "the metrics are in this registry already: end the first export_metrics before another begins"
        ) from None
    undo = ExitStack()  # a second call of close does nothing
    undo.callback(target.unregister, metrics)
    SPILL_TOTAL.begin()
    undo.callback(SPILL_TOTAL.end)
    undo.callback(on_query(metrics.count))
    return undo.close


def _client() -> ModuleType:
    try:
        return importlib.import_module("prometheus_client")
    except ImportError:
        raise ConfigError(
            "export_metrics needs the package prometheus_client: pip install 'kquery-spark[metrics]'"
        ) from None


class _Metrics:
    """All metrics as one collector, so that a registry accepts all of them or none. client: module ``prometheus_client``."""

    def __init__(self, client: ModuleType) -> None:
        counter, histogram = partial(client.Counter, registry=None), partial(client.Histogram, registry=None)
        self._queries = counter("kquery_queries", "Queries planned, by how much the engine runs.", ["engine"])
        self._planning = histogram(
            "kquery_planning_seconds", "Planning time.", buckets=_PLANNING_BUCKETS_SECONDS
        )
        self._actions = counter(
            "kquery_actions", "Actions by place and outcome.", ["action", "place", "outcome"]
        )
        self._seconds = histogram(
            "kquery_action_seconds", "Duration of actions.", ["place"], buckets=_ACTION_BUCKETS_SECONDS
        )
        self._rows = counter("kquery_rows", "Rows that actions returned to the program.", ["place"])
        self._spilled = counter("kquery_spilled_bytes", "Bytes that tasks wrote to disk for lack of memory.")
        self._counted_bytes = SPILL_TOTAL.value()
        self._lock = threading.Lock()

    def _collectors(self) -> tuple[Any, ...]:
        return (self._queries, self._planning, self._actions, self._seconds, self._rows, self._spilled)

    def describe(self) -> list[Any]:
        """The names and types, which a registry compares with its own."""
        return [family for metric in self._collectors() for family in metric.describe()]

    def collect(self) -> list[Any]:
        """The values."""
        return [family for metric in self._collectors() for family in metric.collect()]

    def count(self, event: QueryEvent) -> None:
        """Count one event."""
        if event.kind == "planned":
            self._queries.labels(_engine_share(event)).inc()
            self._planning.observe(event.seconds)
            return
        rescued = event.kind == "finished" and event.failure is not None
        self._actions.labels(event.action, event.place, "rescued" if rescued else event.kind).inc()
        self._seconds.labels(event.place).observe(event.seconds)
        if event.rows is not None:
            self._rows.labels(event.place).inc(event.rows)
        with self._lock:
            before, self._counted_bytes = self._counted_bytes, SPILL_TOTAL.value()
            self._spilled.inc(self._counted_bytes - before)


def _engine_share(event: QueryEvent) -> str:
    """Return how much of a planned query the engine runs: "whole", "part" or "none"."""
    if event.place == "spark":
        return "none"
    return "whole" if event.coverage == 1.0 else "part"
