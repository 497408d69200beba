"""The outer row of a subquery: resolves names in it, and records the values that the subquery reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kquery_spark.expr import Expr, Named
from kquery_spark.frontends.sql.analyzer.scope import ResolvedName, ResolvedRelation
from kquery_spark.frontends.sql.ast.queries import Query
from kquery_spark.frontends.unique_names import UniqueNames
from kquery_spark.logical.subqueries import OuterColumn

Lookup = Callable[[tuple[str, ...], int | None], ResolvedName | None]


@dataclass
class OuterRow:
    """Resolves names in the outer query with ``lookup``, and records each value that is read as an OuterColumn."""

    lookup: Lookup
    names: UniqueNames
    captured: dict[Expr, OuterColumn] = field(default_factory=dict)
    column_names: dict[str, str] = field(default_factory=dict)

    def find(self, parts: tuple[str, ...], position: int | None) -> ResolvedName | None:
        """Resolve a name of the outer query for the subquery; None for an unknown name."""
        resolved = self.lookup(parts, position)
        if resolved is None:
            return None
        return ResolvedName(self.value(resolved.value, resolved.column), resolved.column, resolved.fields)

    def value(self, value: Expr, column: str) -> OuterColumn:
        """The OuterColumn by which the subquery reads a value of the outer row. column: the name of the value's column."""
        if value not in self.captured:
            name = self.names.fresh(f"outer_{column}")
            self.captured[value] = OuterColumn(name, value.dtype, value.nullable)
            self.column_names[name] = column
        return self.captured[value]

    @property
    def captured_columns(self) -> tuple[Named, ...]:
        """The values that the subquery reads, in the form that a Subquery node stores."""
        return tuple(Named(value, column.name) for value, column in self.captured.items())


SubqueryAnalyzer = Callable[[Query, OuterRow], ResolvedRelation]
