"""Adds SQL executions of the engine to Spark's UI and event log.

Spark's UI learns about executions from events on the listener bus. The engine posts the start, the metric values and the
end of an execution together, after everything has run. So no event of Spark can come between them, and no state of Spark
has to be updated. The events are built from JSON, as the history server does, so that a whole plan takes one py4j call.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pyspark import SparkContext

from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.spark_bridge.session.setting_values import is_true

MetricType = Literal["sum", "size", "timing"]
"""The format of a metric in the UI: a number, bytes, or milliseconds."""

_EXECUTIONS = "org.apache.spark.sql.execution.SQLExecution$"
_SETTINGS = "org.apache.spark.sql.internal.SQLConf"
_EVENT = "org.apache.spark.scheduler.SparkListenerEvent"
_EVENTS = "org.apache.spark.sql.execution.ui.SparkListener"
_FIRST_METRIC_ID = 1 << 52
"""Larger than the ids of Spark's accumulators, which count from 0, and still exact as a JavaScript number."""
_metric_ids = itertools.count(_FIRST_METRIC_ID)


@dataclass(frozen=True)
class PlanNode:
    """A node of the graph that the UI draws: its title, its description, metrics (name, type, value) and children."""

    name: str
    text: str
    metrics: tuple[tuple[str, MetricType, int], ...]
    children: tuple[PlanNode, ...] = ()


@dataclass(frozen=True)
class FinishedExecution:
    """A finished execution. root_id: Spark's execution under which the UI lists it; None for a top-level execution."""

    description: str
    plan: PlanNode
    plan_text: str
    started_ms: int
    ended_ms: int
    root_id: int | None = None


def shows_executions(context: SparkContext) -> bool:
    """Return whether SQL executions are visible at all: in a UI or an event log."""
    if is_true(context.getConf().get("spark.eventLog.enabled", "false")):
        return True
    return context.uiWebUrl is not None


def redacts_strings(bridge: Bridge) -> bool:
    """Return whether a session replaces parts of the strings of plans."""
    pattern = bridge.jvm.getter(_SETTINGS, "stringRedactionPattern", "scala.Option isDefined")
    return bool(pattern.apply(bridge.conf))


class SqlExecutions:
    """Posts executions on the listener bus of a Spark context."""

    def __init__(self, context: SparkContext, jvm: Jvm) -> None:
        self._jvm = jvm
        self._owner = jvm.owner(_EXECUTIONS)
        self._next_id = jvm.private_function(_EXECUTIONS, "nextExecutionId")
        bus: Any = context._jsc.sc().listenerBus()
        post = jvm.bind(jvm.handle("org.apache.spark.scheduler.LiveListenerBus", "post", _EVENT), 0, bus)
        read = jvm.handle("org.apache.spark.util.JsonProtocol", "sparkEventFromJson", "java.lang.String")
        lines = jvm.handle("java.lang.String", "split", "java.lang.String")
        wrap = jvm.handle("scala.Predef", "wrapRefArray", "[Ljava.lang.Object;")
        each = jvm.handle(jvm.scala.iterable, "foreach", "scala.Function1")
        post_line = jvm.function(jvm.then(read, post))
        post_lines = jvm.then(jvm.then(jvm.bind(lines, 1, "\n"), wrap), jvm.bind(each, 1, post_line))
        self._post_lines = jvm.function(post_lines)

    def is_running(self, execution_id: int) -> bool:
        """Return whether an execution of Spark has not ended."""
        return self._owner.getQueryExecution(execution_id) is not None

    def post(self, execution: FinishedExecution) -> int:
        """Add an execution to the UI and the event log; return its new id."""
        execution_id = int(self._next_id.apply(self._owner))
        events = _events(execution_id, execution)
        self._post_lines.apply("\n".join(json.dumps(event) for event in events))
        return execution_id


def before_stop(context: SparkContext, callback: Callable[[], None]) -> None:
    """Call ``callback`` once, before the context stops or this process exits; its errors are ignored."""
    stop = context.stop

    @functools.cache
    def once() -> None:
        with contextlib.suppress(Exception):
            callback()

    @functools.wraps(stop)
    def stop_after_callback() -> None:
        once()
        atexit.unregister(once)
        stop()

    atexit.register(once)
    context.stop = stop_after_callback  # type: ignore[method-assign]


def _events(execution_id: int, execution: FinishedExecution) -> Iterator[dict[str, Any]]:
    """Return the events in the JSON format of the event log; each version of Spark reads the fields that it knows."""
    values: list[tuple[int, int]] = []
    plan = _plan_info(execution.plan, values)
    yield {
        "Event": f"{_EVENTS}SQLExecutionStart",
        "executionId": execution_id,
        "rootExecutionId": execution_id if execution.root_id is None else execution.root_id,
        "description": execution.description,
        "details": execution.description,
        "physicalPlanDescription": execution.plan_text,
        "sparkPlanInfo": plan,
        "time": execution.started_ms,
        "modifiedConfigs": {},
        "jobTags": [],
        "jobGroupId": None,
        "queryId": None,
    }
    yield {
        "Event": f"{_EVENTS}DriverAccumUpdates",
        "executionId": execution_id,
        "accumUpdates": values,
    }
    yield {
        "Event": f"{_EVENTS}SQLExecutionEnd",
        "executionId": execution_id,
        "time": execution.ended_ms,
        "errorMessage": None,
        "queryId": None,
    }


def _plan_info(node: PlanNode, values: list[tuple[int, int]]) -> dict[str, Any]:
    """Build a ``SparkPlanInfo`` in JSON, and add the values of its metrics to ``values`` by their ids."""
    metrics = []
    for name, kind, value in node.metrics:
        metric_id = next(_metric_ids)
        values.append((metric_id, value))
        metrics.append({"name": name, "accumulatorId": metric_id, "metricType": kind})
    return {
        "nodeName": node.name,
        "simpleString": node.text,
        "children": [_plan_info(child, values) for child in node.children],
        "metadata": {},
        "metrics": metrics,
    }
