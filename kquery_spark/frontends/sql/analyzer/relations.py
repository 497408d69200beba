"""Resolves FROM: tables, subqueries and joins; VALUES and ``range`` are in ``inline_tables.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Column, Expr, Named, walk
from kquery_spark.expr.properties import conjunction
from kquery_spark.frontends.sql.analyzer.conversions import Conversions
from kquery_spark.frontends.sql.analyzer.inline_tables import function_table, values_table
from kquery_spark.frontends.sql.analyzer.lateral import lateral_join
from kquery_spark.frontends.sql.analyzer.outer_row import OuterRow
from kquery_spark.frontends.sql.analyzer.pivot import pivoted
from kquery_spark.frontends.sql.analyzer.sampling import sampled
from kquery_spark.frontends.sql.analyzer.scope import (
    ResolvedRelation,
    Scope,
    ScopeColumn,
    current_column,
    refresh_nullability,
)
from kquery_spark.frontends.sql.analyzer.unpivot import analyze_unpivot
from kquery_spark.frontends.sql.ast import relations as ast
from kquery_spark.frontends.sql.suggestions import did_you_mean
from kquery_spark.functions.special_forms import generator_function
from kquery_spark.logical import Filter, Join, JoinKind, LogicalPlan, Projection, Scan
from kquery_spark.logical.conditions import split_condition
from kquery_spark.logical.subqueries import Subquery
from kquery_spark.sources.memory import one_row_source

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.queries import QueryAnalyzer

_KINDS = {
    "INNER": JoinKind.INNER,
    "CROSS": JoinKind.INNER,
    "LEFT": JoinKind.LEFT,
    "RIGHT": JoinKind.RIGHT,
    "FULL": JoinKind.FULL,
    "LEFT SEMI": JoinKind.SEMI,
    "LEFT ANTI": JoinKind.ANTI,
}


class RelationAnalyzer:
    """Resolves the relations of FROM."""

    def __init__(self, queries: QueryAnalyzer) -> None:
        self._queries = queries
        self._names = queries.names
        self._facts = queries.facts

    def relation(self, node: ast.Relation | None, outer: OuterRow | None) -> ResolvedRelation:
        """The plan of a relation; a SELECT without FROM reads one row without columns."""
        if node is None:
            return ResolvedRelation(one_row(), Scope((), self._facts))
        match node:
            case ast.Lateral():
                return self.relation(node.relation, outer)
            case ast.Table():
                return self._table(node)
            case ast.Derived():
                return self._aliased(self._queries.query(node.query, outer), node.alias, node)
            case ast.Values():
                return self._aliased(self._inline(values_table(self._queries, node, outer)), node.alias, node)
            case ast.Renamed():
                return self._aliased(self.relation(node.relation, outer), node.alias, node)
            case ast.TableFunction() if generator_function(node.name[-1].lower()) is not None:
                row = ResolvedRelation(one_row(), Scope((), self._facts))
                return self._queries.generators.table_function(row, node, outer)
            case ast.TableFunction():
                return self._aliased(self._inline(function_table(self._queries, node)), node.alias, node)
            case ast.Join():
                return self._join(node, outer)
            case ast.Sampled():
                rows = sampled(self._queries, self.relation(node.relation, outer), node)
                return rows if node.alias is None else self._aliased(rows, node.alias, node)
            case ast.Pivot():
                return pivoted(self._queries, self.relation(node.relation, outer), node, outer)
            case ast.Unpivot():
                return analyze_unpivot(self._queries, self.relation(node.relation, outer), node)
        self._queries.fail(f"{type(node).__name__} in FROM is not supported", node)

    def _with_unique_columns(self, plan: LogicalPlan, qualifier: tuple[str, ...]) -> ResolvedRelation:
        """Rename the columns of a plan to names that no other part of the query uses."""
        names = plan.schema.names
        unique = [self._names.fresh(n) for n in names]
        if unique != names:
            plan = Projection(
                plan, tuple(Named(plan.column(old), new) for old, new in zip(names, unique, strict=True))
            )
        columns = tuple(ScopeColumn(n, plan.column(u), qualifier) for n, u in zip(names, unique, strict=True))
        return ResolvedRelation(plan, Scope(columns, self._facts))

    def _table(self, node: ast.Table) -> ResolvedRelation:
        if len(node.name) == 1:
            common_table = self._queries.common_table(node.name[0])
            if common_table is not None:
                return self._aliased(common_table, node.alias or ast.TableAlias(node.name[0]), node)
        plan = node.bound or self._queries.catalog.table(node.name)
        if not isinstance(plan, LogicalPlan):
            known, name = sorted(self._queries.catalog.table_names()), ".".join(node.name)
            self._queries.fail(
                f"[TABLE_OR_VIEW_NOT_FOUND] unknown table {name}{did_you_mean(name, known)}; "
                f"the tables are {', '.join(known) or '(none)'}",
                node,
            )
        return self._aliased(self._with_unique_columns(plan, node.name), node.alias, node)

    def _aliased(
        self, relation: ResolvedRelation, alias: ast.TableAlias | None, node: ast.Relation
    ) -> ResolvedRelation:
        if alias is None:
            return (
                relation
                if isinstance(node, ast.Table)
                else ResolvedRelation(relation.plan, relation.scope.renamed(()))
            )
        if alias.columns and len(alias.columns) != len(relation.scope.visible):
            self._queries.fail(
                f"[ASSIGNMENT_ARITY_MISMATCH] {alias.name} has {len(relation.scope.visible)} column(s), "
                f"not {len(alias.columns)}",
                alias,
            )
        return ResolvedRelation(relation.plan, relation.scope.renamed((alias.name,), alias.columns or None))

    # --- joins ---------------------------------------------------------------------------------------

    def _join(self, node: ast.Join, outer: OuterRow | None) -> ResolvedRelation:
        left = self.relation(node.left, outer)
        if isinstance(node.right, ast.Lateral):
            return lateral_join(self._queries, left, node, outer)
        right = self.relation(node.right, outer)
        kind = _KINDS[node.kind]
        if node.natural or node.using:
            return self._using(left, right, kind, node)
        scope = left.scope.concat(right.scope)
        if node.condition is None:
            if kind is not JoinKind.INNER:
                return self.on(left, right, kind, None)
            return ResolvedRelation(Join(left.plan, right.plan, kind), scope)
        analyzer = self._queries.expressions(scope, outer, "a join condition", left.plan, right.plan)
        return self.on(left, right, kind, analyzer.condition(node.condition, "ON"))

    def on(
        self, left: ResolvedRelation, right: ResolvedRelation, kind: JoinKind, condition: Expr | None
    ) -> ResolvedRelation:
        """Join two relations on a condition over both."""
        if condition is not None and any(isinstance(e, Subquery) for e in walk(condition)):
            if kind is not JoinKind.INNER:
                raise Unsupported("a subquery in the condition of an outer join is not supported")
            joined = Filter(Join(left.plan, right.plan, kind), condition)
            return ResolvedRelation(joined, self._joined_scope(joined, left, right, kind))
        keys, residual = split_condition(condition, left.plan.schema.names, right.plan.schema.names)
        plan = Join(left.plan, right.plan, kind, tuple(keys), conjunction(residual))
        return ResolvedRelation(plan, self._joined_scope(plan, left, right, kind))

    def _joined_scope(
        self, plan: LogicalPlan, left: ResolvedRelation, right: ResolvedRelation, kind: JoinKind
    ) -> Scope:
        scope = left.scope if kind in (JoinKind.SEMI, JoinKind.ANTI) else left.scope.concat(right.scope)
        return refresh_nullability(scope, plan)

    def _using(
        self, left: ResolvedRelation, right: ResolvedRelation, kind: JoinKind, node: ast.Join
    ) -> ResolvedRelation:
        """USING and NATURAL: join on columns with the same names, which come first in the output, and only once."""
        convert = Conversions(self._facts)
        pairs: list[tuple[ScopeColumn, ScopeColumn]] = []
        terms: list[Expr] = []
        for name in self._using_names(left, right, node):
            a = self._using_column(left, "left", name, node)
            b = self._using_column(right, "right", name, node)
            pairs.append((a, b))
            terms.append(convert.call("eq", a.value, b.value))
        plan = self.on(left, right, kind, conjunction(terms)).plan
        if kind in (JoinKind.SEMI, JoinKind.ANTI):
            return ResolvedRelation(
                plan, refresh_nullability(_keys_first(left.scope, [a for a, _ in pairs]), plan)
            )
        used = {c for pair in pairs for c in pair}
        others = tuple(c for c in (*left.scope.columns, *right.scope.columns) if c not in used)
        columns = (
            *_hidden_keys(plan, pairs, kind),
            *(_using_key(plan, convert, a, b, kind) for a, b in pairs),
            *refresh_nullability(Scope(others, self._facts), plan).columns,
        )
        if kind is JoinKind.FULL:
            return self._materialized(plan, columns)
        return ResolvedRelation(plan, Scope(columns, self._facts))

    def _using_names(self, left: ResolvedRelation, right: ResolvedRelation, node: ast.Join) -> list[str]:
        """The names in USING, or, for NATURAL, the names that both sides have."""
        fold = self._facts.fold
        if node.using:
            return list(node.using)
        right_names = {fold(c.name) for c in right.scope.visible}
        return [c.name for c in left.scope.visible if fold(c.name) in right_names]

    def _using_column(self, relation: ResolvedRelation, side: str, name: str, node: ast.Join) -> ScopeColumn:
        """The only column of a side with a name in USING."""
        fold = self._facts.fold
        matches = [c for c in relation.scope.visible if fold(c.name) == fold(name)]
        if len(matches) != 1:
            problem = "is ambiguous in" if matches else "is not on"
            error = "AMBIGUOUS_REFERENCE" if matches else "UNRESOLVED_USING_COLUMN_FOR_JOIN"
            self._queries.fail(
                f"[{error}] the USING column {name} {problem} the {side} side, "
                f"whose columns are {relation.scope.candidates()}",
                node,
            )
        return matches[0]

    def _materialized(self, plan: LogicalPlan, columns: Sequence[ScopeColumn]) -> ResolvedRelation:
        """Turn computed scope columns into columns of a projection."""
        exprs = [Named(plan.column(n), n) for n in plan.schema.names]
        name_of: dict[Expr, str] = {}
        for column in columns:
            if not isinstance(column.value, Column):
                name_of[column.value] = self._names.fresh(column.name)
                exprs.append(Named(column.value, name_of[column.value]))
        projected = Projection(plan, tuple(exprs))
        out = tuple(
            ScopeColumn(c.name, projected.column(name_of[c.value]), c.qualifier, c.hidden)
            if c.value in name_of
            else c
            for c in columns
        )
        return ResolvedRelation(projected, Scope(out, self._facts))

    def _inline(self, scan: LogicalPlan) -> ResolvedRelation:
        return self._with_unique_columns(scan, ())


def one_row() -> LogicalPlan:
    """A plan that returns one row without columns."""
    return Scan("one_row", one_row_source(), ())


def _keys_first(scope: Scope, keys: Sequence[ScopeColumn]) -> Scope:
    return Scope((*keys, *(c for c in scope.columns if c not in keys)), scope.facts)


def _using_key(
    plan: LogicalPlan, convert: Conversions, left: ScopeColumn, right: ScopeColumn, kind: JoinKind
) -> ScopeColumn:
    """The visible column of a USING key: from the preserved side, or from either side for FULL."""
    if kind is JoinKind.FULL:
        value = convert.call("coalesce", current_column(plan, left.value), current_column(plan, right.value))
        return ScopeColumn(left.name, value)
    preserved = right if kind is JoinKind.RIGHT else left
    return ScopeColumn(preserved.name, current_column(plan, preserved.value), preserved.qualifier)


def _hidden_keys(
    plan: LogicalPlan, pairs: Sequence[tuple[ScopeColumn, ScopeColumn]], kind: JoinKind
) -> list[ScopeColumn]:
    """The keys of USING that are not part of ``*``, but can be referred to by qualified names."""
    hidden = []
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        hidden += [left for left, _ in pairs]
    if kind is not JoinKind.RIGHT:
        hidden += [right for _, right in pairs]
    return [
        ScopeColumn(c.name, current_column(plan, c.value), c.qualifier, True) for c in hidden if c.qualifier
    ]
