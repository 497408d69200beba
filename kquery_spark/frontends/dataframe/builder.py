"""The transformations that DataFrame and OpenPlan share. Each method returns a new query with a larger syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from typing_extensions import Self

from kquery_spark.errors import PlanError, type_name
from kquery_spark.frontends.dataframe.column import (
    Column,
    SortOrder,
    call,
    expr,
    flat,
    lit,
    sort_items,
    to_column,
)
from kquery_spark.frontends.sql.analyzer import Analyzed
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast import relations as rel

_HOW = {
    "inner": "INNER",
    "cross": "CROSS",
    "left": "LEFT",
    "leftouter": "LEFT",
    "right": "RIGHT",
    "rightouter": "RIGHT",
    "full": "FULL",
    "outer": "FULL",
    "fullouter": "FULL",
    "semi": "LEFT SEMI",
    "leftsemi": "LEFT SEMI",
    "anti": "LEFT ANTI",
    "leftanti": "LEFT ANTI",
}


def table_query(table: rel.Table) -> q.Query:
    """``SELECT * FROM table``."""
    return _select((ast.Star(),), table)


def resolved_query(analyzed: Analyzed) -> q.Query:
    """A query that returns the rows of a resolved one, under its names."""
    # The alias renames columns by their position: references by name could be ambiguous, if names differ only in case.
    alias = rel.TableAlias("plan", analyzed.names)
    return _select((ast.Star(),), rel.Table(("plan",), alias, bound=analyzed.plan))


def _select(items: tuple[ast.Expression, ...], relation: rel.Relation, **clauses: Any) -> q.Query:
    return q.Query(q.Select(items, relation, **clauses))


F = TypeVar("F", bound="Builder")


@dataclass(frozen=True)
class Builder:
    """The transformations, over a syntax tree; ``_with`` of a subclass wraps the new tree."""

    query: q.Query

    def _with(self, query: q.Query) -> Self:
        raise NotImplementedError

    # --- rows -----------------------------------------------------------------------------------------

    def filter(self, condition: Column | str) -> Self:
        """Return the rows for which the condition (a Column or an SQL string) is true."""
        if not isinstance(condition, Column | str):
            raise PlanError(
                f"filter() takes a Column of kquery_spark or a SQL string, not {type_name(condition)}"
            )
        node = (expr(condition) if isinstance(condition, str) else condition).node
        core = self._select_to_extend()
        where = node if core.where is None else ast.And((core.where, node))
        return self._with(q.Query(replace(core, where=where)))

    where = filter

    def limit(self, count: int) -> Self:
        """Return at most ``count`` rows."""
        base = self.query if self.query.limit is None else self._nested()
        return self._with(replace(base, limit=lit(count).node))

    def offset(self, count: int) -> Self:
        """Skip the first ``count`` rows."""
        return self._with(replace(self._unlimited(), offset=lit(count).node))

    def sort(self, *keys: Column | SortOrder | str, ascending: bool | Sequence[bool] = True) -> Self:
        """Sort the rows; NULLs are first in ascending and last in descending order, unless a key specifies otherwise."""
        items = sort_items(flat(keys))
        if not items:
            raise PlanError("sort() needs a column")
        flags = [bool(ascending)] * len(items) if isinstance(ascending, int) else list(ascending)
        if len(flags) != len(items):
            raise PlanError(f"ascending has {len(flags)} values for {len(items)} sort keys")
        if any(not up and isinstance(k, SortOrder) for k, up in zip(flat(keys), flags, strict=True)):
            raise PlanError(
                "a sort key with an order of its own, such as desc(), goes with ascending=True only"
            )
        items = tuple(i if up else _descending(i) for i, up in zip(items, flags, strict=True))
        return self._with(replace(self._unlimited(), order_by=items))

    orderBy = sort

    def transform(self, function: Callable[..., Self], *args: Any, **kwargs: Any) -> Self:
        """Return ``function(self, ...)``, for method chains."""
        return function(self, *args, **kwargs)

    def distinct(self) -> Self:
        """Remove duplicate rows."""
        return self._with(_select((ast.Star(),), self._relation(), distinct=True))

    # --- columns --------------------------------------------------------------------------------------

    def select(self, *columns: Column | str) -> Self:
        """Select columns."""
        items = tuple(to_column(c).node for c in flat(columns))
        if not items:
            raise PlanError("select() needs a column")
        return self._with(q.Query(replace(self._select_to_extend(), items=items)))

    def selectExpr(self, *strings: str) -> Self:
        """Select columns that are written in SQL."""
        return self.select(*(expr(text) for text in flat(strings)))

    def drop(self, *columns: Column | str) -> Self:
        """Remove columns."""
        return self._excluding_columns(tuple((c,) if isinstance(c, str) else path_of(c) for c in columns))

    def _excluding_columns(self, paths: tuple[tuple[str, ...], ...]) -> Self:
        star = ast.Star(excluded=paths)
        return self._with(q.Query(replace(self._select_to_extend(), items=(star,))))

    # --- groups ---------------------------------------------------------------------------------------

    def aggregate(self, keys: Sequence[Column | str], aggregates: Sequence[Column]) -> Self:
        """Return one row per group: the keys, then the aggregates. Without keys, all rows are one group."""
        return self._grouped(keys, aggregates, "GROUP BY")

    def _grouped(self, keys: Sequence[Column | str], aggregates: Sequence[Column], kind: str) -> Self:
        nodes = tuple(to_column(k).node for k in keys)
        bare = tuple(n.expression if isinstance(n, ast.Aliased) else n for n in nodes)
        items = (*nodes, *(a.node for a in aggregates))
        if not items:
            raise PlanError("an aggregation needs a key or an aggregate")
        elements: tuple[q.GroupingElement, ...] = bare
        if kind != "GROUP BY":
            sets = tuple((n,) for n in bare)
            elements = (q.Rollup(sets) if kind == "ROLLUP" else q.Cube(sets),)
        return self._with(
            q.Query(replace(self._select_to_extend(), items=items, group_by=q.GroupBy(elements)))
        )

    def groupBy(self, *keys: Column | str) -> GroupedData[Self]:
        """Group the rows by keys, for ``agg``."""
        return GroupedData(self, flat(keys))

    groupby = groupBy

    def rollup(self, *keys: Column | str) -> GroupedData[Self]:
        """Group by all keys, by all but the last one, and so on, down to one group of all rows."""
        return GroupedData(self, flat(keys), "ROLLUP")

    def cube(self, *keys: Column | str) -> GroupedData[Self]:
        """Group by all combinations of the keys."""
        return GroupedData(self, flat(keys), "CUBE")

    def agg(self, *aggregates: Column | Mapping[str, str]) -> Self:
        """Aggregate all rows to one row; a dict has the form ``{"salary": "max"}``."""
        return self.aggregate([], aggregate_columns(aggregates))

    def count_rows(self) -> Self:
        """Return one row with the number of rows."""
        return self.agg(Column(ast.Call(("count",), (ast.Star(),))).alias("count"))

    # --- with others ------------------------------------------------------------------------------------

    def alias(self, name: str) -> Self:
        """Return the same rows, with columns that can be referred to as ``name.column``."""
        return self._with(_select((ast.Star(),), rel.Derived(self.query, rel.TableAlias(name))))

    def join(
        self, other: Self, on: Column | str | Sequence[Any] | None = None, how: str | None = "inner"
    ) -> Self:
        """Join two queries. on: conditions, or names of columns of both sides, which are returned only once."""
        if not isinstance(other, Builder):
            raise PlanError(f"join() takes another DataFrame first, not {type_name(other)}")
        kind = _HOW.get((how or "inner").lower().replace("_", ""))
        if kind is None:
            raise PlanError(f"unknown join {how!r}; the joins are {', '.join(_HOW)}")
        condition, using = _join_condition(on)
        joined = rel.Join(self._relation(), other._relation(), kind, condition, using)
        return self._with(_select((ast.Star(),), joined))

    def crossJoin(self, other: Self) -> Self:
        """Return all pairs of rows."""
        return self.join(other, how="cross")

    def union(self, other: Self) -> Self:
        """Return all rows of both queries; columns are matched by position."""
        return self._set("UNION", other, True)

    unionAll = union

    def intersect(self, other: Self) -> Self:
        """Return the rows that are in both queries, without duplicates."""
        return self._set("INTERSECT", other, False)

    def intersectAll(self, other: Self) -> Self:
        """Return the rows that are in both queries, as often as in the query with fewer copies."""
        return self._set("INTERSECT", other, True)

    def subtract(self, other: Self) -> Self:
        """Return the rows that are not in the other query, without duplicates."""
        return self._set("EXCEPT", other, False)

    def exceptAll(self, other: Self) -> Self:
        """Subtract the rows of the other query; a row that occurs m and n times is returned max(m - n, 0) times."""
        return self._set("EXCEPT", other, True)

    def _set(self, op: str, other: Self, keep_all: bool) -> Self:
        return self._with(q.Query(q.SetQuery(op, self._body(), other._body(), keep_all)))

    def _numeric_columns(self) -> list[str]:
        raise PlanError("pass the column names: the columns of an open input are not known yet")

    # --- syntax -----------------------------------------------------------------------------------------

    def _select_to_extend(self) -> q.Select:
        """Return a SELECT of all columns to add a clause to: the query's own SELECT if it has no later clause."""
        body = self.query.body
        only_body = self.query == q.Query(body)
        if only_body and isinstance(body, q.Select) and body == replace(body, **_BARE):
            return body
        return q.Select((ast.Star(),), rel.Derived(self.query))

    def _relation(self) -> rel.Relation:
        """The query as a relation in FROM; ``SELECT * FROM x`` becomes x itself, which retains x's qualifiers."""
        core = self._select_to_extend()
        if core.where is None and core.relation is not None:
            return core.relation
        return rel.Derived(self.query)

    def _body(self) -> q.QueryBody:
        return self.query.body if self.query == q.Query(self.query.body) else self.query

    def _unlimited(self) -> q.Query:
        """Return the query to add ORDER BY or OFFSET to: this one if it has no LIMIT and OFFSET, which come later."""
        has_limit = self.query.limit is not None or self.query.offset is not None
        return self._nested() if has_limit else self.query

    def _nested(self) -> q.Query:
        return _select((ast.Star(),), rel.Derived(self.query))


