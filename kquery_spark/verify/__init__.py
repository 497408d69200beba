"""``kq.verify``: runs a query in Spark and in the engine, and compares the results."""

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
    """Makes this module callable.

    Importing the package ``kquery_spark.verify`` replaces the function of the same name in ``kquery_spark`` by this module.
    Because the module can be called, ``kq.verify(frame)`` works in both cases.
    """

    def __call__(self, frame: DataFrame) -> Report:
        return verify(frame)


sys.modules[__name__].__class__ = _Callable
