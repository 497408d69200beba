"""The keys of a join above filter the build side of an inner join below, unless that could be noticed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kquery_spark.expr import Call, Column, Expr, Literal, Named
from kquery_spark.logical.join import JoinKey, JoinKind
from kquery_spark.physical.dynamic_filters.runtime_filter import MatchFilter, RuntimeFilter
from kquery_spark.physical.dynamic_filters.top_k import FirstRowsFilter
from kquery_spark.physical.joins.join_table import JoinTable
from kquery_spark.physical.operators import JoinExec, PhysicalPlan, ProjectionExec, ScanExec, TaskContext
from kquery_spark.physical.operators.join import BuildSide
from kquery_spark.physical.operators.replicate import ReplicateExec
from kquery_spark.types import names as t
from kquery_spark.types.vector import Vector
from tests.physical.harness import PiecesSource, rows_of

LINES = PiecesSource(4, pa.table({"line_order": [1, 1, 2, 3, 3, 4, None], "quantity": range(7)}))
ORDERS = PiecesSource(2, pa.table({"order": [1, 2, 3, 4, 5, None], "customer": range(6)}))
KEPT = PiecesSource(2, pa.table({"kept": [3, 5]}))
LINES_ID, ORDERS_ID, KEPT_ID = 0, 1, 2


def read(number: int, source: PiecesSource) -> ScanExec:
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


def inner(orders: PhysicalPlan, kind: JoinKind = JoinKind.INNER, condition: Expr | None = None) -> JoinExec:
    return join(read(LINES_ID, LINES), orders, ("line_order", "order"), kind, condition)


def keys_above(columns: tuple[str, ...] = ("order",)) -> MatchFilter:
    return MatchFilter(columns, JoinTable([Vector(t.LONG, pa.array([3, 5]))], 2, [False]))


def accepted(plan: PhysicalPlan, runtime_filter: RuntimeFilter, scan_id: int) -> list[RuntimeFilter]:
    task = TaskContext()
    plan.accept_filter(task, runtime_filter)
    return task.runtime_filters.get(scan_id, [])


def test_only_matching_rows_get_into_the_join_table():
    plan = join(inner(read(ORDERS_ID, ORDERS)), read(KEPT_ID, KEPT), ("order", "kept"), JoinKind.SEMI)
    task = TaskContext()
    rows = pa.Table.from_batches([b.to_arrow() for b in plan.run(task)], schema=plan.schema)
    assert rows_of(rows) == [(3, 3, 3, 2), (3, 4, 3, 2)]
    (on_orders,) = task.runtime_filters[ORDERS_ID]
    assert (on_orders.columns, on_orders.seen, on_orders.passed) == (("order",), 6, 2)
    (on_lines,) = task.runtime_filters[LINES_ID]  # by the join table of the orders that are left
    assert (on_lines.columns, on_lines.seen, on_lines.passed) == (("line_order",), 7, 2)


def test_expressions_below_the_build_side_still_see_all_rows():
    (found,) = accepted(inner(read(ORDERS_ID, ORDERS)), keys_above(), ORDERS_ID)
    assert found.every_row
    divided = Call.of("div", Literal(1, t.LONG), column("customer"))
    orders = ProjectionExec(read(ORDERS_ID, ORDERS), (Named(column("order"), "order"), Named(divided, "q")))
    assert not accepted(inner(orders), keys_above(), ORDERS_ID)
    assert not accepted(
        inner(read(ORDERS_ID, ORDERS), condition=Call.of("gt", divided, column("quantity"))),
        keys_above(),
        ORDERS_ID,
    )


@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL])
def test_outer_joins_keep_their_build_side(kind: JoinKind):
    assert not accepted(inner(read(ORDERS_ID, ORDERS), kind), keys_above(), ORDERS_ID)


def test_shared_rows_and_bounds_that_change_are_left_alone():
    orders = read(ORDERS_ID, ORDERS)
    assert not accepted(inner(ReplicateExec(orders)), keys_above(), ORDERS_ID)
    assert not accepted(inner(orders), FirstRowsFilter(("order",), True, True, False, 3), ORDERS_ID)
    assert accepted(inner(orders), keys_above(("line_order",)), LINES_ID)
