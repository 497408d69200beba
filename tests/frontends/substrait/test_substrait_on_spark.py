"""Plans that run in a context on Spark, and the list of functions in the guide."""

from __future__ import annotations

import re

import pytest

import kquery_spark as kq
from kquery_spark.frontends.substrait import aggregate_functions, functions
from tests.conftest import ROOT
from tests.frontends.substrait import queries
from tests.frontends.substrait.engines import in_any_order, rows_of

pytest.importorskip("substrait")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT g, sum(l) AS n FROM t GROUP BY g",
        "SELECT i, v FROM t LEFT JOIN u ON i = k",
        "SELECT i, lag(i) OVER (ORDER BY l, i) AS p FROM t",
    ],
)
def test_plans_run_in_a_context_on_spark(sql, spark):
    context = kq.ExecutionContext(spark)
    context.register_arrow("t", queries.T)
    context.register_arrow("u", queries.U)
    plan = queries.context().sql(sql).to_substrait()
    frame = kq.plan_from_substrait(plan, context)
    expected = in_any_order(rows_of(queries.context().sql(sql).to_arrow()))
    assert in_any_order(rows_of(frame.to_arrow())) == expected
    assert in_any_order(rows_of(frame.to_spark().toArrow())) == expected
    assert context.sql(sql).to_substrait() == plan


def test_the_guide_lists_all_functions():
    page = (ROOT / "docs" / "guide" / "substrait.md").read_text()
    rows = re.findall(
        r"^\| (scalar|aggregate, also over windows|window|only in plans of DataFusion) \| (.*) \|$",
        page,
        re.MULTILINE,
    )
    listed = [set(re.findall(r"`(\w+)`", names)) for _, names in rows]
    scalars = functions.SCALARS.values()
    aggregates = aggregate_functions.AGGREGATES
    assert listed == [
        {e.name for e in scalars if e.extensions},
        {e.name for e in aggregates if e.extensions and e.is_aggregate},
        {e.name for e in aggregates if not e.is_aggregate},
        {e.name for e in (*scalars, *aggregates) if not e.extensions},
    ]
