"""Counters of the engine's queries for Prometheus, fed by query events; needs the package ``prometheus_client``."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
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
    """Count the queries of this process's sessions in metrics for Prometheus; returns a function that ends this.

    registry: of ``prometheus_client`` (``kquery-spark[metrics]``); its default one unless given. ConfigError without that
    package, or if the metrics are in the registry already. How they leave the process is the package's business:
    ``start_http_server``, ``push_to_gateway``.

    - ``kquery_queries_total{engine}``: queries planned, and what the engine runs of them: ``whole``, ``part`` or ``none``.
    - ``kquery_planning_seconds``: histogram of the time that planning them took.
    - ``kquery_actions_total{action, place, outcome}``: ``place`` is ``driver``, ``tasks`` or ``spark``; ``outcome`` is
      ``finished``, ``failed`` (an error was raised) or ``rescued`` (the engine failed, and Spark ran the action again).
    - ``kquery_action_seconds{place}``: histogram of the time that actions took.
    - ``kquery_rows_total{place}``: rows that actions gave to the program.
    - ``kquery_spilled_bytes_total``: bytes that Spark's tasks wrote to disk because state passed their memory budget.
    """
    metrics = _Metrics(_client(), registry)
    remove = on_query(metrics.count)

    def end() -> None:
        remove()
        metrics.unregister()

    return end


def _client() -> ModuleType:
    try:
        return importlib.import_module("prometheus_client")
    except ImportError:
        raise ConfigError(
            "export_metrics needs the package prometheus_client: pip install 'kquery-spark[metrics]'"
        ) from None


class _Metrics:
    """The metrics in one registry. client: the module ``prometheus_client``."""

    def __init__(self, client: ModuleType, registry: CollectorRegistry | None) -> None:
        self._registry = client.REGISTRY if registry is None else registry
        self._registered: list[Any] = []

        def metric(kind: str, name: str, text: str, *labels: str, **options: Any) -> Any:
            made = getattr(client, kind)(name, text, labels, registry=self._registry, **options)
            self._registered.append(made)
            return made

        try:
            self._queries = metric(
                "Counter", "kquery_queries", "Queries planned, by what the engine runs.", "engine"
            )
        except ValueError:
            raise ConfigError(
                "the metrics are in this registry already: end the first export_metrics before another begins"
            ) from None
        self._planning = metric(
            "Histogram", "kquery_planning_seconds", "Time to plan.", buckets=_PLANNING_BUCKETS_SECONDS
        )
        labels = ("action", "place", "outcome")
        self._actions = metric("Counter", "kquery_actions", "Actions that ended, and how.", *labels)
        self._seconds = metric(
            "Histogram", "kquery_action_seconds", "Time of actions.", "place", buckets=_ACTION_BUCKETS_SECONDS
        )
        self._rows = metric("Counter", "kquery_rows", "Rows that actions gave to the program.", "place")
        self._spilled = metric(
            "Counter", "kquery_spilled_bytes", "Bytes that tasks wrote to disk for lack of memory."
        )
        self._counted_bytes = SPILL_TOTAL.value()
        self._lock = threading.Lock()
        SPILL_TOTAL.begin()

    def count(self, event: QueryEvent) -> None:
        """Count one event."""
        if event.kind == "planned":
            self._queries.labels(_share(event)).inc()
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

    def unregister(self) -> None:
        """Take the metrics out of the registry; a second time changes nothing."""
        if self._registered:
            SPILL_TOTAL.end()
        while self._registered:
            self._registry.unregister(self._registered.pop())


def _share(event: QueryEvent) -> str:
    """How much of a planned query the engine runs."""
    if event.place == "spark":
        return "none"
    return "whole" if event.coverage == 1.0 else "part"
