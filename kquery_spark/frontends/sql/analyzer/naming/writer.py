"""Prints expressions like Spark's ``Expression.sql``: with a printer per node class, otherwise as plain SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kquery_spark.frontends.sql.analyzer.handlers import HandlerTable
from kquery_spark.frontends.sql.analyzer.naming.context import NamingContext
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast.node import Node
from kquery_spark.frontends.sql.printer import to_sql


@dataclass(frozen=True)
class NameWriter:
    """Prints expressions; ``context`` resolves the names in them."""

    context: NamingContext

    def text(self, node: ast.Expression) -> str:
        """Print an expression inside of a column name."""
        printer = PRINTERS.get(type(node))
        return to_sql(node) if printer is None else printer(self, node)

    def comma_separated(self, nodes: Sequence[ast.Expression]) -> str:
        """Several expressions."""
        return ", ".join(self.text(n) for n in nodes)


def negated(text: str, is_negated: bool) -> str:
    """A predicate's text, or NOT of it."""
    return f"(NOT {text})" if is_negated else text


NamePrinter = Callable[[NameWriter, Any], str]
PRINTERS: HandlerTable[type[Node], NamePrinter] = HandlerTable()
