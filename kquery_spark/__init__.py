"""kquery_spark: a query engine that PySpark calls on Arrow batches.

The answer is always Spark SQL's answer; what the engine does not support stays with Spark, visibly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kquery_spark.errors import KQueryError

if TYPE_CHECKING:
    from kquery_spark.config.spark_settings import configure
    from kquery_spark.session.explain import explain
    from kquery_spark.session.transform import kquery_plan
    from kquery_spark.verify.verify import verify

__version__ = "0.1.0"

# Loaded on first use: Spark's workers import the engine without PySpark's DataFrames or the frontends.
_LAZY = {
    "configure": "kquery_spark.config.spark_settings",
    "explain": "kquery_spark.session.explain",
    "kquery_plan": "kquery_spark.session.transform",
    "verify": "kquery_spark.verify",
}

__all__ = ["KQueryError", "configure", "explain", "kquery_plan", "verify"]


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'kquery_spark' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
