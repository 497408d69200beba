"""Resolves and runs the queries of an ExecutionContext over its tables."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Cast, Named
from kquery_spark.frontends.dataframe.session import Session
from kquery_spark.frontends.dataframe.text import nested_text
from kquery_spark.frontends.sql.analyzer import Analyzed, SessionFacts, analyze
from kquery_spark.frontends.sql.analyzer.catalog import Catalog
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast.expressions import Call
from kquery_spark.frontends.sql.ast.node import Node, rewrite, walk
from kquery_spark.frontends.sql.ast.relations import Table
from kquery_spark.functions.casts.table import check_cast
from kquery_spark.functions.user import UserFunction
from kquery_spark.kernels.utf8 import replace_malformed_columns
from kquery_spark.logical import Limit, LogicalPlan, Projection, Scan
from kquery_spark.sources.memory import memory_source
from kquery_spark.types.names import STRING

if TYPE_CHECKING:
    from kquery_spark.context.execution_context import ExecutionContext


class RegisteredTables(Catalog):
    """The tables of a context, by folded name."""

    def __init__(self, tables: dict[str, LogicalPlan], facts: SessionFacts) -> None:
        self._tables = tables
        self._facts = facts

    @override
    def table(self, name: tuple[str, ...]) -> LogicalPlan | None:
        return self._tables.get(self._facts.fold(name[-1])) if len(name) == 1 else None

    def add(self, name: str, plan: LogicalPlan) -> None:
        """Add or replace a table."""
        self._tables[self._facts.fold(name)] = plan

    @override
    def table_names(self) -> list[str]:
        # sorted() copies the names before it compares them, so another thread may register a table meanwhile
        return sorted(self._tables)


class ContextSession(Session):
    """Resolves and runs the queries of one context. text: the SQL that the positions in errors refer to."""

    def __init__(
        self,
        context: ExecutionContext,
        catalog: RegisteredTables,
        functions: dict[str, UserFunction],
        text: str,
    ) -> None:
        self._context = context
        self._catalog = catalog
        self._functions = functions
        self._facts = context.facts
        self._text = text

    @override
    def bind(self, query: q.Query) -> q.Query:
        def bound(node: Node) -> Node:
            if _is_unbound(node):
                return replace(node, bound=self._catalog.table(node.name))
            if self._calls_user_function(node):
                return replace(node, user=self._functions[node.name[0].lower()])
            return node

        open_ = any(_is_unbound(n) or self._calls_user_function(n) for n, _ in walk(query))
        with limited_depth():
            return rewrite(query, bound) if open_ else query

    def _calls_user_function(self, node: Node) -> TypeGuard[Call]:
        return isinstance(node, Call) and len(node.name) == 1 and node.name[0].lower() in self._functions

    @override
    def analyze(self, query: q.Query) -> Analyzed:
        with limited_depth(), self._context.checked_analysis():
            return analyze(query, self._text, self._catalog, self._facts)

    @override
    def to_arrow(self, analyzed: Analyzed) -> pa.Table:
        return self._context.run(analyzed)

    @override
    def stream(self, analyzed: Analyzed) -> pa.RecordBatchReader:
        return self._context.stream(analyzed)

    @override
    def to_spark(self, analyzed: Analyzed) -> Any:
        return self._context.to_spark(analyzed)

    @override
    def to_text(self, analyzed: Analyzed, count: int) -> list[list[str]]:
        plan = Limit(analyzed.plan, count)
        shown = [plan.column(n) for n in plan.schema.names]
        strings = [
            c if _shown_in_python(c.type) else Cast(c, STRING, tz=self._facts.time_zone) for c in shown
        ]
        named = tuple(Named(e, c.name) for e, c in zip(strings, shown, strict=True))
        table = replace_malformed_columns(
            self.to_arrow(Analyzed(Projection(plan, named), tuple(plan.schema.names)))
        )
        columns = [
            [
                "NULL" if v is None else v if isinstance(v, str) else nested_text(v, c.type)
                for v in c.to_pylist()
            ]
            for c in table.columns
        ]
        return [list(row) for row in zip(*columns, strict=True)] if columns else [[]] * table.num_rows

    @override
    def fold_name(self, name: str) -> str:
        return self._facts.fold(name)

    @override
    def table_of_rows(self, table: pa.Table, origins: Sequence[str]) -> Table:
        source = replace(memory_source(table, self._facts.time_zone), origins=tuple(origins))
        return Table((f"__cached_{uuid.uuid4().hex}",), bound=Scan("cached", source))

    @override
    def register(self, name: str, analyzed: Analyzed) -> None:
        if tuple(analyzed.plan.schema.names) != analyzed.names:
            raise PlanError(f"{name} would have two columns of one name: {', '.join(analyzed.names)}")
        self._catalog.add(name, analyzed.plan)

    @override
    def to_substrait(self, analyzed: Analyzed) -> bytes:
        from kquery_spark.frontends.substrait.writer import write_plan

        return write_plan(analyzed, self._catalog, self._facts)

    @override
    def explain(self, analyzed: Analyzed, trace: bool) -> str:
        return self._context.explain(analyzed, trace)


@contextmanager
def limited_depth() -> Iterator[None]:
    """Raise PlanError if a query is nested more deeply than Python's stack."""
    try:
        yield
    except RecursionError:
        raise PlanError(
            "the query is nested too deeply: compute parts of its longest expression as columns of a select below, or "
            "keep parts of a long chain of transformations with cache()"
        ) from None


def _is_unbound(node: Node) -> TypeGuard[Table]:
    return isinstance(node, Table) and node.bound is None


def _shown_in_python(dtype: pa.DataType) -> bool:
    """Return whether values are formatted in Python, because the engine cannot cast the type to string."""
    try:
        check_cast(dtype, STRING)
    except Unsupported:
        return True
    return False
