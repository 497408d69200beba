"""Queries: SELECT, set operations and what is wrapped around them."""

from __future__ import annotations

from dataclasses import dataclass

from kquery_spark.frontends.sql.ast.expressions import Expression, SortItem
from kquery_spark.frontends.sql.ast.node import Node
from kquery_spark.frontends.sql.ast.relations import LateralView, Relation, Values
from kquery_spark.frontends.sql.ast.windows import Window


@dataclass(frozen=True)
class Hint(Node):
    """One hint of ``/*+ BROADCAST(t) */``: a name and its arguments."""

    name: str
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class NamedWindow(Node):
    """``WINDOW name AS window``."""

    name: str
    window: Window


@dataclass(frozen=True)
class Rollup(Node):
    """``ROLLUP (a, (b, c))`` or ``GROUP BY a, b WITH ROLLUP``: every element is a tuple of expressions."""

    sets: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True)
class Cube(Node):
    """``CUBE (a, (b, c))`` or ``GROUP BY a, b WITH CUBE``."""

    sets: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True)
class GroupingSet(Node):
    """One set inside GROUPING SETS: ``(a, b)``, ``a`` or ``()``."""

    expressions: tuple[Expression, ...]


@dataclass(frozen=True)
class GroupingSets(Node):
    """``GROUPING SETS (...)``; elements may be ROLLUP, CUBE and GROUPING SETS again."""

    elements: tuple[GroupingSet | Rollup | Cube | GroupingSets, ...]


GroupingElement = Expression | Rollup | Cube | GroupingSets


@dataclass(frozen=True)
class GroupBy(Node):
    """``GROUP BY elements``. The grouping sets of the query are the cross product of those of its elements.

    Nothing is resolved yet: ``GROUP BY 1`` has an IntegerLiteral, ``GROUP BY ALL`` a Name. sets_of: the grouping sets
    in the older syntax ``GROUP BY a, b GROUPING SETS ((a), b)``, in which ``elements`` lists the expressions a and b.
    If ``elements`` is empty, which only DataFrames produce, all rows form one group.
    """

    elements: tuple[GroupingElement, ...]
    sets_of: tuple[GroupingSet, ...] | None = None


@dataclass(frozen=True)
class Select(Node):
    """``SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ... QUALIFY ... WINDOW ...``."""

    items: tuple[Expression, ...]
    relation: Relation | None = None
    lateral_views: tuple[LateralView, ...] = ()
    where: Expression | None = None
    group_by: GroupBy | None = None
    having: Expression | None = None
    qualify: Expression | None = None
    windows: tuple[NamedWindow, ...] = ()
    distinct: bool = False
    hints: tuple[Hint, ...] = ()


@dataclass(frozen=True)
class SetQuery(Node):
    """``left UNION | INTERSECT | EXCEPT [ALL] right``; MINUS is EXCEPT."""

    op: str
    left: QueryBody
    right: QueryBody
    all: bool = False


@dataclass(frozen=True)
class CommonTable(Node):
    """``name (columns) MAX RECURSION LEVEL max_rounds AS (query)`` of WITH."""

    name: str
    query: Query
    columns: tuple[str, ...] = ()
    max_rounds: int | None = None


@dataclass(frozen=True)
class Query(Node):
    """A body with WITH (``recursive``: WITH RECURSIVE) before it and ORDER BY, WINDOW, LIMIT and OFFSET after it.

    ``LIMIT ALL`` is the same as no limit. Parentheses around a body without any of these clauses are dropped. Around a
    body with such clauses, they make a Query the body of another Query: ``(SELECT 1 LIMIT 3) LIMIT 1``.
    """

    body: QueryBody
    ctes: tuple[CommonTable, ...] = ()
    order_by: tuple[SortItem, ...] = ()
    windows: tuple[NamedWindow, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None
    recursive: bool = False


QueryBody = Select | SetQuery | Values | Query