_BARE: dict[str, Any] = {
    "items": (ast.Star(),),
    "lateral_views": (),
    "group_by": None,
    "having": None,
    "qualify": None,
    "windows": (),
    "distinct": False,
    "hints": (),
}


@dataclass(frozen=True)
class GroupedData(Generic[F]):
    """Rows grouped by ``groupBy``, ``rollup`` or ``cube``, to be aggregated."""

    frame: F
    keys: tuple[Column | str, ...]
    kind: str = "GROUP BY"

    def agg(self, *aggregates: Column | Mapping[str, str]) -> F:
        """Return the keys, then the aggregates; a dict has the form ``{"salary": "max"}``."""
        return self.frame._grouped(self.keys, aggregate_columns(aggregates), self.kind)

    def count(self) -> F:
        """Return the keys and the number of rows in a column ``count``."""
        return self.agg(Column(ast.Call(("count",), (ast.Star(),))).alias("count"))

    def max(self, *columns: str) -> F:
        """The largest value of each column; without names, of all numeric ones."""
        return self._aggregate_columns("max", columns)

    def min(self, *columns: str) -> F:
        """The smallest value of each column; without names, of all numeric ones."""
        return self._aggregate_columns("min", columns)

    def sum(self, *columns: str) -> F:
        """The sum of each column; without names, of all numeric ones."""
        return self._aggregate_columns("sum", columns)

    def avg(self, *columns: str) -> F:
        """The mean of each column; without names, of all numeric ones."""
        return self._aggregate_columns("avg", columns)

    mean = avg

    def _aggregate_columns(self, function: str, columns: tuple[str, ...]) -> F:
        names = columns or self.frame._numeric_columns()
        return self.agg(*(call(function, to_column(n)) for n in names))


