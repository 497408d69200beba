"""Provides automatic column names with facts from the analyzer: resolved names, types, windows, captured columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.frontends.sql.analyzer.expressions.analyzer import ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.expressions.names import unqualified_text
from kquery_spark.frontends.sql.analyzer.expressions.subqueries import captured_names
from kquery_spark.frontends.sql.analyzer.expressions.temporal import months_of
from kquery_spark.frontends.sql.analyzer.naming.column_names import column_name
from kquery_spark.frontends.sql.analyzer.naming.context import NamingContext
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import windows as window_ast
from kquery_spark.frontends.sql.ast.queries import Query


def output_name(node: ast.Expression, analyzer: ExpressionAnalyzer) -> str:
    """The name of the column that holds an expression's value."""
    return column_name(node, AnalyzerNamingContext(analyzer))


@dataclass(frozen=True)
class AnalyzerNamingContext(NamingContext):
    """A NamingContext based on an analyzer's scope."""

    analyzer: ExpressionAnalyzer

    @override
    def name_text(self, node: ast.Name) -> str:
        return unqualified_text(self.analyzer, node)

    @override
    def star_text(self) -> str:
        return ", ".join(c.name for c in self.analyzer.scope.visible)

    @override
    def dtype_of(self, node: ast.Expression) -> pa.DataType | None:
        if isinstance(node, ast.IntervalLiteral) or months_of(self.analyzer, node) is not None:
            return None
        return replace(self.analyzer, reuses_subqueries=True).expr(node).dtype

    @override
    def window_spec(self, window: window_ast.Window) -> window_ast.WindowSpec | None:
        if isinstance(window, window_ast.WindowSpec):
            return window
        return self.analyzer.named_windows.get(window.name)

    @override
    def captured_names(self, query: Query) -> list[str]:
        return captured_names(self.analyzer, query)
