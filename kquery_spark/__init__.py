"""kquery_spark: a query engine that PySpark calls on Arrow batches.

The answer is always Spark SQL's answer; what the engine does not support falls back to Spark, visibly.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from kquery_spark.errors import FallbackWarning, KQueryError

if TYPE_CHECKING:
    from kquery_spark.accelerate.api import kquery_plan
    from kquery_spark.accelerate.enable import disable, enable
    from kquery_spark.accelerate.explain import assert_accelerated, explain
    from kquery_spark.accelerate.metrics import export_metrics
    from kquery_spark.accelerate.observers import QueryEvent, on_query
    from kquery_spark.config.spark_settings import configure
    from kquery_spark.context.execution_context import ExecutionContext
    from kquery_spark.context.open_plans import plan, sql_plan
    from kquery_spark.context.substrait_plans import plan_from_substrait
    from kquery_spark.frontends.catalyst.importer import support_table
    from kquery_spark.frontends.dataframe import Window, arrow_udf, col, lit, sql_expr, when
    from kquery_spark.service import QueryService, connect
    from kquery_spark.verify.verify import verify

__version__ = "0.3.0"

# Loaded on first use: Spark's workers import the engine without PySpark's DataFrames or the frontends.
_LAZY = {
    "ExecutionContext": "kquery_spark.context.execution_context",
    "QueryEvent": "kquery_spark.accelerate.observers",
    "QueryService": "kquery_spark.service",
    "Window": "kquery_spark.frontends.dataframe",
    "arrow_udf": "kquery_spark.frontends.dataframe",
    "assert_accelerated": "kquery_spark.accelerate.explain",
    "col": "kquery_spark.frontends.dataframe",
    "connect": "kquery_spark.service",
    "configure": "kquery_spark.config.spark_settings",
    "disable": "kquery_spark.accelerate.enable",
    "enable": "kquery_spark.accelerate.enable",
    "explain": "kquery_spark.accelerate.explain",
    "export_metrics": "kquery_spark.accelerate.metrics",
    "load_ipython_extension": "kquery_spark.notebook",
    "unload_ipython_extension": "kquery_spark.notebook",
    "lit": "kquery_spark.frontends.dataframe",
    "on_query": "kquery_spark.accelerate.observers",
    "sql_expr": "kquery_spark.frontends.dataframe",
    "plan": "kquery_spark.context.open_plans",
    "plan_from_substrait": "kquery_spark.context.substrait_plans",
    "sql_plan": "kquery_spark.context.open_plans",
    "when": "kquery_spark.frontends.dataframe",
    "kquery_plan": "kquery_spark.accelerate.api",
    "support_table": "kquery_spark.frontends.catalyst.importer",
    "verify": "kquery_spark.verify",
}

__all__ = [
    "ExecutionContext",
    "FallbackWarning",
    "KQueryError",
    "QueryEvent",
    "QueryService",
    "Window",
    "arrow_udf",
    "assert_accelerated",
    "col",
    "configure",
    "connect",
    "disable",
    "enable",
    "explain",
    "export_metrics",
    "kquery_plan",
    "lit",
    "on_query",
    "plan",
    "plan_from_substrait",
    "sql_expr",
    "sql_plan",
    "support_table",
    "verify",
    "when",
]


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    value = _function(name) if module is None else getattr(importlib.import_module(module), name)
    if value is None:
        # with name and obj, Python suggests the nearest name
        raise AttributeError(
            f"module 'kquery_spark' has no attribute {name!r}", name=name, obj=sys.modules[__name__]
        )
    globals()[name] = value
    return value


def _function(name: str) -> Any:
    """Return a SQL function that takes columns, as in ``kq.max(kq.col("x"))``; None if no function has this name."""
    if name.startswith("_"):
        return None
    from kquery_spark.frontends.dataframe import named_function

    return named_function(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
