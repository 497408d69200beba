"""The calls of Python functions of Spark's users that a node makes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from kquery_spark.errors import PlanError


@dataclass(frozen=True)
class PythonCalls:
    """The calls of one node. results: the columns that they return. shown: each call in words.

    code: the pickled evaluation, which gets arguments in batches of at most ``batch_rows`` rows (0: any number).
    broadcasts: ids of the broadcast variables that Spark has to deliver to the tasks.
    """

    results: pa.Schema
    shown: tuple[str, ...]
    code: bytes = field(repr=False)
    batch_rows: int
    broadcasts: tuple[int, ...] = ()

    @property
    def columns(self) -> pa.Schema:
        """The results, if each call returns one column; PlanError otherwise."""
        if len(self.shown) != len(self.results):
            raise PlanError(f"{len(self.shown)} function(s) do not give {len(self.results)} column(s)")
        return self.results

    @property
    def with_names(self) -> str:
        """``f(#x) AS y, ...``, if each call returns one column."""
        return ", ".join(
            f"{call} AS {name}" for call, name in zip(self.shown, self.results.names, strict=True)
        )

    def __str__(self) -> str:
        return ", ".join(self.shown)
