"""From a logical plan to stages, once for every way of running them: optimize, check, plan physically, cut."""

from kquery_spark.compiler.compile import CompiledQuery, compile_query
from kquery_spark.compiler.placement import Placement

__all__ = ["CompiledQuery", "Placement", "compile_query"]
