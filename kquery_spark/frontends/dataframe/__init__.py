"""The DataFrame API: PySpark's methods, which build the same syntax trees as SQL, so both have the same semantics."""

from kquery_spark.frontends.dataframe.builder import GroupedData
from kquery_spark.frontends.dataframe.column import (
    Column,
    col,
    expr,
    lit,
    sql_expr,
    when,
)
from kquery_spark.frontends.dataframe.frame import DataFrame
from kquery_spark.frontends.dataframe.functions import named_function
from kquery_spark.frontends.dataframe.open_plan import OpenPlan
from kquery_spark.frontends.dataframe.session import Session
from kquery_spark.frontends.dataframe.user_functions import ArrowUdf, arrow_udf
from kquery_spark.frontends.dataframe.windows import Window, WindowBuilder

__all__ = [
    "ArrowUdf",
    "Column",
    "DataFrame",
    "GroupedData",
    "OpenPlan",
    "Session",
    "Window",
    "WindowBuilder",
    "arrow_udf",
    "col",
    "expr",
    "lit",
    "named_function",
    "sql_expr",
    "when",
]
