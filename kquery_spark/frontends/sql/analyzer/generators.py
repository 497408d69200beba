"""Generators (explode, posexplode, inline): in the select list and in LATERAL VIEW."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from kquery_spark.frontends.sql.analyzer.outer_row import OuterRow
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation, Scope, ScopeColumn
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.frontends.sql.ast.node import Node
from kquery_spark.functions.special_forms import GeneratorFunction, generator_function
from kquery_spark.logical import Generate, LogicalPlan
from kquery_spark.logical.generate import Generator
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.queries import QueryAnalyzer


@dataclass(frozen=True)
class GeneratorCall:
    """A generator call and the names of its columns."""

    call: ast.Call
    function: GeneratorFunction
    aliases: tuple[str, ...] = ()


def generator_of(node: ast.Expression) -> GeneratorCall | None:
    """The generator that a select item calls; None if it calls none."""
    aliases: tuple[str, ...] = ()
    call = node
    if isinstance(node, ast.MultiAliased):
        call, aliases = node.expression, node.aliases
    elif isinstance(node, ast.Aliased):
        call, aliases = node.expression, (node.alias,)
    if not isinstance(call, ast.Call) or len(call.name) != 1:
        return None
    function = generator_function(call.name[0].lower())
    return None if function is None else GeneratorCall(call, function, aliases)


class GeneratorAnalyzer:
    """Adds Generate nodes."""

    def __init__(self, queries: QueryAnalyzer) -> None:
        self._queries = queries

    def generate(
        self, relation: ResolvedRelation, generated: GeneratorCall, outer: OuterRow | None
    ) -> tuple[ResolvedRelation, list[ScopeColumn]]:
        """Add the generated columns to the relation's plan; returns it with the same scope, and the generated columns."""
        call = generated.call
        plan, columns = self._plan(
            relation, generated.function, call.arguments, generated.aliases, outer, call
        )
        return ResolvedRelation(plan, relation.scope), columns

    def lateral_view(
        self, relation: ResolvedRelation, view: r.LateralView, outer: OuterRow | None
    ) -> ResolvedRelation:
        """LATERAL VIEW: adds the generated columns to those of the relation."""
        name = view.function[-1].lower()
        function = generator_function(name)
        if function is None:
            self._queries.fail(f"[UNRESOLVED_ROUTINE] unknown generator {name}", view)
        function = replace(function, keeps_row=function.keeps_row or view.outer)
        plan, columns = self._plan(relation, function, view.arguments, view.columns, outer, view)
        return _appended(relation, plan, columns, (view.alias,))

    def table_function(
        self, relation: ResolvedRelation, node: r.TableFunction, outer: OuterRow | None
    ) -> ResolvedRelation:
        """``explode(x) AS t(c)`` in FROM, whose argument reads ``relation``: adds the generated columns to its columns."""
        function = generator_function(node.name[-1].lower())
        assert function is not None
        columns = () if node.alias is None else node.alias.columns
        plan, generated = self._plan(relation, function, node.arguments, columns, outer, node)
        return _appended(relation, plan, generated, () if node.alias is None else (node.alias.name,))

    def _plan(
        self,
        relation: ResolvedRelation,
        function: GeneratorFunction,
        arguments: tuple[ast.Expression, ...],
        aliases: tuple[str, ...],
        outer: OuterRow | None,
        node: Node,
    ) -> tuple[LogicalPlan, list[ScopeColumn]]:
        kind = function.generator
        analyzer = self._queries.expressions(relation.scope, outer, kind, relation.plan)
        if len(arguments) != 1:
            analyzer.fail(
                f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] {kind} takes 1 argument, not {len(arguments)}", node
            )
        argument = analyzer.expr(arguments[0])
        default_names = _column_names(kind, argument.dtype)
        if default_names is None:
            analyzer.fail(
                f"[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] {kind} cannot take {t.spark_name(argument.dtype)}",
                node,
            )
        if aliases and len(aliases) != len(default_names):
            analyzer.fail(
                f"[UDTF_ALIAS_NUMBER_MISMATCH] {kind} gives {len(default_names)} column(s), not {len(aliases)}",
                node,
            )
        names = list(aliases) or default_names
        inner = tuple(self._queries.names.fresh(n) for n in names)
        plan = Generate(relation.plan, Generator(kind), (argument,), inner, function.keeps_row)
        return plan, [ScopeColumn(n, plan.column(i)) for n, i in zip(names, inner, strict=True)]


def _appended(
    relation: ResolvedRelation, plan: LogicalPlan, columns: list[ScopeColumn], qualifier: tuple[str, ...]
) -> ResolvedRelation:
    """Return the plan with a scope of the relation's columns, followed by the generated columns with this qualifier."""
    qualified = tuple(replace(column, qualifier=qualifier) for column in columns)
    return ResolvedRelation(plan, relation.scope.concat(Scope(qualified, relation.scope.facts)))


def _column_names(kind: str, dtype: pa.DataType) -> list[str] | None:
    """Spark's names for the columns of a generator without aliases; None for an unsupported type."""
    is_map = pa.types.is_map(dtype)
    if not is_map and not pa.types.is_list(dtype):
        return None
    if kind == "inline":
        return (
            None if is_map or not pa.types.is_struct(dtype.value_type) else [f.name for f in dtype.value_type]
        )
    columns = ["key", "value"] if is_map else ["col"]
    return ["pos", *columns] if kind == "posexplode" else columns
