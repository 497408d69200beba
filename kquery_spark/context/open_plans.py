"""``kq.plan()`` and ``kq.sql_plan()``: plans with an open input, which are transform functions."""

from __future__ import annotations

from typing import Any

from kquery_spark.frontends.dataframe.builder import table_query
from kquery_spark.frontends.dataframe.open_plan import OpenPlan
from kquery_spark.frontends.sql import parse_query
from kquery_spark.frontends.sql.ast.relations import Table

OPEN_INPUT = "input"


def plan() -> OpenPlan:
    """Return an empty plan whose input is the DataFrame that it is applied to: ``df.transform(kq.plan().filter(...))``."""
    return OpenPlan(table_query(Table((OPEN_INPUT,))), _apply)


def sql_plan(text: str) -> OpenPlan:
    """Return a plan from SQL in which the table ``input`` is the DataFrame that the plan is applied to."""
    query = parse_query(text)
    return OpenPlan(query, lambda given, frame: _apply(given, frame, text if given.query is query else ""))


def _apply(given: OpenPlan, frame: Any, text: str = "") -> Any:
    from kquery_spark.context.on_spark import apply_open_plan

    return apply_open_plan(given, frame, text)
