"""Resolves names: columns by lineage or by name, aliases of the select list, columns of the outer query."""

from __future__ import annotations

from typing import NoReturn

from kquery_spark.errors import PlanError, SqlError
from kquery_spark.expr import Column, Expr
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import EXPRESSIONS, ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.expressions.session_values import session_value
from kquery_spark.frontends.sql.analyzer.scope import ResolvedName, ScopeColumn
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.suggestions import did_you_mean
from kquery_spark.functions.special_forms import SessionValue, special_form
from kquery_spark.logical.lineage import lineage


@EXPRESSIONS.handles(ast.Name)
def name(analyzer: ExpressionAnalyzer, node: ast.Name) -> Expr:
    """A column by its lineage or its name, or a function that is called without parentheses."""
    resolved = _by_lineage(analyzer, node)
    if resolved is None:
        resolved = find_name(analyzer, node.parts, node.pos if node.pos >= 0 else None)
        _check_lineage(analyzer, node, resolved)
    if resolved is None:
        form = special_form(node.parts[0].lower()) if len(node.parts) == 1 else None
        if isinstance(form, SessionValue) and form.name == node.parts[0].lower():
            return session_value(analyzer, form)
        _fail_unknown(analyzer, node)
    value = resolved.value
    for field in resolved.fields:
        value = analyzer.field(value, field)
    return value


def find_name(
    analyzer: ExpressionAnalyzer, parts: tuple[str, ...], position: int | None
) -> ResolvedName | None:
    """A name's value: of a column, then of an earlier alias of the select list, then of the outer query."""
    resolved = _in_preferred_scope(analyzer, parts, position)
    if resolved is None:
        resolved = analyzer.scope.find(parts, analyzer.sql, position)
    if resolved is None:
        resolved = _select_alias(analyzer, parts, position)
    if resolved is None and analyzer.outer is not None:
        resolved = analyzer.outer.find(parts, position)
    return resolved


def unqualified_text(analyzer: ExpressionAnalyzer, node: ast.Name) -> str:
    """A name inside an automatic column name: without its qualifier."""
    resolved = _by_lineage(analyzer, node) or analyzer.scope.find(node.parts, analyzer.sql, None)
    if resolved is None:
        if _select_alias(analyzer, node.parts, None) is not None:
            return f"lateralAliasReference({'.'.join(node.parts)})"
        resolved = None if analyzer.outer is None else analyzer.outer.find(node.parts, None)
    if resolved is None:
        return f"{node.parts[-1]}()"
    return ".".join((resolved.column, *resolved.fields))


def _in_preferred_scope(
    analyzer: ExpressionAnalyzer, parts: tuple[str, ...], position: int | None
) -> ResolvedName | None:
    if analyzer.preferred is None:
        return None
    try:
        return analyzer.preferred.find(parts, analyzer.sql, position)
    except SqlError:
        if analyzer.clause != "ORDER BY":
            raise
        return None  # ambiguous in the select list, so ORDER BY may refer to a column of the input


def _select_alias(
    analyzer: ExpressionAnalyzer, parts: tuple[str, ...], position: int | None
) -> ResolvedName | None:
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
    return ResolvedName(value, parts[0], parts[1:])


def _by_lineage(analyzer: ExpressionAnalyzer, node: ast.Name) -> ResolvedName | None:
    """Find the column with the name's lineage, even if it is hidden or another column has the same name."""
    if not (node.origin and analyzer.plans):
        return None
    candidates = [c for c in analyzer.scope.columns if _has_lineage(analyzer, c, node)]
    for hidden in (False, True):
        values = list(dict.fromkeys(c.value for c in candidates if c.hidden == hidden))
        if values:
            return ResolvedName(values[0], node.parts[0], node.parts[1:]) if len(values) == 1 else None
    return None


def _has_lineage(analyzer: ExpressionAnalyzer, column: ScopeColumn, node: ast.Name) -> bool:
    fold = analyzer.facts.fold
    same_name = fold(column.name) == fold(node.parts[0])
    return same_name and _lineage(analyzer, column.value) == node.origin


def _check_lineage(analyzer: ExpressionAnalyzer, node: ast.Name, resolved: ResolvedName | None) -> None:
    known = None if resolved is None or not node.origin else _lineage(analyzer, resolved.value)
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
    scope, name = analyzer.scope, ".".join(node.parts)
    raise SqlError(
        f"[UNRESOLVED_COLUMN.WITH{'' if scope.visible else 'OUT'}_SUGGESTION] unknown column "
        f"{name}{did_you_mean(name, scope.names())}; the columns are {scope.candidates()}",
        analyzer.sql,
        node.pos if node.pos >= 0 else None,
    )
