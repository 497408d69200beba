"""The keys of a join filter the build side of an inner join below it, unless that could lose rows or hide an error."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kquery_spark.expr import Call, Column, Expr, Literal, Named
from kquery_spark.logical.join import JoinKey, JoinKind
from kquery_spark.physical.dynamic_filters.runtime_filter import MatchFilter, RuntimeFilter
from kquery_spark.physical.dynamic_filters.top_k import FirstRowsFilter
from kquery_spark.physical.joins.build_side import BuildSide
from kquery_spark.physical.operators import JoinExec, PhysicalPlan, ProjectionExec, ScanExec, TaskContext
from kquery_spark.physical.operators.replicate import ReplicateExec
from kquery_spark.types import names as t
from kquery_spark.types.vector import Vector
from tests.physical.harness import PiecesSource, join_table, rows_of

LINES = PiecesSource(4, pa.table({"line_order": [1, 1, 2, 3, 3, 4, None], "quantity": range(7)}))
ORDERS = PiecesSource(2, pa.table({"order": [1, 2, 3, 4, 5, None], "customer": range(6)}))
CHOSEN = PiecesSource(2, pa.table({"chosen": [3, 5]}))
LINES_ID, ORDERS_ID, CHOSEN_ID = 0, 1, 2


def scan(number: int, source: PiecesSource) -> ScanExec:
    return ScanExec(number, "t", source, tuple(source.schema.names), splits=tuple(source.splits()))


def column(name: str) -> Column:
    return Column(name, t.LONG)


def join(
    left: PhysicalPlan,
    right: PhysicalPlan,
    on: tuple[str, str],
    kind: JoinKind,
    condition: Expr | None = None,
) -> JoinExec:
    output = left.schema if kind is JoinKind.SEMI else pa.schema([*left.schema, *right.schema])
    keys = (JoinKey(column(on[0]), column(on[1])),)
    return JoinExec(left, right, kind, keys, condition, BuildSide.RIGHT, output)


def lines_with_orders(
    orders: PhysicalPlan, kind: JoinKind = JoinKind.INNER, condition: Expr | None = None
) -> JoinExec:
    return join(scan(LINES_ID, LINES), orders, ("line_order", "order"), kind, condition)


def keys_above(columns: tuple[str, ...] = ("order",)) -> MatchFilter:
    return MatchFilter(columns, join_table([Vector(t.LONG, pa.array([3, 5]))]))


def accepted_filters(plan: PhysicalPlan, runtime_filter: RuntimeFilter, scan_id: int) -> list[RuntimeFilter]:
    task = TaskContext()
    plan.accept_filter(task, runtime_filter)
    return task.runtime_filters.get(scan_id, [])


def test_only_matching_rows_enter_the_join_table():
    plan = join(
        lines_with_orders(scan(ORDERS_ID, ORDERS)),
        scan(CHOSEN_ID, CHOSEN),
        ("order", "chosen"),
        JoinKind.SEMI,
    )
    task = TaskContext()
    rows = pa.Table.from_batches([b.to_arrow() for b in plan.run(task)], schema=plan.schema)
    assert rows_of(rows) == [(3, 3, 3, 2), (3, 4, 3, 2)]
    (on_orders,) = task.runtime_filters[ORDERS_ID]
    assert (on_orders.columns, on_orders.seen, on_orders.passed) == (("order",), 6, 2)
    (on_lines,) = task.runtime_filters[LINES_ID]  # from the join table of the remaining orders
    assert (on_lines.columns, on_lines.seen, on_lines.passed) == (("line_order",), 7, 2)


def test_expressions_that_can_raise_see_all_rows():
    assert accepted_filters(lines_with_orders(scan(ORDERS_ID, ORDERS)), keys_above(), ORDERS_ID)
    divided = Call.of("div", Literal(1, t.LONG), column("customer"))
    orders = ProjectionExec(scan(ORDERS_ID, ORDERS), (Named(column("order"), "order"), Named(divided, "q")))
    assert not accepted_filters(lines_with_orders(orders), keys_above(), ORDERS_ID)
    assert not accepted_filters(
        lines_with_orders(scan(ORDERS_ID, ORDERS), condition=Call.of("gt", divided, column("quantity"))),
        keys_above(),
        ORDERS_ID,
    )


@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL])
def test_the_build_side_of_an_outer_join_is_not_filtered(kind: JoinKind):
    assert not accepted_filters(lines_with_orders(scan(ORDERS_ID, ORDERS), kind), keys_above(), ORDERS_ID)


def test_neither_shared_rows_nor_changing_bounds_filter_a_build_side():
    orders = scan(ORDERS_ID, ORDERS)
    assert not accepted_filters(lines_with_orders(ReplicateExec(orders)), keys_above(), ORDERS_ID)
    assert not accepted_filters(
        lines_with_orders(orders), FirstRowsFilter(("order",), True, True, False, 3), ORDERS_ID
    )
    assert accepted_filters(lines_with_orders(orders), keys_above(("line_order",)), LINES_ID)
