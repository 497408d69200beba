"""DataFrame: a query under construction, method by method; nothing runs before an action."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.frontends.dataframe.column import Column, SortOrder, expr, lit, sort_items, to_column
from kquery_spark.frontends.sql.analyzer import Analyzed
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast import relations as rel
from kquery_spark.logical import LogicalPlan, format_plan

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


class Executor(Protocol):
    """Who resolves and runs a DataFrame's query; the session provides it."""

    def analyze(self, query: q.Query) -> Analyzed:
        """Resolve names and types."""

    def to_arrow(self, analyzed: Analyzed) -> pa.Table:
        """Run."""

    def to_spark(self, analyzed: Analyzed) -> Any:
        """As a Spark DataFrame."""

    def explain(self, analyzed: Analyzed, trace: bool) -> str:
        """Plans and stages as text."""


def table_query(name: str) -> q.Query:
    """``SELECT * FROM name``."""
    return _select((ast.Star(),), rel.Table((name,)))


def _select(items: tuple[ast.Expression, ...], relation: rel.Relation, **clauses: Any) -> q.Query:
    return q.Query(q.Select(items, relation, **clauses))


F = TypeVar("F", bound="_Builder")


@dataclass(frozen=True)
class _Builder:
    """The transformations, over a syntax tree; subclasses say what becomes of the new tree."""

    query: q.Query

    def _with(self, query: q.Query) -> Self:
        raise NotImplementedError

    # --- rows -----------------------------------------------------------------------------------------

    def filter(self, condition: Column | str) -> Self:
        """Rows for which the condition (a Column or SQL text) is true."""
        node = (expr(condition) if isinstance(condition, str) else condition).node
        core = self._core()
        where = node if core.where is None else ast.And((core.where, node))
        return self._with(q.Query(replace(core, where=where)))

    where = filter

    def limit(self, count: int) -> Self:
        """At most ``count`` rows."""
        base = self.query if self.query.limit is None else self._nested()
        return self._with(replace(base, limit=lit(count).node))

    def offset(self, count: int) -> Self:
        """Without the first ``count`` rows."""
        fresh = self.query.limit is None and self.query.offset is None
        return self._with(replace(self.query if fresh else self._nested(), offset=lit(count).node))

    def sort(self, *keys: Column | SortOrder | str, ascending: bool | Sequence[bool] = True) -> Self:
        """Rows in order; NULLs first ascending, last descending, unless a key says otherwise."""
        items = sort_items(keys)
        flags = [ascending] * len(items) if isinstance(ascending, bool) else list(ascending)
        if len(flags) != len(items):
            raise PlanError(f"ascending has {len(flags)} values for {len(items)} sort keys")
        items = tuple(
            i if up else replace(i, ascending=False, nulls_first=False)
            for i, up in zip(items, flags, strict=True)
        )
        plain = self.query.limit is None and self.query.offset is None
        return self._with(replace(self.query if plain else self._nested(), order_by=items))

    orderBy = sort

    def distinct(self) -> Self:
        """Each different row once."""
        return self._with(_select((ast.Star(),), self._relation(), distinct=True))

    # --- columns --------------------------------------------------------------------------------------

    def select(self, *columns: Column | str) -> Self:
        """Just these columns."""
        core = self._core()
        return self._with(q.Query(replace(core, items=tuple(to_column(c).node for c in columns))))

    def selectExpr(self, *texts: str) -> Self:
        """Columns written in SQL."""
        return self.select(*(expr(text) for text in texts))

    def drop(self, *names: str) -> Self:
        """Without some columns."""
        star = ast.Star(excluded=tuple((n,) for n in names))
        return self._with(q.Query(replace(self._core(), items=(star,))))

    # --- groups ---------------------------------------------------------------------------------------

    def aggregate(self, keys: Sequence[Column | str], aggregates: Sequence[Column]) -> Self:
        """One row per group: the keys, then the aggregates; no keys is one group of all rows."""
        nodes = tuple(to_column(k).node for k in keys)
        bare = tuple(n.expression if isinstance(n, ast.Aliased) else n for n in nodes)
        items = (*nodes, *(a.node for a in aggregates))
        group = q.GroupBy(bare) if bare else None
        if not items:
            raise PlanError("an aggregation needs a key or an aggregate")
        return self._with(q.Query(replace(self._core(), items=items, group_by=group)))

    def groupBy(self, *keys: Column | str) -> GroupedData[Self]:
        """Groups of equal keys, to be aggregated with ``agg``."""
        return GroupedData(self, keys)

    def agg(self, *aggregates: Column) -> Self:
        """One row about all rows."""
        return self.aggregate([], aggregates)

    def count_rows(self) -> Self:
        """One row with the number of rows."""
        return self.agg(Column(ast.Call(("count",), (ast.Star(),))).alias("count"))

    # --- with others ------------------------------------------------------------------------------------

    def alias(self, name: str) -> Self:
        """The same rows, whose columns may be called ``name.column``."""
        return self._with(_select((ast.Star(),), rel.Derived(self.query, rel.TableAlias(name))))

    def join(self, other: Self, on: Column | str | Sequence[str] | None = None, how: str = "inner") -> Self:
        """Pairs of rows: ``on`` a condition, or names of columns both sides have (which then come once)."""
        kind = _HOW.get(how.lower().replace("_", ""))
        if kind is None:
            raise PlanError(f"there is no join {how!r}; the joins are {', '.join(_HOW)}")
        condition: ast.Expression | None = None
        using: tuple[str, ...] = ()
        if isinstance(on, Column):
            condition = on.node
        elif on is not None:
            using = (on,) if isinstance(on, str) else tuple(on)
        joined = rel.Join(self._relation(), other._relation(), kind, condition, using)
        return self._with(_select((ast.Star(),), joined))

    def crossJoin(self, other: Self) -> Self:
        """Every row with every row."""
        return self.join(other, how="cross")

    def union(self, other: Self) -> Self:
        """All rows of both, columns by position."""
        return self._set("UNION", other, True)

    unionAll = union

    def intersect(self, other: Self) -> Self:
        """Rows in both, each once."""
        return self._set("INTERSECT", other, False)

    def intersectAll(self, other: Self) -> Self:
        """Rows in both, as often as in both."""
        return self._set("INTERSECT", other, True)

    def subtract(self, other: Self) -> Self:
        """Rows not in the other, each once."""
        return self._set("EXCEPT", other, False)

    def exceptAll(self, other: Self) -> Self:
        """Rows more often here than in the other."""
        return self._set("EXCEPT", other, True)

    def _set(self, op: str, other: Self, keep_all: bool) -> Self:
        return self._with(q.Query(q.SetOperation(op, self._body(), other._body(), keep_all)))

    # --- syntax -----------------------------------------------------------------------------------------

    def _core(self) -> q.Select:
        """A SELECT of all columns to hang a clause on: the query's own while it has nothing that comes later."""
        body = self.query.body
        only_body = self.query == q.Query(body)
        if only_body and isinstance(body, q.Select) and body == replace(body, **_BARE):
            return body
        return q.Select((ast.Star(),), rel.Derived(self.query))

    def _relation(self) -> rel.Relation:
        """The query as it stands in FROM; ``SELECT * FROM x`` is just x, which keeps x's qualifiers."""
        core = self._core()
        if core.where is None and core.relation is not None:
            return core.relation
        return rel.Derived(self.query)

    def _body(self) -> q.QueryBody:
        return self.query.body if self.query == q.Query(self.query.body) else self.query

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
    """What ``groupBy`` gives."""

    frame: F
    keys: tuple[Column | str, ...]

    def agg(self, *aggregates: Column) -> F:
        """The keys, then the aggregates."""
        return self.frame.aggregate(self.keys, aggregates)

    def count(self) -> F:
        """The keys and the number of rows, called ``count``."""
        return self.agg(Column(ast.Call(("count",), (ast.Star(),))).alias("count"))


