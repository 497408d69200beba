"""Environment variables by which the engine's worker processes know each other."""

from __future__ import annotations

WORKER_MARK = "KQUERY_SPARK_WORKER"
"""Set in the engine's Python workers and in nobody else's."""

FOR_FUNCTIONS = "functions"
"""The mark's value in workers that call Python functions of Spark's users, which share them with no other stage."""

WORKER_INTERPRETER = "KQUERY_SPARK_PYTHON"
"""The executable that ``spark_bridge/session/engine-python`` starts."""
