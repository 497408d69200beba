"""Queries as trees: what is generated, printed as SQL, and shrunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kquery_spark.fuzz.expressions import Expr


@dataclass(frozen=True)
class Scan:
    """A table."""

    table: str

    def sql(self) -> str:
        """Its name."""
        return self.table

    def smaller(self) -> Iterator[Source]:
        """Nothing is smaller."""
        return iter(())


@dataclass(frozen=True)
class Joined:
    """Two sources side by side. ``kind`` is SQL's: INNER, LEFT, ..., LEFT SEMI, CROSS."""

    left: Source
    right: Source
    kind: str
    on: Expr | None

    def sql(self) -> str:
        """``left KIND JOIN right ON condition``."""
        condition = "" if self.on is None else f" ON {self.on.sql()}"
        return f"{self.left.sql()} {self.kind} JOIN {self.right.sql()}{condition}"

    def smaller(self) -> Iterator[Source]:
        """One side, smaller sides, a smaller condition."""
        yield self.left
        yield self.right
        yield from (replace(self, left=less) for less in self.left.smaller())
        yield from (replace(self, right=less) for less in self.right.smaller())
        if self.on is not None:
            yield from (replace(self, on=less) for less in self.on.smaller())


@dataclass(frozen=True)
class Derived:
    """A query in parentheses."""

    query: Query
    name: str

    def sql(self) -> str:
        """``(query) AS name``."""
        return f"({self.query.sql()}) AS {self.name}"

    def smaller(self) -> Iterator[Source]:
        """What the query reads, then the query with less in it."""
        if isinstance(self.query, Select):
            yield self.query.source
        yield from (replace(self, query=less) for less in self.query.smaller())


@dataclass(frozen=True)
class Item:
    """A column of a result with its name; ``key``: it is a group key, ``call``: an aggregate."""

    expr: Expr
    name: str
    key: bool = False
    call: bool = False


@dataclass(frozen=True)
class Select:
    """One SELECT. ``order``: by all columns, in these directions, so that a LIMIT has one right answer.

    ``grouping``: ROLLUP or CUBE of the keys, or nothing.
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
        """The SQL on one line."""
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
        """Without a clause, without a column, over less, with smaller expressions."""
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
                # an aggregate that shrank to its argument would no longer be one
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
        """Both in parentheses, with the word between."""
        return f"({self.left.sql()}) {self.word} ({self.right.sql()})"

    def smaller(self) -> Iterator[Query]:
        """One side, or both without a column, or one side smaller."""
        yield self.left
        yield self.right
        if len(self.left.items) > 1:
            for index in range(len(self.left.items)):
                yield replace(self, left=_without(self.left, index), right=_without(self.right, index))
        for less in self.left.smaller():
            if isinstance(less, Select):
                yield replace(self, left=less)
        for less in self.right.smaller():
            if isinstance(less, Select):
                yield replace(self, right=less)


def _without(select: Select, index: int) -> Select:
    order = select.order[:index] + select.order[index + 1 :]
    return replace(select, items=select.items[:index] + select.items[index + 1 :], order=order)


Source = Scan | Joined | Derived
Query = Select | SetOperation
