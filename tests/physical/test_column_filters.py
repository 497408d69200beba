"""A join by several columns filters each scan that has some of them, by these columns alone."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import Call, Column, Expr, Literal, Named
from kquery_spark.logical.join import JoinKey, JoinKind
from kquery_spark.physical.dynamic_filters.runtime_filter import MatchFilter
from kquery_spark.physical.joins import column_matches
from kquery_spark.physical.joins.build_side import BuildSide
from kquery_spark.physical.operators import (
    AggregateExec,
    JoinExec,
    Phase,
    PhysicalPlan,
    ProjectionExec,
    ScanExec,
    TaskContext,
)
from kquery_spark.physical.operators.replicate import ReplicateExec
from kquery_spark.types import names as t
from kquery_spark.types.vector import Vector
from tests.physical.harness import PiecesSource, join_table, rows_of

NAN = float("nan")
D = Decimal
WIDE = 2**61
VALUES = {
    "integers": ([1, 3, None, 7, 3], [0, 1, 2, 3, 7, 8, None, -(2**63), 2**63 - 1]),
    "wide integers": ([-WIDE, 5, None, WIDE], [-WIDE, 4, 5, 6, WIDE, None, WIDE - 1]),
    "floats": ([1.5, NAN, -0.0, None], [1.5, NAN, 0.0, -0.0, 2.5, None, float("inf")]),
    "strings": (["a", "é", None, ""], ["a", "b", "", "é", None]),
    "decimals": ([D("1.50"), None, D("-2.25")], [D("1.50"), D("1.51"), D("-2.25"), None]),
    "wide decimals": ([D(10) ** 30, None, D("0.5")], [D(10) ** 30, D("0.5"), D("0.4"), None]),
    "dates": ([dt.date(2024, 1, 1), None], [dt.date(2024, 1, 1), dt.date(1969, 1, 1), None]),
    "booleans": ([True, None], [True, False, None]),
    "no rows": ([], [0, 1, None]),
    "only NULL": ([None, None], [0, 1, None]),
}


def comparable(value: object) -> object:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


@pytest.mark.parametrize("null_safe", [False, True])
@pytest.mark.parametrize("has_flags", [True, False])
@pytest.mark.parametrize("kind", VALUES)
def test_values_of_one_column(
    kind: str, null_safe: bool, has_flags: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """has_flags: False tests the hash table that replaces the flags if there are many possible codes."""
    monkeypatch.setattr(column_matches, "reserve_flags", lambda *_: has_flags)
    built, probed = VALUES[kind]
    dtype = pa.array([*built, *probed]).type
    build, probe = pa.array(built, dtype), pa.array(probed, dtype)
    others = Vector(t.LONG, pa.array(range(len(built)), t.LONG))
    table = join_table([Vector(dtype, build), others], [null_safe, False])
    hits = table.columns[0].contains([Vector(dtype, probe)], len(probed))
    known = {comparable(v) for v in built if null_safe or v is not None}
    for value, hit in zip(probed, hits.tolist(), strict=True):
        # NULL in a null-safe column may pass without a match.
        assert hit or comparable(value) not in known
        assert comparable(value) in known or not hit or (null_safe and value is None)


def test_a_table_of_one_column_has_no_filters_by_column() -> None:
    table = join_table([Vector(t.LONG, pa.array([1]))])
    assert table.columns == []
    assert MatchFilter(("a",), table).by_column() == []


LINES = PiecesSource(4, pa.table({"order": [1, 1, 2, 3, 3, 4, None, 5], "shop": [7, 8, 7, 7, 9, 8, 7, 8]}))
ORDERS = PiecesSource(2, pa.table({"id": [1, 2, 3, 4, 5, None], "region": [0, 1, 0, 1, 2, None]}))
SHOPS = PiecesSource(2, pa.table({"number": [7, 8, None], "place": [0, 2, 2]}))
LINES_ID, ORDERS_ID, SHOPS_ID = 0, 1, 2
EXPECTED = [(1, 7, 1, 0, 7, 0), (3, 7, 3, 0, 7, 0), (5, 8, 5, 2, 8, 2)]


def scan(number: int, source: PiecesSource) -> ScanExec:
    return ScanExec(number, "t", source, tuple(source.schema.names), splits=tuple(source.splits()))


def column(name: str) -> Column:
    return Column(name, t.LONG)


def lines_with_orders(kind: JoinKind = JoinKind.INNER, orders: PhysicalPlan | None = None) -> JoinExec:
    lines, orders = scan(LINES_ID, LINES), orders or scan(ORDERS_ID, ORDERS)
    keys = (JoinKey(column("order"), column("id")),)
    output = pa.schema([*lines.schema, *orders.schema])
    return JoinExec(lines, orders, kind, keys, None, BuildSide.RIGHT, output)


def with_shops(
    probe: PhysicalPlan, kind: JoinKind = JoinKind.INNER, keys: tuple[JoinKey, ...] | None = None
) -> JoinExec:
    """Join by columns of two scans: the shop of the line, and the region of the order."""
    shops = scan(SHOPS_ID, SHOPS)
    keys = keys or (JoinKey(column("shop"), column("number")), JoinKey(column("region"), column("place")))
    one_sided = kind in (JoinKind.SEMI, JoinKind.ANTI)
    output = probe.schema if one_sided else pa.schema([*probe.schema, *shops.schema])
    return JoinExec(probe, shops, kind, keys, None, BuildSide.RIGHT, output)


def run(plan: PhysicalPlan, compiled: bool = True) -> tuple[list[tuple[object, ...]], dict[int, list[str]]]:
    """Return the rows, and for each scan the columns of its filters with the numbers of rows seen and passed."""
    task = TaskContext(config=replace(EngineConfig(), compiled=compiled))
    batches = [batch.to_arrow() for batch in plan.run(task)]
    filters = {
        number: [f"{','.join(f.columns)} {f.passed}/{f.seen}" for f in found]
        for number, found in task.runtime_filters.items()
    }
    return rows_of(pa.Table.from_batches(batches, schema=plan.schema)), filters


@pytest.mark.parametrize("compiled", [True, False])
def test_each_scan_is_filtered_by_its_own_column(compiled: bool) -> None:
    rows, filters = run(with_shops(lines_with_orders()), compiled)
    assert sorted(rows) == EXPECTED
    assert filters[ORDERS_ID] == ["region 3/6"]  # 1, 3 and 5
    assert sorted(f.split()[0] for f in filters[LINES_ID]) == ["order", "shop"]


def test_the_filter_that_drops_most_rows_runs_first() -> None:
    """The lines have two splits of four rows. All rows of the first one pass the shop's filter, so it runs second then."""
    _, filters = run(with_shops(lines_with_orders()))
    assert filters[LINES_ID] == ["shop 5/6", "order 5/8"]