@dataclass(frozen=True)
class DataFrame(_Builder):
    """A query over the tables of an ``ExecutionContext``; wrong names and types are errors at once."""

    executor: Executor = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_analyzed", self.executor.analyze(self.query))

    def _with(self, query: q.Query) -> Self:
        return replace(self, query=query)

    @property
    def analyzed(self) -> Analyzed:
        """The resolved query."""
        found: Analyzed = self._analyzed  # type: ignore[attr-defined]
        return found

    @property
    def plan(self) -> LogicalPlan:
        """The logical plan, not optimized."""
        return self.analyzed.plan

    @property
    def columns(self) -> list[str]:
        """The column names."""
        return list(self.analyzed.names)

    @property
    def schema(self) -> pa.Schema:
        """Names, types and nullability."""
        fields = [f.with_name(n) for f, n in zip(self.plan.schema, self.analyzed.names, strict=True)]
        return pa.schema(fields)

    def __getitem__(self, name: str) -> Column:
        if name not in self.columns:
            raise PlanError(f"no column {name}; the columns are {', '.join(self.columns)}")
        return to_column(name)

    def withColumn(self, name: str, column: Column) -> Self:
        """With a column added, or replaced in its place."""
        if name in self.columns:
            return self.select(*(column.alias(name) if n == name else n for n in self.columns))
        return self.select("*", column.alias(name))

    def withColumnRenamed(self, old: str, new: str) -> Self:
        """With a column under another name; unknown names change nothing, as in PySpark."""
        if old not in self.columns:
            return self
        return self.select(*(to_column(n).alias(new) if n == old else n for n in self.columns))

    def unionByName(self, other: Self) -> Self:
        """All rows of both, columns by name."""
        return self.union(other.select(*self.columns))

    def to_arrow(self) -> pa.Table:
        """Run and give an Arrow table."""
        return self.executor.to_arrow(self.analyzed)

    toArrow = to_arrow

    def to_pandas(self) -> Any:
        """Run and give a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    toPandas = to_pandas

    def collect(self) -> list[dict[str, Any]]:
        """Run and give one dict a row."""
        return list(self.to_arrow().to_pylist())

    def count(self) -> int:
        """The number of rows."""
        return int(self.count_rows().to_arrow().column(0)[0].as_py())

    def show(self, n: int = 20) -> None:
        """Print the first ``n`` rows as a table."""
        from rich.console import Console
        from rich.table import Table

        rows = self.limit(n).to_arrow()
        grid = Table(*rows.schema.names)
        for row in zip(*(c.to_pylist() for c in rows.columns), strict=True):
            grid.add_row(*("NULL" if v is None else str(v) for v in row))
        Console().print(grid)

    def explain(self, trace: bool = False) -> str:
        """Logical plan, optimized plan and stages; ``trace`` adds what each rule did."""
        return self.executor.explain(self.analyzed, trace)

    def to_spark(self) -> Any:
        """The same query as a lazy Spark DataFrame; needs an ``ExecutionContext(spark)``."""
        return self.executor.to_spark(self.analyzed)

    def __str__(self) -> str:
        return format_plan(self.plan)


@dataclass(frozen=True)
class OpenPlan(_Builder):
    """A plan with an open input, called ``input`` in SQL; calling it with a Spark DataFrame gives the result's.

    So ``df.transform(plan)`` works. ``run`` is the session's way to do that.
    """

    run: Callable[[OpenPlan, Any], Any] = field(repr=False, compare=False)

    def _with(self, query: q.Query) -> Self:
        return replace(self, query=query)

    def __call__(self, frame: Any) -> Any:
        """Apply to a Spark DataFrame, lazily."""
        return self.run(self, frame)
