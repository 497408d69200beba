"""Compiles logical expressions to vectorized programs."""

from kquery_spark.physical.expr.program import Program

__all__ = ["Program"]