def _join_condition(
    on: Column | str | Sequence[Any] | None,
) -> tuple[ast.Expression | None, tuple[str, ...]]:
    """The condition of a join, or the names of its USING."""
    if not (on is None or isinstance(on, Column | str | list | tuple)):
        raise PlanError(f"a join takes conditions or names of columns, not {type_name(on)}")
    terms = () if on is None else (on,) if isinstance(on, Column | str) else tuple(on)
    for term in terms:
        if not isinstance(term, Column | str):
            raise PlanError(f"a join takes conditions or names of columns, not {type_name(term)}")
    conditions = [c.node for c in terms if isinstance(c, Column)]
    if not conditions:
        return None, tuple(terms)
    if len(conditions) < len(terms):
        raise PlanError("a join takes conditions or names of columns, not both")
    return conditions[0] if len(conditions) == 1 else ast.And(tuple(conditions)), ()


def aggregate_columns(given: Sequence[Column | Mapping[str, str]]) -> list[Column]:
    """The aggregates as columns, given as columns, or as one dict from column names to function names."""
    aggregates = []
    for item in given:
        if isinstance(item, Column):
            aggregates.append(item)
        elif isinstance(item, Mapping):
            aggregates += [call(f, Column(ast.Star()) if n == "*" else to_column(n)) for n, f in item.items()]
        else:
            raise PlanError(f"agg() takes columns or a dict of names and functions, not {type_name(item)}")
    return aggregates


def _descending(item: ast.SortItem) -> ast.SortItem:
    return replace(item, ascending=False, nulls_first=False)


def path_of(column: Column) -> tuple[str, ...]:
    """Return the parts of a column's name; raises PlanError if the column is another expression."""
    if not isinstance(column.node, ast.Name):
        raise PlanError(f"only columns can be dropped, not {column}")
    return column.node.parts
