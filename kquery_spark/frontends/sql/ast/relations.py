"""Relations of FROM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.ast.expressions import Expression
from kquery_spark.frontends.sql.ast.node import Node

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.ast.queries import Query


@dataclass(frozen=True)
class TableAlias(Node):
    """``AS name (columns)``."""

    name: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Relation(Node):
    """Base of everything that yields rows inside FROM."""


@dataclass(frozen=True)
class Table(Relation):
    """A table, view or CTE by its (multi-part) name.

    bound: the plan that the name referred to when a DataFrame was created; None if the analyzer must look up the name.
    """

    name: tuple[str, ...]
    alias: TableAlias | None = None
    bound: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Derived(Relation):
    """``(SELECT ...) alias``."""

    query: Query
    alias: TableAlias | None = None


@dataclass(frozen=True)
class Values(Relation):
    """``VALUES (1, 'a'), (2, 'b') AS t(x, y)``, also a query of its own; a row is a tuple of expressions."""

    rows: tuple[tuple[Expression, ...], ...]
    alias: TableAlias | None = None


@dataclass(frozen=True)
class TableFunction(Relation):
    """``range(10) AS r(x)``."""

    name: tuple[str, ...]
    arguments: tuple[Expression, ...]
    alias: TableAlias | None = None


@dataclass(frozen=True)
class Sampled(Relation):
    """``relation TABLESAMPLE (size ROWS | PERCENT) alias``; the relation itself has no alias."""

    relation: Relation
    size: Expression
    unit: str
    alias: TableAlias | None = None


@dataclass(frozen=True)
class Pivot(Relation):
    """``relation PIVOT (aggregates FOR columns IN (values)) alias``: a column for each value and aggregate.

    With several pivot columns, each value is a Row. Values and aggregates can have aliases (Aliased).
    """

    relation: Relation
    aggregates: tuple[Expression, ...]
    columns: tuple[str, ...]
    values: tuple[Expression, ...]
    alias: str | None = None


@dataclass(frozen=True)
class UnpivotColumns(Node):
    """``(a, b) AS name`` of UNPIVOT: the columns whose values make one row."""

    columns: tuple[tuple[str, ...], ...]
    alias: str | None = None


@dataclass(frozen=True)
class Unpivot(Relation):
    """``relation UNPIVOT (values FOR name IN (columns)) alias``: a row for each of the columns.

    values: the names of the output columns for the values. name: the output column for the names. columns: the input
    columns of each output row, as many as there are ``values``.
    """

    relation: Relation
    values: tuple[str, ...]
    name: str
    columns: tuple[UnpivotColumns, ...]
    keeps_nulls: bool = False
    alias: str | None = None


@dataclass(frozen=True)
class Renamed(Relation):
    """``(a JOIN b ON ...) alias``: a parenthesised relation under one new name."""

    relation: Relation
    alias: TableAlias


@dataclass(frozen=True)
class Lateral(Relation):
    """``LATERAL relation``: the relation can refer to columns of the relations to its left."""

    relation: Relation


@dataclass(frozen=True)
class Join(Relation):
    """Two relations side by side; a comma is an INNER join without a condition, as in Spark.

    ``kind`` is INNER, LEFT, RIGHT, FULL, LEFT SEMI, LEFT ANTI or CROSS. At most one of ``condition``,
    ``using`` and ``natural`` is given.
    """

    left: Relation
    right: Relation
    kind: str = "INNER"
    condition: Expression | None = None
    using: tuple[str, ...] = ()
    natural: bool = False


@dataclass(frozen=True)
class LateralView(Node):
    """``LATERAL VIEW [OUTER] explode(x) alias AS columns``."""

    function: tuple[str, ...]
    arguments: tuple[Expression, ...]
    alias: str
    columns: tuple[str, ...] = ()
    outer: bool = False
