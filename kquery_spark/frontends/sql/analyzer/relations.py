"""FROM: tables, subqueries, joins, VALUES and table functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Column, Expr, Named, walk
from kquery_spark.expr.constants import literal_vector
from kquery_spark.expr.properties import conjunction
from kquery_spark.frontends.sql.analyzer.constants import constant_of
from kquery_spark.frontends.sql.analyzer.outer_row import OuterRow
from kquery_spark.frontends.sql.analyzer.scope import Relation, Scope, ScopeColumn
from kquery_spark.frontends.sql.ast import relations as ast
from kquery_spark.logical import Filter, Join, JoinKind, LogicalPlan, Projection, Scan
from kquery_spark.logical.conditions import split_condition
from kquery_spark.logical.subqueries import Subquery
from kquery_spark.sources.memory import MemorySource, one_row_source
from kquery_spark.types import names as t

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
_MOST_RANGE_ROWS = 20_000_000


class RelationAnalyzer:
    """Resolves what stands in FROM."""

    def __init__(self, queries: QueryAnalyzer) -> None:
        self._queries = queries
        self._names = queries.names
        self._facts = queries.facts

    def relation(self, node: ast.Relation | None, outer: OuterRow | None) -> Relation:
        """The rows of a relation; none at all means one row without columns."""
        if node is None:
            return Relation(one_row(), Scope((), self._facts))
        match node:
            case ast.Table():
                return self._table(node)
            case ast.Derived():
                return self._aliased(self._queries.query(node.query, outer), node.alias, node)
            case ast.Values():
                return self._aliased(self.values(node, outer), node.alias, node)
            case ast.Renamed():
                return self._aliased(self.relation(node.relation, outer), node.alias, node)
            case ast.TableFunction():
                return self._aliased(self._function(node), node.alias, node)
            case ast.Join():
                return self._join(node, outer)
        self._queries.fail(f"{type(node).__name__} in FROM is not supported", node)

    def fresh(
        self, plan: LogicalPlan, qualifier: tuple[str, ...], names: Sequence[str] | None = None
    ) -> Relation:
        """A plan under names no other part of the query uses."""
        shown = plan.schema.names if names is None else list(names)
        inner = [self._names.fresh(n) for n in plan.schema.names]
        if inner != plan.schema.names:
            plan = Projection(
                plan,
                tuple(
                    Named(plan.column(old), new) for old, new in zip(plan.schema.names, inner, strict=True)
                ),
            )
        columns = tuple(ScopeColumn(s, plan.column(n), qualifier) for s, n in zip(shown, inner, strict=True))
        return Relation(plan, Scope(columns, self._facts))

    def _table(self, node: ast.Table) -> Relation:
        if len(node.name) == 1:
            found = self._queries.common_table(node.name[0])
            if found is not None:
                return self._aliased(found, node.alias or ast.TableAlias(node.name[0]), node)
        plan = node.bound or self._queries.catalog.table(node.name)
        if not isinstance(plan, LogicalPlan):
            known = ", ".join(sorted(self._queries.catalog.table_names())) or "(none)"
            self._queries.fail(
                f"[TABLE_OR_VIEW_NOT_FOUND] there is no table {'.'.join(node.name)}; the tables are {known}",
                node,
            )
        return self._aliased(self.fresh(plan, node.name), node.alias, node)

    def _aliased(self, relation: Relation, alias: ast.TableAlias | None, node: ast.Relation) -> Relation:
        if alias is None:
            return (
                relation
                if isinstance(node, ast.Table)
                else Relation(relation.plan, relation.scope.renamed(()))
            )
        if alias.columns and len(alias.columns) != len(relation.scope.visible):
            self._queries.fail(
                f"[ASSIGNMENT_ARITY_MISMATCH] {alias.name} has {len(relation.scope.visible)} column(s), "
                f"not {len(alias.columns)}",
                alias,
            )
        return Relation(relation.plan, relation.scope.renamed((alias.name,), alias.columns or None))

    # --- joins ---------------------------------------------------------------------------------------

    def _join(self, node: ast.Join, outer: OuterRow | None) -> Relation:
        left = self.relation(node.left, outer)
        if isinstance(node.right, ast.Lateral):
            self._queries.fail("LATERAL is not supported", node.right)
        right = self.relation(node.right, outer)
        kind = _KINDS[node.kind]
        if node.natural or node.using:
            return self.using(left, right, kind, self._shared(left, right, node), node)
        scope = left.scope.joined(right.scope)
        if node.condition is None:
            if kind is not JoinKind.INNER:
                return self.on(left, right, kind, None)
            return Relation(Join(left.plan, right.plan, kind), scope)
        analyzer = self._queries.expressions(scope, outer, "a join condition", left.plan, right.plan)
        return self.on(left, right, kind, analyzer.condition(node.condition, "ON"))

    def on(self, left: Relation, right: Relation, kind: JoinKind, condition: Expr | None) -> Relation:
        """Join two relations on a condition over both."""
        if condition is not None and any(isinstance(e, Subquery) for e in walk(condition)):
            if kind is not JoinKind.INNER:
                raise Unsupported("A subquery in the condition of an outer join is not supported.")
            joined = Filter(Join(left.plan, right.plan, kind), condition)
            return Relation(joined, self._out(joined, left, right, kind))
        keys, rest = split_condition(condition, left.plan.schema.names, right.plan.schema.names)
        plan = Join(left.plan, right.plan, kind, tuple(keys), conjunction(rest))
        return Relation(plan, self._out(plan, left, right, kind))

    def _out(self, plan: LogicalPlan, left: Relation, right: Relation, kind: JoinKind) -> Scope:
        scope = left.scope if kind in (JoinKind.SEMI, JoinKind.ANTI) else left.scope.joined(right.scope)
        return refreshed(scope, plan)

    def _shared(self, left: Relation, right: Relation, node: ast.Join) -> list[str]:
        fold = self._facts.fold
        if node.using:
            return list(node.using)
        have = {fold(c.name) for c in right.scope.visible}
        return [c.name for c in left.scope.visible if fold(c.name) in have]

    def using(
        self, left: Relation, right: Relation, kind: JoinKind, names: Sequence[str], node: ast.Join | None
    ) -> Relation:
        """Join on columns of the same names, which come first and once in the output."""
        fold = self._facts.fold
        convert = self._queries.expressions(left.scope, None, "USING").convert
        terms: list[Expr] = []
        pairs: list[tuple[ScopeColumn, ScopeColumn]] = []
        for name in names:
            sides = []
            for relation in (left, right):
                hits = [c for c in relation.scope.visible if fold(c.name) == fold(name)]
                if len(hits) != 1:
                    problem = "is ambiguous in" if hits else "is not on"
                    where = "left" if relation is left else "right"
                    error = "AMBIGUOUS_REFERENCE" if hits else "UNRESOLVED_USING_COLUMN_FOR_JOIN"
                    self._queries.fail(
                        f"[{error}] the USING column {name} {problem} the {where} side, "
                        f"whose columns are {relation.scope.candidates()}",
                        node,
                    )
                sides.append(hits[0])
            pairs.append((sides[0], sides[1]))
            terms.append(convert.call("eq", sides[0].value, sides[1].value))
        joined = self.on(left, right, kind, conjunction(terms))
        if kind in (JoinKind.SEMI, JoinKind.ANTI):
            keys = tuple(a for a, _ in pairs)
            others = tuple(c for c in left.scope.columns if c not in keys)
            return Relation(joined.plan, refreshed(Scope((*keys, *others), self._facts), joined.plan))
        plan = joined.plan
        first: list[ScopeColumn] = []
        for a, b in pairs:
            if kind is JoinKind.FULL:
                value = convert.call("coalesce", current(plan, a.value), current(plan, b.value))
                first.append(ScopeColumn(a.name, value))
            else:
                keep = b if kind is JoinKind.RIGHT else a
                first.append(ScopeColumn(keep.name, current(plan, keep.value), keep.qualifier))
        used = {c for pair in pairs for c in pair}
        rest = [c for c in (*left.scope.columns, *right.scope.columns) if c not in used]
        shown = [ScopeColumn(c.name, current(plan, c.value), c.qualifier, c.hidden) for c in rest]
        aside = {
            JoinKind.RIGHT: [a for a, _ in pairs],
            JoinKind.FULL: [c for side in zip(*pairs, strict=True) for c in side],
        }.get(kind, [b for _, b in pairs])
        hidden = [
            ScopeColumn(c.name, current(plan, c.value), c.qualifier, True) for c in aside if c.qualifier
        ]
        if kind is not JoinKind.FULL:
            return Relation(plan, Scope((*hidden, *first, *shown), self._facts))
        return self._materialized(plan, (*hidden, *first, *shown))

    def _materialized(self, plan: LogicalPlan, columns: Sequence[ScopeColumn]) -> Relation:
        """Turn computed scope columns into columns of a projection."""
        exprs = [Named(plan.column(n), n) for n in plan.schema.names]
        made: dict[Expr, str] = {}
        for column in columns:
            if not isinstance(column.value, Column):
                made[column.value] = self._names.fresh(column.name)
                exprs.append(Named(column.value, made[column.value]))
        projected = Projection(plan, tuple(exprs))
        out = tuple(
            ScopeColumn(c.name, projected.column(made[c.value]), c.qualifier, c.hidden)
            if c.value in made
            else c
            for c in columns
        )
        return Relation(projected, Scope(out, self._facts))

    # --- rows made here ------------------------------------------------------------------------------

    def values(self, node: ast.Values, outer: OuterRow | None) -> Relation:
        """VALUES: constants brought to one type a column, named col1, col2 ..."""
        analyzer = self._queries.expressions(Scope((), self._facts), outer, "VALUES")
        rows = [[analyzer.expr(v) for v in row] for row in node.rows]
        width = len(rows[0])
        for row, written in zip(rows, node.rows, strict=True):
            if len(row) != width:
                self._queries.fail(
                    f"[INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH] this row has {len(row)} value(s), the first has {width}",
                    written[0],
                )
        arrays, fields = [], []
        for i in range(width):
            try:
                typed = analyzer.convert.common([row[i] for row in rows], "VALUES")
                if len({r[i].dtype == t.STRING for r in rows if r[i].dtype != t.NULL}) > 1:
                    raise PlanError("strings stay strings in VALUES")
            except PlanError:
                self._queries.fail(
                    f"[INVALID_INLINE_TABLE.INCOMPATIBLE_TYPES_IN_INLINE_TABLE] column {i + 1} mixes types",
                    node,
                )
            constants = [constant_of(v) for v in typed]
            for constant, written in zip(constants, node.rows, strict=True):
                if constant is None:
                    self._queries.fail(
                        "[INVALID_INLINE_TABLE.CANNOT_EVALUATE_EXPRESSION_IN_INLINE_TABLE] VALUES takes constants",
                        written[i],
                    )
            dtype = typed[0].dtype
            plain = [literal_vector(c).plain() for c in constants if c is not None]
            arrays.append(
                pa.concat_arrays([pa.repeat(s, 1) if dtype != t.NULL else pa.nulls(1) for s in plain])
            )
            fields.append(
                pa.field(f"col{i + 1}", dtype, any(c is None or c.value is None for c in constants))
            )
        schema = pa.schema(fields)
        table = pa.Table.from_arrays(arrays, schema=schema)
        return self.fresh(memory_scan("values", table, repr((schema.to_string(), table.to_pydict()))), ())

    def _function(self, node: ast.TableFunction) -> Relation:
        name = node.name[-1].lower()
        if name != "range":
            self._queries.fail(
                f"[UNRESOLVABLE_TABLE_VALUED_FUNCTION] there is no table function {name}", node
            )
        analyzer = self._queries.expressions(Scope((), self._facts), None, "range")
        numbers: list[int] = []
        for argument in node.arguments:
            with analyzer.at(argument):
                value = constant_of(analyzer.convert.cast(analyzer.expr(argument), t.LONG))
                if value is None or value.value is None:
                    analyzer.fail("range takes constant whole numbers", argument)
                numbers.append(value.value)
        if not 1 <= len(numbers) <= 4:
            self._queries.fail("[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] range takes 1 to 4 numbers", node)
        start, end = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
        step = numbers[2] if len(numbers) > 2 else 1
        if step == 0:
            self._queries.fail("range cannot take steps of 0", node)
        rows = range(start, end, step)
        if len(rows) > _MOST_RANGE_ROWS:
            self._queries.fail(f"range of more than {_MOST_RANGE_ROWS} rows is not supported", node)
        column = pa.array(np.arange(start, start + len(rows) * step, step, dtype=np.int64)[: len(rows)])
        table = pa.Table.from_arrays([column], schema=pa.schema([pa.field("id", t.LONG, False)]))
        return self.fresh(memory_scan("range", table, f"range({start},{end},{step})"), ())


def memory_scan(name: str, table: pa.Table, identity: str) -> LogicalPlan:
    """A scan of rows known when the query is read; ``identity`` makes equal rows equal plans."""
    return Scan(name, MemorySource(table.schema, identity, table))


def one_row() -> LogicalPlan:
    """One row without columns."""
    return Scan("one_row", one_row_source(), ())


def current(plan: LogicalPlan, value: Expr) -> Expr:
    """A column as a plan has it now: outer joins make columns nullable."""
    return plan.column(value.name) if isinstance(value, Column) else value


def refreshed(scope: Scope, plan: LogicalPlan) -> Scope:
    """A scope whose columns are the plan's now."""
    return Scope(
        tuple(ScopeColumn(c.name, current(plan, c.value), c.qualifier, c.hidden) for c in scope.columns),
        scope.facts,
    )
