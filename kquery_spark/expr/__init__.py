"""Logical expressions: small frozen dataclasses, resolved and typed, compared by structure."""

from kquery_spark.expr.aggregates import AggregateCall
from kquery_spark.expr.lambdas import HigherOrder
from kquery_spark.expr.nodes import Call, Case, Cast, Column, Expr, InList, Literal, Named, SortKey
from kquery_spark.expr.traverse import columns_of, rename_columns, substitute, transform, walk
from kquery_spark.expr.user_calls import UserCall
from kquery_spark.expr.windows import Frame, FrameUnit, WindowCall

__all__ = [
    "AggregateCall",
    "Call",
    "Case",
    "Cast",
    "Column",
    "Expr",
    "Frame",
    "FrameUnit",
    "HigherOrder",
    "InList",
    "Literal",
    "Named",
    "SortKey",
    "UserCall",
    "WindowCall",
    "columns_of",
    "rename_columns",
    "substitute",
    "transform",
    "walk",
]
