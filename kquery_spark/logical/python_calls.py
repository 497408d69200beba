"""The calls of Python UDFs that one node makes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from kquery_spark.errors import PlanError


@dataclass(frozen=True)
class PythonCalls:
    """The Python calls of one node.

    results: the columns that the calls return. shown: how ``explain`` prints each call. code: the pickled function that
    evaluates the calls; it receives the arguments in batches of at most ``batch_rows`` rows (0: no limit). broadcasts: ids
    of the broadcast variables that Spark has to deliver to the tasks.
    """

    results: pa.Schema
    shown: tuple[str, ...]
    code: bytes = field(repr=False)
    batch_rows: int
    broadcasts: tuple[int, ...] = ()

    @property
    def columns(self) -> pa.Schema:
        """The results, if each call returns exactly one column; otherwise raises PlanError."""
        if len(self.shown) != len(self.results):
            raise PlanError(
                f"{len(self.shown)} function(s) return {len(self.results)} column(s); each has to return one"
            )
        return self.results

    @property
    def with_names(self) -> str:
        """The calls as ``f(#x) AS y, ...``; each has to return one column."""
        return ", ".join(
            f"{call} AS {name}" for call, name in zip(self.shown, self.results.names, strict=True)
        )

    def __str__(self) -> str:
        return ", ".join(self.shown)
