"""OpenPlan: transformations without an input, to be applied to DataFrames later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from typing_extensions import Self

from kquery_spark.frontends.dataframe.builder import Builder
from kquery_spark.frontends.sql.ast import queries as q


@dataclass(frozen=True)
class OpenPlan(Builder):
    """A plan with an open input, called ``input`` in SQL. Call it with a Spark DataFrame to get the result as a DataFrame.

    So ``df.transform(plan)`` works. run: applies the plan in the session.
    """

    run: Callable[[OpenPlan, Any], Any] = field(repr=False, compare=False)

    def _with(self, query: q.Query) -> Self:
        return replace(self, query=query)

    def __call__(self, frame: Any) -> Any:
        """Apply to a Spark DataFrame, lazily."""
        return self.run(self, frame)
