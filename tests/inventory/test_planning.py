"""The worked examples about rules, joins, exchanges and plans that travel, with the answers they state."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark import logical
from kquery_spark.config.engine import EngineConfig
from kquery_spark.logical import LogicalPlan
from kquery_spark.optimizer import RULES, optimize
from kquery_spark.physical.expr import program
from kquery_spark.physical.operators import PhysicalPlan
from kquery_spark.planner import plan_query
from kquery_spark.runtime.local import LocalExecutor
from kquery_spark.stages import build_stages
from kquery_spark.stages.plan_pb2 import PlanMessage
from kquery_spark.stages.serialization import from_bytes, to_bytes

SHUFFLES = EngineConfig(parallelism=2, small_bytes=-1, broadcast_bytes=-1, shuffle_partitions=2)
SPREAD = EngineConfig(parallelism=4, small_bytes=-1, split_bytes=1)


def shop(config: EngineConfig | None = None) -> kq.ExecutionContext:
    context = kq.ExecutionContext(config=config)
    context.register_arrow("customer", pa.table({"id": [1, 2, 3], "name": ["Ann", "Bo", "Ann"]}))
    context.register_arrow("orders", pa.table({"customer_id": [1, 1, 2, 9], "amount": [1.5, 2.5, 3.0, 8.0]}))
    items = {"id": [1, 2, 3], "price": [2, 5, 7], "qty": [3, 1, 2], "note": ["a", None, "c"]}
    context.register_arrow("items", pa.table(items))
    return context


def part(frame: kq.DataFrame, title: str) -> str:
    return "\n" + frame.explain().split(f"== {title} ==\n")[1].split("\n\n==")[0] + "\n"


def values(frame: kq.DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(r.values()) for r in frame.collect()), key=repr)


# --- rules ----------------------------------------------------------------------------------------------------


def test_and_is_split_and_or_is_not():
    frame = shop().sql(
        "SELECT name, amount FROM customer JOIN orders ON id = customer_id"
        " WHERE amount > 1 AND name = 'Ann' AND (amount > 2 OR id = 3)"
    )
    assert part(frame, "Optimized plan") == dedent("""
        Projection: #name, #amount
          Join: inner, on=[#id = #customer_id], condition=(#amount > 2.0) OR (#id = 3)
            Scan: customer; projection=[id, name]; filters=[#name = 'Ann']
            Scan: orders; projection=[customer_id, amount]; filters=[#amount > 1.0]
        """)
    assert frame.collect() == [{"name": "Ann", "amount": 2.5}]


def test_predicates_stay_where_an_outer_join_pads():
    text = "SELECT id, amount FROM customer LEFT JOIN orders ON id = customer_id WHERE {}"
    kept = shop().sql(text.format("amount IS NULL AND id > 1"))
    optimized = part(kept, "Optimized plan")
    assert "Join: left" in optimized and "Filter: #amount IS NULL" in optimized
    assert "Scan: customer; projection=[id]; filters=[#id > 1]" in optimized
    assert kept.collect() == [{"id": 3, "amount": None}]
    # a predicate that no padded row passes makes it an inner join
    inner = shop().sql(text.format("amount > 2"))
    assert "Join: inner" in part(inner, "Optimized plan")
    assert values(inner) == [(1, 2.5), (2, 3.0)]


def test_constants_are_folded():
    frame = shop().sql("SELECT id, 1 + 2 * 3 AS x FROM items WHERE id > 1 + 1 AND 1 = 1")
    assert part(frame, "Optimized plan") == dedent("""
        Projection: #id, 7 AS x
          Scan: items; projection=[id]; filters=[#id > 2]
        """)


def test_a_limit_goes_down_and_takes_the_columns_along():
    frame = shop().sql("SELECT id FROM (SELECT * FROM items UNION ALL SELECT * FROM items) LIMIT 2")
    assert part(frame, "Optimized plan") == dedent("""
        Limit: 2
          Union
            Limit: 2
              Scan: items; projection=[id]
            Projection: #id AS id_2
              Limit: 2
                Scan: items; projection=[id]
        """)
    assert frame.count() == 2


def test_each_rule_is_shown_and_can_be_switched_off():
    text = "SELECT id FROM items WHERE price * qty > 5 AND 1 = 1"
    shown = shop().sql(text).explain(trace=True)
    expected = values(shop().sql(text))
    assert expected == [(1,), (3,)]
    for rule in RULES:
        assert f"== Rule {rule.__name__} ==" in shown
        context = shop(EngineConfig(disabled_rules=(rule.__name__,)))
        assert f"== Rule {rule.__name__} ==" not in context.sql(text).explain(trace=True)
        assert values(context.sql(text)) == expected
    unoptimized = shop(EngineConfig(disabled_rules=tuple(r.__name__ for r in RULES)))
    assert values(unoptimized.sql(text)) == expected


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    calls: Counter[str] = Counter()
    inner = program.call

    def counting(entry: Any, *rest: Any) -> Any:
        calls[entry.name] += 1
        return inner(entry, *rest)

    monkeypatch.setattr(program, "call", counting)
    return calls


def test_price_times_qty_is_computed_once_and_other_columns_survive(monkeypatch: pytest.MonkeyPatch):
    frame = shop().sql("SELECT id, price * qty AS total, price * qty * 2 AS twice, note FROM items")
    calls = counted(monkeypatch)
    assert frame.collect() == [
        {"id": 1, "total": 6, "twice": 12, "note": "a"},
        {"id": 2, "total": 5, "twice": 10, "note": None},
        {"id": 3, "total": 14, "twice": 28, "note": "c"},
    ]
    assert calls["multiply"] == 2  # price * qty, and that * 2


def test_a_filter_shares_what_it_computes_with_the_node_above_it(monkeypatch: pytest.MonkeyPatch):
    frame = shop().sql(
        "SELECT amount * qty AS total, note, amount FROM items JOIN orders ON id = customer_id WHERE amount * qty > 4"
    )
    # the product needs both sides: it is made above the join, once, for the filter and for the answer
    calls = counted(monkeypatch)
    assert values(frame) == [(4.5, "a", 1.5), (7.5, "a", 2.5)]
    assert calls["multiply"] <= 2
    grouped = shop().sql(
        "SELECT x, count(*) AS n FROM (SELECT price * qty AS x FROM items LIMIT 9) WHERE x > 5 GROUP BY x"
    )
    calls.clear()
    assert values(grouped) == [(14, 1), (6, 1)] and calls["multiply"] == 1


# --- joins ----------------------------------------------------------------------------------------------------

KINDS = {
    "INNER": [(1, 1), (2, 2)],
    "LEFT": [(1, 1), (2, 2), (3, None)],
    "RIGHT": [(1, 1), (2, 2), (None, 9)],
    "FULL": [(1, 1), (2, 2), (3, None), (None, 9)],
    "LEFT SEMI": [(1,), (2,)],
    "LEFT ANTI": [(3,)],
}


@pytest.mark.parametrize(
    "config", [EngineConfig(), SPREAD, SHUFFLES], ids=["one task", "replicated", "shuffled"]
)
@pytest.mark.parametrize(("kind", "expected"), KINDS.items())
def test_every_kind_of_join_by_hash_and_by_nested_loop(
    kind: str, expected: list[tuple[Any, ...]], config: EngineConfig
):
    context = shop(config)
    columns = "id" if len(expected[0]) == 1 else "id, customer_id"
    for on, way in (("id = customer_id", "on=["), ("id >= customer_id AND id <= customer_id", "condition=")):
        frame = context.sql(
            f"SELECT DISTINCT {columns} FROM customer {kind} JOIN orders ON {on}",
        )
        join = next(line for line in frame.explain().splitlines() if "JoinExec:" in line)
        assert way in join
        assert values(frame) == sorted(expected, key=repr)


def test_every_pair_of_a_cross_join():
    assert shop().sql("SELECT count(*) AS n FROM customer CROSS JOIN orders").collect() == [{"n": 12}]


# --- exchange and stages ----------------------------------------------------------------------------------------


def test_four_stages_join_and_aggregate():
    frame = shop(SHUFFLES).sql(
        "SELECT name, sum(amount) AS total FROM customer JOIN orders ON id = customer_id GROUP BY name"
    )
    assert part(frame, "Stages") == dedent("""
        stage-1: 1 task(s) -> hash(#id) into 2
          ScanExec: customer; columns=[id, name]; splits=1
        stage-2: 1 task(s) -> hash(#customer_id) into 2
          ScanExec: orders; columns=[customer_id, amount]; splits=1
        stage-3: 2 task(s), reads stage-1, stage-2 -> single
          AggregateExec: partial, groupExpr=[#name], aggregateExpr=[SUM(#amount) AS total]
            ProjectionExec: #name, #amount
              JoinExec: inner, build=right, on=[#id = #customer_id]
                ReadExec: stage-1
                ReadExec: stage-2
        stage-4: 1 task(s), reads stage-3 -> result
          AggregateExec: final, groupExpr=[#name], aggregateExpr=[SUM(#amount) AS total]
            ReadExec: stage-3
        """)
    assert values(frame) == [("Ann", 4.0), ("Bo", 3.0)]


@pytest.mark.parametrize("key", ["id", "customer_id"])
def test_no_fourth_stage_where_the_join_already_partitions_by_the_group_key(key: str):
    frame = shop(SHUFFLES).sql(
        f"SELECT {key}, sum(amount) AS total FROM customer JOIN orders ON id = customer_id GROUP BY {key}"
    )
    stages = part(frame, "Stages")
    assert "stage-3: 2 task(s), reads stage-1, stage-2 -> result" in stages and "stage-4" not in stages
    assert "AggregateExec: single" in stages
    assert values(frame) == [(1, 4.0), (2, 3.0)]


@pytest.fixture
def months(tmp_path: Path) -> Path:
    for month in range(1, 13):
        rows = pa.table(
            {"month": [month] * month, "fare": range(month), "zone": [i % 3 for i in range(month)]}
        )
        pq.write_table(rows, tmp_path / f"{month:02}.parquet")
    return tmp_path


def test_twelve_months_are_aggregated_in_parallel_and_combined(months: Path):
    context = kq.ExecutionContext(config=SPREAD)
    context.register_parquet("trips", months)
    frame = context.sql(
        "SELECT min(fare) AS lo, max(fare) AS hi, sum(fare) AS s, count(fare) AS n, avg(fare) AS a FROM trips"
    )
    call = "[MIN(#fare) AS lo, MAX(#fare) AS hi, SUM(#fare) AS s, COUNT(#fare) AS n, AVG(#fare) AS a]"
    assert part(frame, "Stages") == dedent(f"""
        stage-1: 12 task(s) -> single
          AggregateExec: partial, groupExpr=[], aggregateExpr={call}
            ScanExec: trips; columns=[fare]
        stage-2: 1 task(s), reads stage-1 -> result
          AggregateExec: final, groupExpr=[], aggregateExpr={call}
            ReadExec: stage-1
        """)
    # 78 rows, month m has 0, 1 ... m - 1: an average of averages would be 2.75
    assert frame.collect() == [{"lo": 0, "hi": 11, "s": 286, "n": 78, "a": 286 / 78}]


def test_min_max_and_sum_repeat_count_becomes_sum_and_avg_is_sum_and_count(months: Path):
    """What the final step reads: the partial step's states."""
    context = kq.ExecutionContext(config=SPREAD)
    context.register_parquet("trips", months)
    frame = context.sql(
        "SELECT min(fare) lo, max(fare) hi, sum(fare) s, count(fare) n, avg(fare) a FROM trips"
    )
    graph = build_stages(plan_query(optimize(frame.plan), SPREAD), SPREAD)
    assert graph.stages[0].plan.schema.names == ["lo.0", "hi.0", "s.0", "s.1", "n.0", "a.0", "a.1"]
    # the second query of the book, in words
    by_hand = context.sql(
        "SELECT min(lo) AS lo, max(hi) AS hi, sum(s) AS s, sum(n) AS n, sum(s) / sum(n) AS a FROM"
        " (SELECT month, min(fare) lo, max(fare) hi, sum(fare) s, count(fare) n FROM trips GROUP BY month)"
    )
    assert by_hand.collect() == frame.collect()


def test_distinct_values_need_a_shuffle(months: Path):
    context = kq.ExecutionContext(config=SPREAD)
    context.register_parquet("trips", months)
    frame = context.sql("SELECT count(DISTINCT fare) AS n, count(DISTINCT zone) AS z FROM trips")
    counted_alone = context.sql("SELECT count(DISTINCT fare) AS n FROM trips")
    assert "-> hash(" in part(counted_alone, "Stages")  # equal values meet before they are counted
    assert counted_alone.collect() == [{"n": 12}]
    assert frame.collect() == [{"n": 12, "z": 3}]  # not 78, the sum of the months' counts


# --- plans that travel --------------------------------------------------------------------------------------------

TRAVELLERS = [
    "SELECT id + 1 AS x, CASE WHEN note IS NULL THEN 'none' ELSE upper(note) END AS y FROM items WHERE price IN (2, 5)",
    "SELECT name, sum(amount) s, count(DISTINCT id) d, avg(amount) FILTER (WHERE amount > 2) a FROM customer"
    " LEFT JOIN orders ON id = customer_id GROUP BY name",
    "SELECT id FROM customer WHERE id NOT IN (SELECT customer_id FROM orders)",
    "SELECT id, EXISTS (SELECT 1 FROM orders WHERE customer_id = id) AS e FROM customer",
    "SELECT id, (SELECT max(amount) FROM orders) AS m FROM customer",
    "SELECT id, (SELECT note FROM items WHERE price = 7) AS note FROM customer",
    "SELECT id, amount FROM customer CROSS JOIN orders WHERE id < amount ORDER BY amount DESC, id LIMIT 3 OFFSET 1",
    "SELECT id FROM items UNION ALL SELECT id FROM customer",
    "SELECT id FROM items INTERSECT SELECT id FROM customer",
    "SELECT id FROM items EXCEPT ALL SELECT customer_id FROM orders",
    "SELECT id, sum(price) OVER (ORDER BY id) AS s, lag(note) OVER (ORDER BY id) AS l FROM items",
    "SELECT id, rank() OVER (PARTITION BY qty > 1 ORDER BY price) AS r FROM items",
    "SELECT name, id, count(*) AS n FROM customer GROUP BY ROLLUP(name, id)",
    "SELECT id, explode(sequence(1, qty)) AS q FROM items",
    "SELECT CAST(price AS decimal(10, 2)) / qty AS x, date '2024-02-29' + interval '1' month AS d FROM items",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT n FROM r",
    "SELECT i.id, l.n FROM items i, LATERAL (SELECT i.qty + 1 AS n) AS l",
]


def nodes(plan: LogicalPlan | PhysicalPlan) -> set[str]:
    return {type(plan).__name__}.union(*(nodes(c) for c in plan.children))


@pytest.mark.parametrize(
    "config", [EngineConfig(), SPREAD, SHUFFLES], ids=["one task", "replicated", "shuffled"]
)
@pytest.mark.parametrize("text", TRAVELLERS)
def test_a_plan_comes_back_from_protobuf_and_gives_the_same_answer(text: str, config: EngineConfig):
    context = shop(config)
    frame = context.sql(text)
    plan = from_bytes(to_bytes(frame.plan), type(frame.plan))
    assert plan == frame.plan and str(plan) == str(frame.plan)
    physical = plan_query(optimize(plan), config)
    back = from_bytes(to_bytes(physical), type(physical))
    assert back == physical
    graph = build_stages(back, config)
    travelled = from_bytes(to_bytes(graph), type(graph))
    assert str(travelled) == str(graph)
    found = LocalExecutor(travelled, config).table().to_pylist()
    assert sorted(map(repr, (tuple(r.values()) for r in found))) == sorted(map(repr, values(frame)))


def test_the_examples_that_travel_have_every_node_there_is():
    found: set[str] = set()
    for text in TRAVELLERS:
        plan = shop().sql(text).plan
        found |= nodes(plan) | nodes(optimize(plan))
    classes = [(name, getattr(logical, name)) for name in logical.__all__]
    kinds = {name for name, kind in classes if isinstance(kind, type) and issubclass(kind, LogicalPlan)} - {
        "LogicalPlan"
    }
    # an Input has rows of Spark, and Spark makes the WindowGroupLimit and what calls Python; tests/stages has all of them
    by_spark = {"Input", "WindowGroupLimit"}
    assert {kind for kind in kinds - by_spark if not kind.endswith("Python")} <= found


def test_a_plan_on_the_wire_is_plain_data_with_names():
    message = PlanMessage()
    message.ParseFromString(to_bytes(shop().sql("SELECT id FROM items WHERE price > 2").plan))
    names = {layout.type: list(layout.fields) for layout in message.layouts}
    assert names["Filter"] == ["child", "condition"] and names["Projection"] == ["child", "exprs"]
    assert {"id", "price", "items"} <= set(message.strings)
