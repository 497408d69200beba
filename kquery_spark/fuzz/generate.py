"""Generates random cases: tables, a query over them, and engine settings that force a certain way of execution."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from kquery_spark.accelerate.api import When
from kquery_spark.fuzz.expressions import ORDERS, Expr, random_aggregate, random_expr, random_window
from kquery_spark.fuzz.kinds import COMPARED, NUMBERS
from kquery_spark.fuzz.queries import Derived, Item, JoinedTables, Query, Scan, Select, SetOperation, Source
from kquery_spark.fuzz.settings import LENIENT
from kquery_spark.fuzz.tables import FuzzTable, random_table

DEPTH = 3
_JOINS = ("INNER", "INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "CROSS")

_COMPARABLE = {*NUMBERS}
_SUBQUERIES = (
    "({{0}} IN (SELECT {column} FROM {table} WHERE {{1}}))",
    "({{0}} NOT IN (SELECT {column} FROM {table} WHERE {{1}}))",
    "EXISTS (SELECT 1 FROM {table} WHERE {column} = {mine} AND {{1}})",
    "(NOT EXISTS (SELECT 1 FROM {table} WHERE {column} <=> {mine} AND {{1}}))",
    "({{0}} >= (SELECT max({column}) FROM {table} WHERE {{1}}))",
    "({{0}} = (SELECT min({column}) FROM {table} WHERE {column} = {mine} AND {{1}}))",
    "((SELECT count(*) FROM {table} WHERE {column} = {mine} AND {{1}}) < 2)",
)
_WITH = ("({0} AND {1})", "({0} AND {1})", "({0} OR {1})")

_WORKERS = {"spark.kquery.smallBytes": "0", "spark.kquery.driverBytes": "0"}
SETTINGS: tuple[dict[str, str], ...] = (
    {},
    _WORKERS,
    _WORKERS | {"spark.kquery.broadcastBytes": "0"},
    _WORKERS | {"spark.kquery.broadcastBytes": "0", "spark.kquery.batchRows": "7"},
)
"""The session's own settings; several tasks and stages in workers; shuffled joins; tiny batches."""


@dataclass(frozen=True)
class Case:
    """Everything that one comparison needs. when: as for ``kquery_plan``."""

    tables: tuple[FuzzTable, ...]
    query: Query
    settings: dict[str, str] = field(default_factory=dict)
    when: When = "always"


