"""Logical expressions compiled to vectorized programs."""

from kquery_spark.physical.expr.program import Program, evaluate_literal

__all__ = ["Program", "evaluate_literal"]
