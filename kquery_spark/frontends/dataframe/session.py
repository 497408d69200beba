"""Session: the methods of an ExecutionContext that its DataFrames use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from kquery_spark.frontends.sql.analyzer import Analyzed
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast.relations import Table


class Session(Protocol):
    """Resolves and runs the query of a DataFrame. ``kquery_spark/context/session.py`` implements it."""

    def bind(self, query: q.Query) -> q.Query:
        """Bind each table of the query to its current plan."""

    def analyze(self, query: q.Query) -> Analyzed:
        """Resolve names and types."""

    def to_arrow(self, analyzed: Analyzed) -> pa.Table:
        """Run a query and return an Arrow table."""

    def stream(self, analyzed: Analyzed) -> pa.RecordBatchReader:
        """Run a query and return its batches as they become available. Deleting the reader stops the query."""

    def to_spark(self, analyzed: Analyzed) -> Any:
        """Return a lazy Spark DataFrame of a query."""

    def explain(self, analyzed: Analyzed, trace: bool) -> str:
        """Return the plans and stages of a query as a string."""

    def to_substrait(self, analyzed: Analyzed) -> bytes:
        """Return a query as the bytes of a Substrait plan."""

    def to_text(self, analyzed: Analyzed, count: int) -> list[list[str]]:
        """Return the first rows, with every value formatted as in Spark's ``show``."""

    def fold_name(self, name: str) -> str:
        """Return the form of a column name that is compared: lower case, unless names are case-sensitive."""

    def table_of_rows(self, table: pa.Table, origins: Sequence[str]) -> Table:
        """Return rows in memory as a bound table that is not in the catalog. origins: the lineage of each column."""

    def register(self, name: str, analyzed: Analyzed) -> None:
        """Register a query as a table."""