class Generator:
    """Generates the cases of one seed. The same seed gives the same cases."""

    def __init__(self, seed: int | str, queries_per_tables: int = 12) -> None:
        self._rng = Random(seed)
        self._left = 0
        self._per = queries_per_tables
        self._tables: tuple[FuzzTable, ...] = ()
        self._names = 0

    def next(self) -> Case:
        """Return the next case. Several queries share their tables, because writing these takes time."""
        if not self._left:
            self._left = self._per
            self._tables = tuple(random_table(self._rng, name, name[0]) for name in ("a_t", "b_t", "c_t"))
        self._left -= 1
        settings = self._rng.choice(SETTINGS) | (LENIENT if self._rng.random() < 0.3 else {})
        query = self._set_operation() if self._rng.random() < 0.12 else self._select(DEPTH, top=True)
        return Case(self._tables, query, settings, "auto" if self._rng.random() < 0.15 else "always")

    def _fresh(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def _source(self, depth: int) -> tuple[Source, list[tuple[str, str]]]:
        roll = self._rng.random()
        if depth > 0 and roll < 0.2:
            inner = self._select(depth - 1, top=False)
            name = self._fresh("d")
            return Derived(inner, name), [(item.name, item.expr.kind) for item in inner.items]
        if depth > 0 and roll < 0.55:
            return self._join(depth)
        table = self._rng.choice(self._tables)
        return Scan(table.name), table.columns()

    def _join(self, depth: int) -> tuple[Source, list[tuple[str, str]]]:
        left_table, right_table = self._rng.sample(self._tables, 2)
        left: Source = Scan(left_table.name)
        columns, others = left_table.columns(), right_table.columns()
        kind = self._rng.choice(_JOINS)
        on = None if kind == "CROSS" else self._condition(columns, others, depth)
        joined = JoinedTables(left, Scan(right_table.name), kind, on)
        if kind in ("LEFT SEMI", "LEFT ANTI"):
            return joined, columns
        return joined, [*columns, *others]

    def _condition(self, left: list[tuple[str, str]], right: list[tuple[str, str]], depth: int) -> Expr:
        mixed = self._rng.random() < 0.15
        pairs = [
            (Expr(a, kind), Expr(b, other))
            for a, kind in left
            for b, other in right
            if kind == other or (mixed and {kind, other} <= _COMPARABLE)
        ]
        operator = "<=>" if self._rng.random() < 0.15 else "="
        equal = Expr(f"({{0}} {operator} {{1}})", "boolean", self._rng.choice(pairs))
        roll = self._rng.random()
        if roll < 0.65:
            return equal
        other = random_expr(self._rng, [*left, *right], "boolean", min(depth, 2))
        return Expr("({0} AND {1})", "boolean", (equal, other)) if roll < 0.95 else other

    def _select(self, depth: int, top: bool) -> Select:
        rng = self._rng
        source, columns = self._source(depth)
        where = random_expr(rng, columns, "boolean", depth) if rng.random() < 0.5 else None
        if depth > 0 and rng.random() < 0.25:
            where = self._subquery(columns, where)
        grouping = ""
        having = None
        if rng.random() < 0.45:
            items = self._grouped(columns, depth)
            if rng.random() < 0.2 and any(item.key for item in items):
                grouping = rng.choice(("ROLLUP", "CUBE"))
            if rng.random() < 0.15:
                having = Expr("({0} > 1)", "boolean", (Expr("count(*)", "bigint"),))
            distinct = False
        else:
            items = [self._item(columns, depth) for _ in range(rng.randint(1, 5))]
            distinct = rng.random() < 0.15
        select = Select(tuple(items), source, where, having, distinct, grouping=grouping)
        if rng.random() < (0.3 if top else 0.15):
            order = tuple(rng.choice(ORDERS) for _ in items)
            select = replace(select, order=order, limit=rng.choice((None, 0, 1, 5, 17)) if top else 5)
        return select

    def _item(self, columns: list[tuple[str, str]], depth: int) -> Item:
        rng = self._rng
        name, kind = rng.choice(columns)
        if rng.random() < 0.1:
            return Item(random_window(rng, columns, depth), self._fresh("x"))
        if rng.random() < 0.35:
            return Item(Expr(name, kind), self._fresh("x"))
        kind = rng.choice(COMPARED) if rng.random() < 0.4 else kind
        return Item(random_expr(rng, columns, kind, depth), self._fresh("x"))

    def _grouped(self, columns: list[tuple[str, str]], depth: int) -> list[Item]:
        rng = self._rng
        keys = []
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            name, kind = rng.choice(columns)
            expr = Expr(name, kind) if rng.random() < 0.7 else random_expr(rng, columns, kind, 1)
            # GROUP BY interprets an integer literal as the position of a column.
            if any(name in expr.sql() for name, _ in columns):
                keys.append(Item(expr, self._fresh("k"), key=True))
        calls = [
            Item(random_aggregate(rng, columns, min(depth, 2)), self._fresh("m"), call=True)
            for _ in range(rng.randint(1, 3))
        ]
        return [*keys, *calls]

    def _subquery(self, columns: list[tuple[str, str]], where: Expr | None) -> Expr | None:
        """Combine ``where`` with a condition that has a subquery over a table that the query itself does not read."""
        rng, names = self._rng, {name for name, _ in columns}
        others = [table for table in self._tables if table.data.column_names[0] not in names]
        pairs = [
            (table, (name, kind), (mine, kind))
            for table in others
            for name, kind in table.columns()
            for mine, its in columns
            if kind == its
        ]
        if not pairs:
            return where
        table, (name, kind), (mine, _) = rng.choice(pairs)
        inner = random_expr(rng, table.columns(), "boolean", 1)
        at_hand = random_expr(rng, columns, kind, 1)
        form = rng.choice(_SUBQUERIES).format(table=table.name, column=name, mine=mine)
        condition = Expr(form, "boolean", (at_hand, inner))
        return condition if where is None else Expr(rng.choice(_WITH), "boolean", (where, condition))

    def _set_operation(self) -> SetOperation:
        rng = self._rng
        left, right = (rng.choice(self._tables) for _ in range(2))
        kinds = [rng.choice(left.columns())[1] for _ in range(rng.randint(1, 3))]
        names = [self._fresh("u") for _ in kinds]
        sides = []
        for table in (left, right):
            items = tuple(
                Item(random_expr(rng, table.columns(), kind, 1), name)
                for kind, name in zip(kinds, names, strict=True)
            )
            sides.append(Select(items, Scan(table.name)))
        return SetOperation(
            sides[0], sides[1], rng.choice(("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT"))
        )
