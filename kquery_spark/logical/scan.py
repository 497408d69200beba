"""Reads columns of a source."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, columns_of
from kquery_spark.logical.plan import LogicalPlan, walk_plan
from kquery_spark.sources.base import Source


@dataclass(frozen=True)
class Scan(LogicalPlan):
    """Reads the columns of ``projection`` (None: all; (): no columns, only the number of rows) that pass the ``filters``.

    ``filters`` are conditions that were pushed into the scan; they can read columns that the projection does not output.
    ``files_pruned`` is the number of files of the table that partition pruning removed from the source. ``cached`` is true
    if Spark also has the rows in its cache.
    """

    table: str
    source: Source
    projection: tuple[str, ...] | None = None
    filters: tuple[Expr, ...] = ()
    files_pruned: int = 0
    cached: bool = False

    is_row_wise: ClassVar[bool] = True

    @override
    def derive_schema(self) -> pa.Schema:
        full = self.source.schema
        if self.projection is None:
            return full
        return pa.schema([full.field(name) for name in self.projection])

    @override
    def validate(self) -> None:
        known = set(self.source.schema.names)
        for name in [*(self.projection or ()), *sorted(columns_of(*self.filters))]:
            if name not in known:
                raise PlanError(
                    f"unknown column {name} in {self.table}; the columns are {', '.join(self.source.schema.names)}"
                )

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return self.filters

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        return replace(self, filters=tuple(rule(f) for f in self.filters)) if self.filters else self

    @override
    def prune_columns(self, needed: Set[str]) -> LogicalPlan:
        return replace(self, projection=tuple(name for name in self.schema.names if name in needed))

    @override
    def label(self) -> str:
        shown = "None" if self.projection is None else f"[{', '.join(self.projection)}]"
        text = f"Scan: {self.table}; projection={shown}"
        if self.filters:
            text += f"; filters=[{', '.join(map(str, self.filters))}]"
        if self.files_pruned:
            text += f"; files pruned={self.files_pruned}"
        return f"{text}; rows that Spark caches" if self.cached else text


def check_scans(plan: LogicalPlan) -> None:
    """Raise if a scan of the plan would fail on the columns that it reads, or if it would read what Spark rejects."""
    for node in walk_plan(plan):
        if isinstance(node, Scan):
            columns = dict.fromkeys([*node.schema.names, *sorted(columns_of(*node.filters))])
            node.source.check_files(list(columns))
