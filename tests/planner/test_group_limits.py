"""Group limits of Spark's plans: one exchange with a window that computes their ranking, and applied there."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import Named, SortKey, WindowCall
from kquery_spark.logical import Window, WindowGroupLimit
from kquery_spark.physical.operators import ExchangeExec, WindowExec, WindowGroupLimitExec
from kquery_spark.planner import plan_query
from tests.physical.harness import c, scan

TABLE = pa.table({"g": [1, 2, 1, 2], "v": [1, 2, 3, 4]})
SHUFFLES = EngineConfig(parallelism=2, small_bytes=-1, shuffle_partitions=3)
SCAN = scan(TABLE)
G, V = c(SCAN, "g"), SortKey(c(SCAN, "v"))
ROW_NUMBER = Named(WindowCall.of("row_number"), "r")
RANK = Named(WindowCall.of("rank"), "k")
SUM = Named(WindowCall.of("sum", V.expr), "s")


def operators(plan: Window) -> list[str]:
    found, node = [], plan_query(plan, SHUFFLES)
    while node.children:
        if isinstance(node, WindowExec | WindowGroupLimitExec | ExchangeExec):
            found.append(node.label().partition(",")[0] if not isinstance(node, ExchangeExec) else "exchange")
        (node,) = node.children
    return found


def window(calls: tuple[Named, ...], function: str = "row_number", order: SortKey = V) -> Window:
    return Window(WindowGroupLimit(SCAN, (G,), (V,), function, 2), calls, (G,), (order,))


@pytest.mark.parametrize("calls", [(ROW_NUMBER,), (RANK, ROW_NUMBER)], ids=["itself", "two rankings"])
def test_the_window_applies_the_limit(calls: tuple[Named, ...]) -> None:
    assert operators(window(calls)) == [
        "WindowExec: row_number <= 2",
        "exchange",
        "WindowGroupLimitExec: partial",
    ]


@pytest.mark.parametrize(
    "plan",
    [window((RANK,)), window((ROW_NUMBER, SUM)), window((ROW_NUMBER,), order=SortKey(V.expr, False))],
    ids=["another ranking", "a sum", "another order"],
)
def test_other_windows_are_above_the_limit(plan: Window) -> None:
    """They compute over the rows that the limit leaves, as the plan says."""
    first, *rest = operators(plan)
    assert first.startswith("WindowExec: [")
    assert rest == ["WindowGroupLimitExec: row_number <= 2", "exchange", "WindowGroupLimitExec: partial"]
