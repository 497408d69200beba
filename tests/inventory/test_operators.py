"""The worked examples about expressions and operators, with the answers they state."""

from __future__ import annotations

import math
import sys
from typing import Any

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.errors import ExecutionError, SqlError


def values(frame: Any) -> list[tuple[Any, ...]]:
    """Rows as tuples, in an order of their own."""
    rows = [tuple(r.values()) for r in frame.collect()]
    return sorted(rows, key=lambda row: [(v is not None, v) for v in row])


def test_greater_or_equal_of_doubles():
    context = kq.ExecutionContext()
    a = [0.0, 1.0, sys.float_info.min, sys.float_info.max, math.nan]
    context.register_arrow("t", pa.table({"i": range(5), "a": a, "b": a[::-1]}))
    actual = context.sql("SELECT a >= b AS x FROM t ORDER BY i").collect()
    assert [r["x"] for r in actual] == [False, False, True, True, True]


def test_a_null_string_is_not_the_text_null():
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"s": ["null", None, "x"]}))
    assert context.sql("SELECT s FROM t WHERE s = 'null'").collect() == [{"s": "null"}]
    actual = context.sql("SELECT s = 'null' AS a, s <=> NULL AS b, s <> 'x' AS c FROM t").collect()
    assert [tuple(r.values()) for r in actual] == [
        (True, False, True),
        (None, True, None),
        (False, False, False),
    ]


def test_truth_tables_with_null():
    context = kq.ExecutionContext()
    three = [True, False, None]
    pairs = [(a, b) for a in three for b in three]
    context.register_arrow("t", pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]}))
    actual = context.sql("SELECT a AND b AS x, a OR b AS y, NOT a AS z FROM t").collect()
    assert [r["x"] for r in actual] == [True, False, None, False, False, False, None, False, None]
    assert [r["y"] for r in actual] == [True, True, True, True, False, None, True, None, None]
    assert [r["z"] for r in actual] == [False] * 3 + [True] * 3 + [None] * 3
    kept = context.sql("SELECT a FROM t WHERE a").collect()
    assert [r["a"] for r in kept] == [True] * 3  # a NULL predicate drops the row


def test_hash_aggregate_of_two_groups():
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"k": ["a", "b", "a", "b"], "v": [1, 4, 2, 3]}))
    actual = context.sql("SELECT k, min(v), max(v), sum(v) FROM t GROUP BY k")
    assert values(actual) == [("a", 1, 2, 3), ("b", 3, 4, 7)]


def test_highest_salary_by_state(context: kq.ExecutionContext):
    actual = context.sql("SELECT state, MAX(salary) FROM employee GROUP BY state")
    assert values(actual) == [(None, 11500.0), ("CA", 12000.0), ("CO", 11500.0)]
    turned = context.sql("SELECT MAX(salary), state FROM employee GROUP BY state")
    assert values(turned) == [(11500.0, None), (11500.0, "CO"), (12000.0, "CA")]


def test_no_keys_and_no_rows_is_one_row(context: kq.ExecutionContext):
    assert values(context.sql("SELECT count(*), max(id) FROM employee WHERE id > 99")) == [(0, None)]
    assert values(context.sql("SELECT max(id) FROM employee WHERE id > 99 GROUP BY state")) == []


def test_nan_and_the_zeros_are_one_group_each():
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"x": [0.0, -0.0, math.nan, -math.nan, None, None]}))
    actual = context.sql("SELECT x, count(*) AS n FROM t GROUP BY x").collect()
    assert sorted((str(r["x"]), r["n"]) for r in actual) == [("0.0", 2), ("None", 2), ("nan", 2)]


def test_limit_and_offset(context: kq.ExecutionContext):
    assert [r["first_name"] for r in context.table("employee").limit(2).collect()] == ["Bill", "Gregg"]
    ordered = context.table("employee").sort(kq.col("id").desc())
    assert ordered.offset(2).limit(1).select("id").collect() == [{"id": 2}]
    assert values(context.sql("SELECT id FROM employee ORDER BY id DESC LIMIT 1 OFFSET 2")) == [(2,)]


def test_offset_before_limit_is_an_error_as_in_spark(context: kq.ExecutionContext):
    with pytest.raises(SqlError, match="LIMIT must come before OFFSET"):
        context.sql("SELECT id FROM employee ORDER BY id DESC OFFSET 2 LIMIT 1")


def test_nulls_come_first_ascending_and_last_descending(context: kq.ExecutionContext):
    def states(order: str) -> list[Any]:
        return [r["state"] for r in context.sql(f"SELECT state FROM employee ORDER BY {order}").collect()]

    assert states("state") == [None, "CA", "CO", "CO"]
    assert states("state DESC") == ["CO", "CO", "CA", None]
    assert states("state NULLS LAST, id") == ["CA", "CO", "CO", None]
    assert states("state DESC NULLS FIRST LIMIT 2") == [None, "CO"]


def test_pairs_of_a_hash_join():
    context = kq.ExecutionContext()
    context.register_arrow("l", pa.table({"x": range(4), "k": [10, 30, 20, 10]}))
    context.register_arrow("r", pa.table({"y": range(4), "k": [10, 20, 30, 10]}))
    actual = values(context.sql("SELECT y, x FROM l JOIN r ON l.k = r.k"))
    assert actual == sorted(zip([0, 0, 1, 2, 3, 3], [0, 3, 2, 1, 0, 3], strict=True))


