"""Names in expressions, resolved: columns by origin or by name, aliases of the select list, the row around."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from kquery_spark.errors import PlanError, SqlError
from kquery_spark.expr import Column, Expr
from kquery_spark.frontends.sql.analyzer.calls import bare_call
from kquery_spark.frontends.sql.analyzer.scope import Found, Scope
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.logical.lineage import lineage

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.expressions import ExpressionAnalyzer


def resolve_name(analyzer: ExpressionAnalyzer, node: ast.Name) -> Expr:
    """The value of a name: of a column by its origin or by its name, or of a function that is called without ()."""
    found = _by_origin(analyzer, node)
    if found is None:
        found = find_name(analyzer, node.parts, node.pos if node.pos >= 0 else None)
        _check_origin(analyzer, node, found)
    if found is None:
        if len(node.parts) == 1:
            made = bare_call(analyzer, node.parts[0])
            if made is not None:
                return made
        _fail_unknown(analyzer, node)
    value = found.value
    for name in found.fields:
        value = analyzer.field(value, name)
    return value


def find_name(analyzer: ExpressionAnalyzer, parts: tuple[str, ...], position: int | None) -> Found | None:
    """What a name means here: columns, then earlier aliases of the select list, then the row around."""
    if analyzer.first is not None:
        found = _first(analyzer, analyzer.first, parts, position)
        if found is not None:
            return found
    found = analyzer.scope.find(parts, analyzer.sql, position)
    if found is None:
        found = _alias(analyzer, parts, position)
    if found is None and analyzer.outer is not None:
        found = analyzer.outer.find(parts, position)
    return found


def shown_name(analyzer: ExpressionAnalyzer, node: ast.Name) -> str:
    """A name inside an automatic column name: without its qualifier."""
    found = _by_origin(analyzer, node) or analyzer.scope.find(node.parts, analyzer.sql, None)
    if found is None:
        if _alias(analyzer, node.parts, None) is not None:
            return f"lateralAliasReference({'.'.join(node.parts)})"
        found = None if analyzer.outer is None else analyzer.outer.find(node.parts, None)
    if found is None:
        return f"{node.parts[-1]}()"
    return ".".join((found.column, *found.fields))


def _first(
    analyzer: ExpressionAnalyzer, first: Scope, parts: tuple[str, ...], position: int | None
) -> Found | None:
    try:
        return first.find(parts, analyzer.sql, position)
    except SqlError:
        if analyzer.place != "ORDER BY":
            raise
        return None  # of two selected columns of a name, ORDER BY means neither: the input's may be meant


def _alias(analyzer: ExpressionAnalyzer, parts: tuple[str, ...], position: int | None) -> Found | None:
    key = analyzer.facts.fold(parts[0])
    if key not in analyzer.aliases:
        return None
    value = analyzer.aliases[key]
    if analyzer.in_window:
        raise SqlError(
            f"[UNSUPPORTED_FEATURE.LATERAL_COLUMN_ALIAS_IN_WINDOW] {parts[0]}, an alias of the select list, "
            "cannot be read in a window expression",
            analyzer.sql,
            position,
        )
    if value is None:
        raise SqlError(
            f"[AMBIGUOUS_LATERAL_COLUMN_ALIAS] {parts[0]} names several columns of the select list",
            analyzer.sql,
            position,
        )
    return Found(value, parts[0], parts[1:])


def _by_origin(analyzer: ExpressionAnalyzer, node: ast.Name) -> Found | None:
    """The column of this very lineage, also where another has its name, or where it is not shown."""
    if not (node.origin and analyzer.plans):
        return None
    fold = analyzer.facts.fold
    same = [
        c
        for c in analyzer.scope.columns
        if fold(c.name) == fold(node.parts[0]) and _lineage(analyzer, c.value) == node.origin
    ]
    for hidden in (False, True):
        values = list(dict.fromkeys(c.value for c in same if c.hidden == hidden))
        if values:
            return Found(values[0], node.parts[0], node.parts[1:]) if len(values) == 1 else None
    return None


def _check_origin(analyzer: ExpressionAnalyzer, node: ast.Name, found: Found | None) -> None:
    known = None if found is None or not node.origin else _lineage(analyzer, found.value)
    if known is not None and known != node.origin:
        raise PlanError(
            f"the column {node.parts[0]} of another DataFrame is not this one's {node.parts[0]}; "
            'give the frames names with alias() before the join and write col("a.'
            f'{node.parts[0]}"), or col("{node.parts[0]}") for this one\'s'
        )


def _lineage(analyzer: ExpressionAnalyzer, value: Expr) -> str | None:
    if isinstance(value, Column):
        for plan in analyzer.plans:
            if value.name in plan.schema.names:
                return lineage(plan, value.name)
    return None


def _fail_unknown(analyzer: ExpressionAnalyzer, node: ast.Name) -> NoReturn:
    raise SqlError(
        f"[UNRESOLVED_COLUMN.WITH{'' if analyzer.scope.visible else 'OUT'}_SUGGESTION] there is no column "
        f"{'.'.join(node.parts)}; the columns are {analyzer.scope.candidates()}",
        analyzer.sql,
        node.pos if node.pos >= 0 else None,
    )
