"""Determines the name of an output column."""

from __future__ import annotations

from kquery_spark.frontends.sql.analyzer.naming import (  # noqa: F401  they register the printers
    call_text,
    expression_text,
    literal_text,
    operator_text,
)
from kquery_spark.frontends.sql.analyzer.naming.context import NamingContext
from kquery_spark.frontends.sql.analyzer.naming.writer import NameWriter
from kquery_spark.frontends.sql.ast import expressions as ast


def column_name(node: ast.Expression, context: NamingContext) -> str:
    """The alias, the name of a column or field, or the printed expression."""
    match node:
        case ast.Aliased():
            return node.alias
        case ast.Name():
            text = context.name_text(node)
            return text if text.endswith("()") else node.parts[-1]
        case ast.Field() if _is_path(node.base):
            return node.name
        case ast.Cast(operand=ast.Name() as inner):
            # A cast of a column keeps the column's name, but a cast of a struct field does not.
            text = context.name_text(inner)
            if "." not in text and "(" not in text:
                return inner.parts[-1]
    return NameWriter(context).text(node)


def _is_path(node: ast.Expression) -> bool:
    """True if field accesses of this node form one dotted name: ``(a).b.c``."""
    return isinstance(node, ast.Name) or (isinstance(node, ast.Field) and _is_path(node.base))
