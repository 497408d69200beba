"""The operator that keeps the first rows of groups, in a task that has only a part of each group."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kquery_spark.expr import SortKey
from kquery_spark.physical.operators import WindowGroupLimitExec
from kquery_spark.physical.operators import window_group_limit as module
from kquery_spark.physical.windows import GroupLimit
from tests.physical.harness import c, execute, read, scan


def limited(table: pa.Table, *, is_partial: bool) -> pa.Table:
    plan = WindowGroupLimitExec(
        read(table),
        (c(scan(table), "g"),),
        (SortKey(c(scan(table), "v")),),
        GroupLimit("row_number", 1),
        is_partial,
    )
    return execute(plan, {"t": table}, rows=100)[0]


@pytest.fixture(autouse=True)
def judged_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 rows are pruned and judged."""
    monkeypatch.setattr(module, "_MIN_NEW_ROWS", 200)
    monkeypatch.setattr(module, "_MIN_JUDGED_ROWS", 200)


def test_rows_of_small_groups_pass_on_as_they_are() -> None:
    """The first 200 rows are 200 groups, so the other 200 rows, of the same groups, are not pruned."""
    table = pa.table({"g": [*range(200), *range(200)], "v": range(400)})
    assert limited(table, is_partial=True).equals(table)
    assert limited(table, is_partial=False).equals(table.slice(0, 200))


def test_rows_of_large_groups_are_pruned() -> None:
    table = pa.table({"g": [i // 4 for i in range(400)], "v": range(400)})
    assert limited(table, is_partial=True).column("v").to_pylist() == list(range(0, 400, 4))
