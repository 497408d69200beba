"""The select list: expressions, stars and generators."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Expr, walk
from kquery_spark.frontends.sql.analyzer.expressions.output_names import output_name
from kquery_spark.frontends.sql.analyzer.generators import generator_of
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation, ScopeColumn
from kquery_spark.frontends.sql.analyzer.select_block.context import SelectContext, SelectItem
from kquery_spark.frontends.sql.ast import expressions as ast

_MAX_NODES = 100_000
"""The maximum size of an expression with aliases: ``a + a AS b, b + b AS c`` and so on doubles it with each item."""


def select_items(
    context: SelectContext, relation: ResolvedRelation
) -> tuple[ResolvedRelation, list[SelectItem]]:
    """Resolve the select list; returns the relation with the columns of generators, and the items."""
    aliases: dict[str, Expr | None] = {}
    items: list[SelectItem] = []
    fold = relation.scope.facts.fold
    for node in context.node.items:
        if isinstance(node, ast.Star):
            items += _star_items(context, node, relation)
            continue
        generated = generator_of(node)
        if generated is not None:
            relation, columns = context.queries.generators.generate(relation, generated, context.outer)
            items += [SelectItem(c.name, c.value, None) for c in columns]
            continue
        analyzer = context.expressions(
            relation.scope, "the select list", allows_aggregates=True, allows_windows=True, aliases=aliases
        )
        expr = analyzer.expr(node)
        if aliases:
            _check_size(expr)
        items.append(SelectItem(output_name(node, analyzer), expr, node))
        if isinstance(node, ast.Aliased):
            key = fold(node.alias)
            aliases[key] = None if key in aliases else expr
    return relation, items


def _check_size(expr: Expr) -> None:
    """Raise an error for a huge expression: each name of an earlier item is replaced by a copy of its expression."""
    if next(islice(walk(expr), _MAX_NODES, None), None) is not None:
        raise Unsupported(
            f"a select item whose aliases expand to more than {_MAX_NODES} operators is not supported"
        )


def _star_items(context: SelectContext, node: ast.Star, relation: ResolvedRelation) -> list[SelectItem]:
    columns = relation.scope.star(node.qualifier)
    if not columns and node.qualifier:
        return _struct_items(context, node, relation)
    excluded: set[int] = set()
    for parts in node.excluded:
        matches = {i for i, column in enumerate(columns) if _has_path(context, column, parts)}
        if not matches:
            context.queries.fail(
                f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] EXCEPT names {'.'.join(parts)}; "
                f"the columns are {relation.scope.candidates()}",
                node,
            )
        excluded |= matches
    if node.pos >= 0:
        _check_excluded(context, node, columns)
    return [SelectItem(c.name, c.value, None) for i, c in enumerate(columns) if i not in excluded]


def _check_excluded(context: SelectContext, node: ast.Star, columns: Sequence[ScopeColumn]) -> None:
    """Check that each name in EXCEPT refers to exactly one column, and no two to the same; ``drop`` is less strict."""
    excluded: list[Expr] = []
    for parts in node.excluded:
        values = list(dict.fromkeys(c.value for c in columns if _has_path(context, c, parts)))
        if len(values) > 1:
            context.queries.fail(f"[AMBIGUOUS_REFERENCE] Reference {'.'.join(parts)} is ambiguous", node)
        excluded += values
    if len(set(excluded)) < len(excluded):
        context.queries.fail("[EXCEPT_OVERLAPPING_COLUMNS] EXCEPT names a column twice", node)


def _has_path(context: SelectContext, column: ScopeColumn, parts: tuple[str, ...]) -> bool:
    """Return whether a column's qualified name ends with these parts."""
    fold = context.queries.facts.fold
    path = (*column.qualifier, column.name)[-len(parts) :]
    return tuple(map(fold, path)) == tuple(map(fold, parts))


def _struct_items(context: SelectContext, node: ast.Star, relation: ResolvedRelation) -> list[SelectItem]:
    """``s.*`` of a struct: its fields."""
    queries = context.queries
    resolved = relation.scope.find(node.qualifier, queries.sql, node.pos)
    if resolved is None or node.excluded:
        queries.fail(
            f"[CANNOT_RESOLVE_STAR_EXPAND] there is nothing called {'.'.join(node.qualifier)} to expand; "
            f"the columns are {relation.scope.candidates()}",
            node,
        )
    analyzer = context.expressions(relation.scope, "the select list")
    struct = resolved.value
    with analyzer.at(node):
        for name in resolved.fields:
            struct = analyzer.field(struct, name)
        if not pa.types.is_struct(struct.dtype):
            raise PlanError("[CANNOT_RESOLVE_STAR_EXPAND] only structs can be expanded")
        return [SelectItem(f.name, analyzer.field(struct, f.name), None) for f in struct.dtype]