def test_a_semi_join_filters_and_an_anti_join_does_not() -> None:
    rows, filters = run(with_shops(lines_with_orders(), JoinKind.SEMI))
    assert sorted(rows) == [row[:4] for row in EXPECTED]
    assert filters[ORDERS_ID] == ["region 3/6"]
    rows, filters = run(with_shops(lines_with_orders(), JoinKind.ANTI))
    assert len(rows) == 7 - len(EXPECTED)
    assert ORDERS_ID not in filters
    assert [f.split()[0] for f in filters[LINES_ID]] == ["order"]


def test_padded_and_shared_rows_are_not_filtered() -> None:
    rows, filters = run(with_shops(lines_with_orders(JoinKind.LEFT)))
    assert sorted(rows) == EXPECTED
    assert list(filters) == [LINES_ID]
    rows, filters = run(with_shops(lines_with_orders(orders=ReplicateExec(scan(ORDERS_ID, ORDERS)))))
    assert sorted(rows) == EXPECTED
    assert list(filters) == [LINES_ID]


def test_null_safe_columns_keep_null() -> None:
    keys = (
        JoinKey(column("shop"), column("number"), null_safe=True),
        JoinKey(column("region"), column("place")),
    )
    nothing = PiecesSource(2, pa.table({"order": [4, 5], "shop": pa.nulls(2, pa.int64())}))
    lines = replace(lines_with_orders(), left=scan(LINES_ID, nothing))
    rows, _ = run(with_shops(lines, keys=keys))
    assert rows == [(5, None, 5, 2, None, 2)]


def divided(name: str) -> Expr:
    """An expression that raises for zero."""
    return Call.of("div", Literal(1, t.LONG), column(name))


def test_expressions_that_can_raise_see_all_rows() -> None:
    raising = ProjectionExec(
        scan(ORDERS_ID, ORDERS),
        (
            Named(column("id"), "id"),
            Named(column("region"), "region"),
            Named(divided("id"), "quotient"),
        ),
    )
    rows, filters = run(with_shops(lines_with_orders(orders=raising)))
    assert len(rows) == len(EXPECTED)
    assert ORDERS_ID not in filters


def test_a_computed_key_leaves_the_filters_of_the_others() -> None:
    place = column("place")
    computed = Call.of("bitand", column("region"), Literal(3, t.LONG))
    keys = (JoinKey(column("shop"), column("number")), JoinKey(computed, place))
    rows, filters = run(with_shops(lines_with_orders(), keys=keys))
    assert sorted(rows) == EXPECTED
    assert sorted(f.split()[0] for f in filters[LINES_ID]) == ["order", "shop"]
    keys = (JoinKey(column("shop"), column("number")), JoinKey(divided("id"), place))
    _, filters = run(with_shops(lines_with_orders(), keys=keys))
    assert [f.split()[0] for f in filters[LINES_ID]] == ["order"]


def test_keys_that_can_raise_below_a_filter_see_all_rows() -> None:
    """Spark computes the keys of the lower join for all lines, also for those that the upper join drops."""
    lower = replace(lines_with_orders(), keys=(JoinKey(divided("order"), column("id")),))
    _, filters = run(with_shops(lower))
    assert LINES_ID not in filters
    assert ORDERS_ID not in filters


def test_groups_are_filtered_by_some_of_their_keys() -> None:
    """The place of the shop is a column of the projection above the groups, which computes the other key."""
    lines = scan(LINES_ID, LINES)
    groups = AggregateExec(
        lines, (Named(column("order"), "order"), Named(column("shop"), "shop")), (), Phase.SINGLE
    )
    computed = Call.of("bitand", column("order"), Literal(2, t.LONG))
    above = ProjectionExec(groups, (Named(column("shop"), "shop"), Named(computed, "region")))
    rows, filters = run(with_shops(above))
    assert rows == [(7, 0, 7, 0)]  # order 1
    assert filters[LINES_ID] == ["shop 7/8"]
