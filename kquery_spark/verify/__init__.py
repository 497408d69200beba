"""Engine and Spark side by side."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from kquery_spark.verify.compare import Difference, compare_tables
from kquery_spark.verify.verify import Report, verify

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Difference", "Report", "compare_tables", "verify"]


class _Callable(ModuleType):
    """Importing this directory binds ``kquery_spark.verify`` to it, over the function: so it can be called."""

    def __call__(self, frame: DataFrame) -> Report:
        return verify(frame)


sys.modules[__name__].__class__ = _Callable
