"""The compiler turns a logical plan into stages: optimize, check, plan physically, cut. All executors share it."""

from kquery_spark.compiler.compile import CompiledQuery, compile_query
from kquery_spark.compiler.placement import Placement

__all__ = ["CompiledQuery", "Placement", "compile_query"]
