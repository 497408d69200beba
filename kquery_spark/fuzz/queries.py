"""Queries as trees, which are generated, printed as SQL, and shrunk.

``smaller`` yields similar trees with less in them. Shrinking takes the first one that still fails and repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kquery_spark.fuzz.expressions import Expr


@dataclass(frozen=True)
class Scan:
    """A table."""

    table: str

    def sql(self) -> str:
        """Return the name of the table."""
        return self.table

    def smaller(self) -> Iterator[Source]:
        """Yield nothing: a table cannot become smaller."""
        return iter(())


@dataclass(frozen=True)
class JoinedTables:
    """A join of two sources. kind: in SQL, such as INNER, LEFT, LEFT SEMI or CROSS."""

    left: Source
    right: Source
    kind: str
    on: Expr | None

    def sql(self) -> str:
        """Return ``left KIND JOIN right ON condition``."""
        condition = "" if self.on is None else f" ON {self.on.sql()}"
        return f"{self.left.sql()} {self.kind} JOIN {self.right.sql()}{condition}"

    def smaller(self) -> Iterator[Source]:
        """Yield one of the sides, then joins with a smaller side, then joins with a smaller condition."""
        yield self.left
        yield self.right
        yield from (replace(self, left=less) for less in self.left.smaller())
        yield from (replace(self, right=less) for less in self.right.smaller())
        if self.on is not None:
            yield from (replace(self, on=less) for less in self.on.smaller())


@dataclass(frozen=True)
class Derived:
    """A derived table: a query in parentheses with a name."""

    query: Query
    name: str

    def sql(self) -> str:
        """Return ``(query) AS name``."""
        return f"({self.query.sql()}) AS {self.name}"

    def smaller(self) -> Iterator[Source]:
        """Yield the source of the query, then derived tables with a smaller query."""
        if isinstance(self.query, Select):
            yield self.query.source
        yield from (replace(self, query=less) for less in self.query.smaller())


@dataclass(frozen=True)
class Item:
    """A column of a result with its name. key: True for a grouping key. call: True for an aggregate."""

    expr: Expr
    name: str
    key: bool = False
    call: bool = False


@dataclass(frozen=True)
class Select:
    """One SELECT. order: the direction of each column in ORDER BY, which has all columns, so a LIMIT is deterministic.

    grouping: ROLLUP, CUBE, or an empty string.
    """

    items: tuple[Item, ...]
    source: Source
    where: Expr | None = None
    having: Expr | None = None
    distinct: bool = False
    order: tuple[str, ...] = ()
    limit: int | None = None
    grouping: str = ""

    def sql(self) -> str:
        """Return the SQL on one line."""
        parts = ["SELECT " + ("DISTINCT " if self.distinct else "")]
        parts.append(", ".join(f"{item.expr.sql()} AS {item.name}" for item in self.items))
        parts.append(f" FROM {self.source.sql()}")
        if self.where is not None:
            parts.append(f" WHERE {self.where.sql()}")
        keys = [item.expr.sql() for item in self.items if item.key]
        if keys:
            parts.append(
                f" GROUP BY {self.grouping}({', '.join(keys)})"
                if self.grouping
                else f" GROUP BY {', '.join(keys)}"
            )
        if self.having is not None:
            parts.append(f" HAVING {self.having.sql()}")
        if self.order:
            keys = [f"{item.name}{how}" for item, how in zip(self.items, self.order, strict=True)]
            parts.append(f" ORDER BY {', '.join(keys)}")
        if self.limit is not None:
            parts.append(f" LIMIT {self.limit}")
        return "".join(parts)

    def smaller(self) -> Iterator[Query]:
        """Yield queries without a clause, without a column, over a smaller source, and with smaller expressions."""
        if isinstance(self.source, Derived):
            yield self.source.query
        if self.limit is not None:
            yield replace(self, limit=None)
        elif self.order:
            yield replace(self, order=())
        if self.distinct:
            yield replace(self, distinct=False)
        if self.grouping:
            yield replace(self, grouping="")
        if self.having is not None:
            yield replace(self, having=None)
        if self.where is not None:
            yield replace(self, where=None)
        for index in range(len(self.items) if len(self.items) > 1 else 0):
            order = self.order[:index] + self.order[index + 1 :]
            yield replace(self, items=self.items[:index] + self.items[index + 1 :], order=order)
        yield from (replace(self, source=less) for less in self.source.smaller())
        if self.where is not None:
            yield from (replace(self, where=less) for less in self.where.smaller())
        if self.having is not None:
            yield from (replace(self, having=less) for less in self.having.smaller())
        for index, item in enumerate(self.items):
            for less in item.expr.smaller():
                # An aggregate must not shrink to its argument, which would not be an aggregate any more.
                if item.call and "(" not in less.text:
                    continue
                items = (*self.items[:index], replace(item, expr=less), *self.items[index + 1 :])
                yield replace(self, items=items)


@dataclass(frozen=True)
class SetOperation:
    """UNION ALL, UNION, INTERSECT or EXCEPT of two queries with the same columns."""

    left: Select
    right: Select
    word: str

    def sql(self) -> str:
        """Return both queries in parentheses with the operator between them."""
        return f"({self.left.sql()}) {self.word} ({self.right.sql()})"

    def smaller(self) -> Iterator[Query]:
        """Yield one of the sides, then both sides without a column, then operations with a smaller side."""
        yield self.left
        yield self.right
        if len(self.left.items) > 1:
            for index in range(len(self.left.items)):
                yield replace(self, left=_drop_item(self.left, index), right=_drop_item(self.right, index))
        for less in self.left.smaller():
            if isinstance(less, Select):
                yield replace(self, left=less)
        for less in self.right.smaller():
            if isinstance(less, Select):
                yield replace(self, right=less)


def _drop_item(select: Select, index: int) -> Select:
    order = select.order[:index] + select.order[index + 1 :]
    return replace(select, items=select.items[:index] + select.items[index + 1 :], order=order)


Source = Scan | JoinedTables | Derived
Query = Select | SetOperation
