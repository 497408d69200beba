"""Names the environment variables that mark the engine's worker processes."""

from __future__ import annotations

WORKER_MARK = "KQUERY_SPARK_WORKER"
"""Set only in the engine's Python workers."""

FOR_FUNCTIONS = "functions"
"""The value of WORKER_MARK in workers that call users' Python functions. Other stages do not use these workers."""

WORKER_INTERPRETER = "KQUERY_SPARK_PYTHON"
"""The executable that ``spark_bridge/session/engine-python`` starts."""
