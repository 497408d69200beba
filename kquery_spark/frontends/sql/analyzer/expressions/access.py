"""Fields, subscripts, structs and stars."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import EXPRESSIONS, ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.expressions.names import find_name
from kquery_spark.frontends.sql.analyzer.expressions.output_names import output_name
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.types import names as t


@EXPRESSIONS.handles(ast.Aliased)
def aliased(analyzer: ExpressionAnalyzer, node: ast.Aliased) -> Expr:
    """The expression under the alias."""
    return analyzer.expr(node.expression)


@EXPRESSIONS.handles(ast.Field)
def field(analyzer: ExpressionAnalyzer, node: ast.Field) -> Expr:
    """``base.name``."""
    return analyzer.field(analyzer.expr(node.base), node.name)


@EXPRESSIONS.handles(ast.Subscript)
def subscript(analyzer: ExpressionAnalyzer, node: ast.Subscript) -> Expr:
    """``base[index]``: a map's value, a struct's field or an array's item."""
    base, index = analyzer.expr(node.base), analyzer.expr(node.index)
    if pa.types.is_map(base.dtype):
        return analyzer.call("get_map_value", base, analyzer.convert.cast(index, base.dtype.key_type))
    if pa.types.is_struct(base.dtype) and isinstance(index, Literal) and isinstance(index.value, str):
        return analyzer.field(base, index.value)
    if not pa.types.is_list(base.dtype):
        raise PlanError(f"[INVALID_EXTRACT_BASE_FIELD_TYPE] {t.spark_name(base.dtype)} has no elements")
    return analyzer.call("get_array_item", base, index)


@EXPRESSIONS.handles(ast.Row)
def row(analyzer: ExpressionAnalyzer, node: ast.Row) -> Expr:
    """``(a, b)`` as a struct."""
    return struct_of(analyzer, node.items)


@EXPRESSIONS.handles(ast.Star)
def star(analyzer: ExpressionAnalyzer, node: ast.Star) -> Expr:
    """``*`` is not an expression: the select list and ``count`` expand it before they analyze their items."""
    analyzer.fail("[INVALID_USAGE_OF_STAR_OR_REGEX] * cannot stand here", node)


def struct_of(analyzer: ExpressionAnalyzer, items: Sequence[ast.Expression]) -> Expr:
    """A struct of expressions, its fields named as Spark names them."""
    args: list[Expr] = []
    for position, item in enumerate(items, 1):
        value = analyzer.expr(item)
        args += [Literal(_field_name(analyzer, item, value, position), t.STRING), value]
    return analyzer.call("named_struct", *args)


def _field_name(analyzer: ExpressionAnalyzer, item: ast.Expression, value: Expr, position: int) -> str:
    is_field = isinstance(value, Call) and value.entry.reads_field
    match item:
        case ast.Name() if find_name(analyzer, item.parts, None) is not None:
            return item.parts[-1]
        case ast.Name() | ast.Aliased():
            return output_name(item, analyzer)
        case ast.Field(name=name) | ast.Subscript(index=ast.StringLiteral(value=name)) if is_field:
            return name
    return f"col{position}"
