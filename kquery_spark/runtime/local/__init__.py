"""Runs all stages in one process, with the tasks in threads."""

from kquery_spark.runtime.local.executor import LocalExecutor
from kquery_spark.runtime.local.read_ahead import ReadAheadBudget
from kquery_spark.runtime.local.stop import Stop

__all__ = ["LocalExecutor", "ReadAheadBudget", "Stop"]
