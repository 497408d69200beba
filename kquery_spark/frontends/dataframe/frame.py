"""The DataFrame API: a lazy query over the tables of a context. Only actions run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from typing_extensions import Self

from kquery_spark.errors import PlanError, type_name
from kquery_spark.frontends.dataframe import nulls
from kquery_spark.frontends.dataframe.builder import Builder, path_of, table_query
from kquery_spark.frontends.dataframe.column import Column, call, exact_column, lit
from kquery_spark.frontends.dataframe.session import Session
from kquery_spark.frontends.dataframe.text import schema_tree, table_text, vertical_text
from kquery_spark.frontends.sql.analyzer import Analyzed
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast import relations as rel
from kquery_spark.frontends.sql.suggestions import did_you_mean
from kquery_spark.kernels.utf8 import replace_malformed_columns
from kquery_spark.logical import LogicalPlan, format_plan
from kquery_spark.logical.lineage import lineage, lineages
from kquery_spark.types.names import is_numeric, spark_name


@dataclass(frozen=True)
class DataFrame(Builder):
    """A query over the tables of an ``ExecutionContext``. Wrong names and types raise errors when it is built."""

    _session: Session = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "query", self._session.bind(self.query))
        object.__setattr__(self, "_analyzed", self._session.analyze(self.query))

    def _with(self, query: q.Query) -> Self:
        return replace(self, query=query)

    @property
    def analyzed(self) -> Analyzed:
        """The resolved query."""
        analyzed: Analyzed = self.__dict__["_analyzed"]
        return analyzed

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
        return self.analyzed.schema

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """Names and types, the types as SQL writes them."""
        return [(f.name, spark_name(f.type)) for f in self.schema]

    def printSchema(self) -> None:
        """Print the columns as a tree."""
        print(schema_tree(self.schema))

    def __getitem__(self, item: Any) -> Any:
        """Return a column for a name or a position, the filtered rows for a condition, and the columns of a list."""
        if isinstance(item, Column):
            return self.filter(item)
        if isinstance(item, list | tuple):
            return self.select(*item)
        if isinstance(item, int) and -len(self.columns) <= item < len(self.columns):
            item = self.columns[item]
        if not isinstance(item, str):
            raise PlanError(f"a DataFrame has no item {item!r}; the columns are {', '.join(self.columns)}")
        if not self._indices(item):
            raise self._no_column(item)
        return Column(ast.Name((item,), self._origin(item)))

    def __getattr__(self, name: str) -> Column:
        if name.startswith("_") or name not in self.columns:
            raise AttributeError(f"a DataFrame has no attribute {name!r}, and this one no column {name!r}")
        return Column(ast.Name((name,), self._origin(name)))

    def _no_column(self, name: str) -> PlanError:
        columns = self.columns
        return PlanError(
            f"unknown column {name}{did_you_mean(name, columns)}; the columns are {', '.join(columns)}"
        )

    def _indices(self, name: str) -> list[int]:
        fold = self._session.fold_name
        return [i for i, n in enumerate(self.columns) if fold(n) == fold(name)]

    def _origin(self, name: str) -> str:
        """The lineage of the one column of that name."""
        indices = self._indices(name)
        return lineage(self.plan, self.plan.schema.names[indices[0]]) if len(indices) == 1 else ""

    def withColumn(self, name: str, column: Column) -> Self:
        """Add a column, or replace the one with this name at its position."""
        return self.withColumns({name: column})

    def withColumns(self, columns: Mapping[str, Column]) -> Self:
        """Add columns, or replace those with these names; each is computed from this DataFrame's columns."""
        fold = self._session.fold_name
        for name, column in columns.items():
            if not isinstance(column, Column):
                raise PlanError(
                    f"withColumn() takes a Column for {name}, as col() and lit() make them, "
                    f"not {type_name(column)}"
                )
        added = {fold(n): c.alias(n) for n, c in columns.items()}
        own = [added.pop(fold(n), exact_column(n)) for n in self.columns]
        return self.select(*own, *added.values())

    def withColumnRenamed(self, old: str, new: str) -> Self:
        """Rename a column; unknown names are ignored, as in PySpark."""
        return self.withColumnsRenamed({old: new})

    def withColumnsRenamed(self, names: Mapping[str, str]) -> Self:
        """Rename columns one after the other; unknown names are ignored.

        As in PySpark, ``{"a": "b", "b": "c"}`` renames both a and b to c.
        """
        fold = self._session.fold_name
        renamed = list(self.columns)
        for old, new in names.items():
            renamed = [new if fold(n) == fold(old) else n for n in renamed]
        if renamed == self.columns:
            return self
        return self.select(
            *(exact_column(n).alias(new) for n, new in zip(self.columns, renamed, strict=True))
        )

    def toDF(self, *names: str) -> Self:
        """Rename all columns."""
        if len(names) != len(self.columns):
            raise PlanError(f"toDF() has {len(names)} name(s) for {len(self.columns)} column(s)")
        if len(set(self.columns)) < len(self.columns):
            columns = rel.TableAlias("renamed", names)
            return self._with(q.Query(q.Select((ast.Star(),), rel.Derived(self.query, columns))))
        return self.select(*(exact_column(o).alias(n) for o, n in zip(self.columns, names, strict=True)))

    def drop(self, *columns: Column | str) -> Self:
        """Drop columns; unknown names are ignored, as in PySpark."""
        if any(_lineage_of(c) for c in columns):
            return self._without_origins(columns)
        fold = self._session.fold_name
        known = {fold(n) for n in self.columns}
        paths = tuple(
            (c,) if isinstance(c, str) else path_of(c)
            for c in columns
            if not isinstance(c, str) or fold(c) in known
        )
        return self._excluding_columns(paths) if paths else self

    def _without_origins(self, columns: Sequence[Column | str]) -> Self:
        """Drop exactly these columns, but not other columns with the same names."""
        dropped: set[int] = set()
        own = lineages(self.plan)
        for column in columns:
            lineage = _lineage_of(column)
            indices = self._indices(column if isinstance(column, str) else path_of(column)[-1])
            dropped |= {i for i in indices if not lineage or own[i] == lineage}
        if not dropped:
            return self
        retained = [i for i in range(len(own)) if i not in dropped]
        return self.select(*(Column(ast.Name((self.columns[i],), own[i])) for i in retained))

    def dropDuplicates(self, subset: Sequence[str] | None = None) -> Self:
        """Remove duplicate rows; with ``subset``, return one row for each distinct combination of these columns."""
        if subset is None:
            return self.distinct()
        if isinstance(subset, str):
            raise PlanError(f"dropDuplicates() takes a list of names: [{subset!r}]")
        fold = self._session.fold_name
        keys = {fold(n) for n in subset}
        unknown = keys - {fold(n) for n in self.columns}
        if unknown:
            raise self._no_column(min(unknown))
        items = [
            exact_column(n) if fold(n) in keys else call("first", exact_column(n)).alias(n)
            for n in self.columns
        ]
        # Without columns, all rows are duplicates of each other. The constant key makes this a grouped
        # aggregate: for an empty input it returns no row, whereas a global aggregate returns one.
        group = q.GroupBy(tuple(exact_column(n).node for n in subset) or (lit(True).node,))
        return self._with(
            q.Query(replace(self._select_to_extend(), items=tuple(c.node for c in items), group_by=group))
        )

    drop_duplicates = dropDuplicates

    @property
    def na(self) -> nulls.NullFunctions:
        """``na.fill``, ``na.drop`` and ``na.replace``."""
        return nulls.NullFunctions(self)

    def fillna(
        self, value: nulls.Value | Mapping[str, nulls.Value], subset: str | Sequence[str] | None = None
    ) -> Self:
        """Replace NULL and NaN in the columns of the value's kind; a dict has one value per column."""
        values = self._spelled(value) if isinstance(value, Mapping) else value
        return self.select(*nulls.filled(self.schema, values, self._spelled(_names(subset))))

    def dropna(
        self, how: str = "any", thresh: int | None = None, subset: str | Sequence[str] | None = None
    ) -> Self:
        """Drop rows with any NULL or NaN; ``how="all"``: with nothing else; ``thresh``: with fewer other values."""
        condition = nulls.complete_row_condition(self.schema, how, thresh, self._spelled(_names(subset)))
        return self if condition is None else self.filter(condition)

    def replace(
        self, to_replace: Any, value: Any = nulls.NO_VALUE, subset: str | Sequence[str] | None = None
    ) -> Self:
        """Replace values: one value by another, a list by a value or by a list, or the keys of a dict by its values."""
        if isinstance(to_replace, Mapping):
            changes = dict(to_replace)
        elif value is nulls.NO_VALUE:
            raise PlanError("replace() needs a value, or a dict of old values and new ones")
        else:
            old = list(to_replace) if isinstance(to_replace, list | tuple) else [to_replace]
            new = list(value) if isinstance(value, list | tuple) else [value] * len(old)
            if len(old) != len(new):
                raise PlanError(f"replace() has {len(new)} new value(s) for {len(old)} old")
            try:
                changes = dict(zip(old, new, strict=True))
            except TypeError:  # an old value that is not hashable
                raise PlanError("replace() takes numbers, strings or booleans") from None
        # Unlike in fillna() and dropna(), Spark compares these names exactly. It ignores other spellings; here, they raise.
        return self.select(*nulls.replaced(self.schema, changes, _names(subset)))

    def _spelled(self, names: Any) -> Any:
        """Replace column names, in a list or as keys of a dict, by their spelling in this DataFrame."""
        own = {self._session.fold_name(n): n for n in self.columns}
        if isinstance(names, Mapping):
            return {own.get(self._session.fold_name(n), n): v for n, v in names.items()}
        return [own.get(self._session.fold_name(n), n) for n in names] if isinstance(names, list) else names

    def _numeric_columns(self) -> list[str]:
        return [f.name for f in self.schema if is_numeric(f.type)]

    def cache(self) -> Self:
        """Run the query now and keep its rows in memory; queries over the result read these rows."""
        table = Analyzed(self.plan, tuple(self.plan.schema.names))
        rows = self._session.table_of_rows(self._session.to_arrow(table), lineages(self.plan))
        cached = self._with(table_query(rows))
        return cached if cached.columns == self.columns else cached.toDF(*self.columns)

    persist = cache

    def createOrReplaceTempView(self, name: str) -> None:
        """Register the query as a view for the SQL of its context."""
        self._session.register(name, self.analyzed)

    def unionByName(self, other: Self, allowMissingColumns: bool = False) -> Self:
        """Union by column name; a missing column is an error, or NULL with ``allowMissingColumns``."""
        if not allowMissingColumns:
            if len(self.columns) != len(other.columns):
                raise PlanError(
                    f"unionByName() needs the same columns: {', '.join(self.columns)} and {', '.join(other.columns)}"
                )
            return self.union(other.select(*map(exact_column, self.columns)))
        fold = self._session.fold_name
        mine, theirs = ({fold(n) for n in side.columns} for side in (self, other))
        names = [*self.columns, *(n for n in other.columns if fold(n) not in mine)]

        def side(frame: Self, known: set[str]) -> Self:
            return frame.select(*(exact_column(n) if fold(n) in known else lit(None).alias(n) for n in names))

        return side(self, mine).union(side(other, theirs))

    def to_arrow(self) -> pa.Table:
        """Run the query and return an Arrow table."""
        return self._session.to_arrow(self.analyzed)

    toArrow = to_arrow

    def to_reader(self) -> pa.RecordBatchReader:
        """Run the query and return a reader of its record batches, which need not fit into memory together.

        Each batch is available as soon as it is computed. The query stops when the last reference to the reader is deleted;
        closing the reader is not enough. On Spark, all rows arrive together.
        """
        return self._session.stream(self.analyzed)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for any library that reads Arrow streams: ``pa.table(frame)``, ``polars.DataFrame(frame)``."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Run the query and return a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    toPandas = to_pandas

    def collect(self) -> list[dict[str, Any]]:
        """Run the query and return one dict per row."""
        self._check_names()
        return list(replace_malformed_columns(self.to_arrow()).to_pylist())

    def _check_names(self) -> None:
        twice = [n for i, n in enumerate(self.columns) if n in self.columns[:i]]
        if twice:
            raise PlanError(
                f"rows are dicts, which cannot have two columns {twice[0]}; use to_arrow(), or give them other "
                "names with alias() or toDF()"
            )

    def count(self) -> int:
        """Run the query and return the number of rows."""
        return int(self.count_rows().to_arrow().column(0)[0].as_py())

    def isEmpty(self) -> bool:
        """Return whether the result has no rows."""
        return not self.limit(1).to_arrow().num_rows

    def take(self, num: int) -> list[dict[str, Any]]:
        """The first rows."""
        return self.limit(num).collect()

    def head(self, n: int | None = None) -> Any:
        """The first ``n`` rows; without ``n`` the first row, or None."""
        if n is not None:
            return self.take(n)
        rows = self.take(1)
        return rows[0] if rows else None

    def first(self) -> dict[str, Any] | None:
        """The first row, or None."""
        row: dict[str, Any] | None = self.head()
        return row

    def tail(self, num: int) -> list[dict[str, Any]]:
        """The last rows."""
        self._check_names()
        table = self.to_arrow()
        rows = table.slice(max(0, table.num_rows - num))
        return list(replace_malformed_columns(rows).to_pylist())

    def show(self, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> None:
        """Print the first ``n`` rows as PySpark does; strings longer than ``truncate`` (True: 20) are cut."""
        print(self.show_text(n, truncate, vertical))

    def show_text(self, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> str:
        """The string that ``show`` prints."""
        width = 20 * truncate if isinstance(truncate, bool) else truncate
        rows = self.first_strings(n + 1)
        text = (vertical_text if vertical else table_text)(self.columns, rows[:n], width)
        if len(rows) > n:
            text += f"only showing top {n} row{'' if n == 1 else 's'}"
        return text

    def first_strings(self, n: int) -> list[list[str]]:
        """The first ``n`` rows as ``show`` writes their values, none of them cut."""
        return self._session.to_text(self.analyzed, n)

    def explain(self, trace: bool = False) -> str:
        """Logical plan, optimized plan and stages; ``trace`` adds the plan after each rule."""
        return self._session.explain(self.analyzed, trace)

    def to_substrait(self) -> bytes:
        """Return the query, not optimized, as the bytes of a Substrait plan; needs the extra ``kquery-spark[substrait]``.

        The plan refers to registered tables by their names. Raises SubstraitError if Substrait cannot express the query.
        """
        return self._session.to_substrait(self.analyzed)

    def to_spark(self) -> Any:
        """Return the query as a lazy Spark DataFrame; needs an ``ExecutionContext(spark)``."""
        return self._session.to_spark(self.analyzed)

    def __str__(self) -> str:
        return format_plan(self.plan)


def _lineage_of(column: Column | str) -> str:
    """Return the origins of a column that was taken from a DataFrame; empty for other columns."""
    node = column.node if isinstance(column, Column) else None
    return node.origin if isinstance(node, ast.Name) else ""


def _names(subset: str | Sequence[str] | None) -> list[str] | None:
    return None if subset is None else [subset] if isinstance(subset, str) else list(subset)
