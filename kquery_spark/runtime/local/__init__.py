"""Stages in one process, tasks in threads."""

from kquery_spark.runtime.local.executor import Run, run_graph, stream_graph

__all__ = ["Run", "run_graph", "stream_graph"]
