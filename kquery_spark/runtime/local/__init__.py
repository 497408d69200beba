"""Stages in one process, tasks in threads."""

from kquery_spark.runtime.local.executor import Run, run_graph, stream_graph
from kquery_spark.runtime.local.stop import Stop

__all__ = ["Run", "Stop", "run_graph", "stream_graph"]