N = (None, None, None)
BOTH = [(2, 7, 9, 10, 2, 7), (2, 7, 9, 20, 2, 5)]
LEFT = [(0, 4, 7, *N), (1, 5, 8, *N), *BOTH, (2, 8, 1, *N)]
RIGHT = [*BOTH, (*N, 30, 3, 6), (*N, 40, 4, 6)]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("INNER", BOTH), ("LEFT", LEFT), ("RIGHT", RIGHT), ("FULL", [*LEFT, *RIGHT[2:]])],
)
def test_residual_filters_count_for_matching(kind: str, expected: list[tuple[Any, ...]]):
    context = kq.ExecutionContext()
    context.register_arrow("t1", pa.table({"a": [0, 1, 2, 2], "b": [4, 5, 7, 8], "c": [7, 8, 9, 1]}))
    context.register_arrow("t2", pa.table({"a": [10, 20, 30, 40], "b": [2, 2, 3, 4], "c": [7, 5, 6, 6]}))
    frame = context.sql(
        "SELECT t1.a AS a1, t1.b AS b1, t1.c AS c1, t2.a AS a2, t2.b AS b2, t2.c AS c2 "
        f"FROM t1 {kind} JOIN t2 ON t1.a = t2.b AND t1.c > t2.c"
    )
    key = {row: number for number, row in enumerate(expected)}
    actual = [tuple(r.values()) for r in frame.collect()]
    assert sorted(actual, key=lambda row: key.get(row, -1)) == expected


def test_null_keys_never_match_and_an_empty_side_pads():
    context = kq.ExecutionContext()
    context.register_arrow("l", pa.table({"k": [1, None]}))
    context.register_arrow("e", pa.table({"k": pa.array([], pa.int64())}))
    assert values(context.sql("SELECT a.k FROM l a JOIN l b ON a.k = b.k")) == [(1,)]
    assert values(context.sql("SELECT l.k, e.k AS e FROM l LEFT JOIN e ON l.k = e.k")) == [
        (None, None),
        (1, None),
    ]
    assert values(context.sql("SELECT l.k, e.k AS e FROM e FULL JOIN l ON l.k = e.k")) == [
        (None, None),
        (1, None),
    ]


@pytest.mark.parametrize(
    ("kind", "nullable"),
    [("INNER", (False, False)), ("LEFT", (False, True)), ("RIGHT", (True, False)), ("FULL", (True, True))],
)
def test_nullability_of_joins(kind: str, nullable: tuple[bool, bool]):
    context = kq.ExecutionContext()
    for name in "lr":
        schema = pa.schema([pa.field("k", pa.int64(), False), pa.field(name, pa.int64(), False)])
        context.register_arrow(name, pa.table([pa.array([1]), pa.array([2])], schema=schema))
    frame = context.sql(f"SELECT l.l, r.r FROM l {kind} JOIN r ON l.k = r.k")
    assert tuple(field.nullable for field in frame.schema) == nullable


def test_subqueries(context: kq.ExecutionContext):
    counted = context.sql(
        "SELECT id, (SELECT count(*) FROM employee b WHERE b.state = a.state AND b.id <> 2) AS n FROM employee a"
    )
    assert values(counted) == [(1, 1), (2, 1), (3, 1), (4, 0)]  # a correlated COUNT of nothing is 0
    with pytest.raises(ExecutionError, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        context.sql("SELECT (SELECT id FROM employee) AS x").collect()
    semi = "SELECT id FROM employee a WHERE EXISTS (SELECT 1 FROM employee b WHERE b.salary = a.salary)"
    assert values(context.sql(semi)) == [(1,), (2,), (3,), (4,)]  # never a row twice
    assert (
        values(context.sql("SELECT id FROM employee WHERE state NOT IN (SELECT state FROM employee)")) == []
    )
    anti = "SELECT id FROM employee a WHERE NOT EXISTS (SELECT 1 FROM employee b WHERE b.state = a.state)"
    assert values(context.sql(anti)) == [(4,)]


def test_precedence_and_spellings():
    actual = kq.ExecutionContext().sql(
        "SELECT 1+2*3 AS a, 1*2+3 AS b, -2 * -3 AS c, CAST(.5 AS double) AS d, 'it''s' AS e, 7 % 4 AS f, 'a' || 'b' AS `g`,"
        " not true and false AS h, 2 <> 3 AS i, 5 between 1 and 5 AS j, 'abc' like 'a%' AS k, null is null AS l"
    )
    assert values(actual) == [(7, 5, 6, 0.5, "it's", 3, "ab", False, True, True, True, True)]


@pytest.mark.parametrize(
    ("text", "column"),
    [("SELECT 1 LIMIT 1 banana", 18), ("SELECT 1 +", 11), ("SELECT (1", 10), ("SELECT 1 ? 2", 10)],
)
def test_what_is_not_understood_is_an_error_with_a_position(text: str, column: int):
    with pytest.raises(SqlError, match=rf"line 1, column {column}\b"):
        kq.ExecutionContext().sql(text).collect()
