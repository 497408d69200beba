"""DataFrames of a context: views, cached rows, and long conditions."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import kquery_spark as kq
from kquery_spark.errors import PlanError, SqlError
from kquery_spark.logical import Scan, walk_plan


def test_a_view_is_a_table_of_the_context():
    context = kq.ExecutionContext()
    context.sql("SELECT 1 AS a, 'x' AS b").createOrReplaceTempView("v")
    again = context.sql("SELECT v.a + w.a AS c FROM v JOIN v w USING (b)")
    assert again.collect() == [{"c": 2}]
    with pytest.raises(PlanError, match="two columns of one name"):
        context.sql("SELECT 1 AS a, 2 AS a").createOrReplaceTempView("w")


def test_cached_rows_do_not_change_with_their_source(tmp_path: Any):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n2\n")
    context = kq.ExecutionContext()
    context.register_csv("t", path, schema="a int")
    kept = context.table("t").select("a", "a").cache()
    path.unlink()
    assert kept.columns == ["a", "a"]
    assert kept.count() == 2
    with pytest.raises(SqlError, match=r"the tables are t$"):
        context.table("cached")


def test_cached_rows_are_freed_with_their_frame():
    context = kq.ExecutionContext()
    frame = context.sql("SELECT id FROM range(10)").cache()
    cached = next(node for node in walk_plan(frame.plan) if isinstance(node, Scan))
    rows = weakref.ref(cached.source)
    assert context.table_names() == []
    del cached
    frame = frame.filter("id > 3").cache()
    gc.collect()
    assert rows() is None
    assert frame.count() == 6


def test_a_frame_keeps_the_tables_it_was_made_of():
    context = kq.ExecutionContext()
    context.sql("SELECT 1 AS x").createOrReplaceTempView("v")
    made = context.table("v").withColumn("x", kq.col("x") + 1)
    joined = context.table("v").join(
        context.sql("WITH w AS (SELECT * FROM v) SELECT x, 'w' AS y FROM w"), "x"
    )
    made.createOrReplaceTempView("v")
    context.sql("SELECT 'other' AS y").createOrReplaceTempView("w")
    assert made.limit(5).collect() == [{"x": 2}]
    assert made.filter("x = 2").count() == 1
    assert joined.filter("x = 1").collect() == [{"x": 1, "y": "w"}]
    assert joined.filter("EXISTS (SELECT * FROM w)").limit(1).count() == 1
    assert context.table("v").collect() == [{"x": 2}]


@pytest.mark.parametrize("word", ["OR", "AND"])
def test_a_condition_of_many_terms(word: str):
    frame = kq.ExecutionContext().sql("SELECT explode(array(1, 2, 3)) AS id")
    terms = [f"id {'=' if word == 'OR' else '<>'} {i}" for i in range(2, 1500)]
    assert frame.filter(f" {word} ".join(terms)).count() == (2 if word == "OR" else 1)
    condition = kq.col("id") == 2
    for i in range(3, 1500):
        condition = condition | (kq.col("id") == i) if word == "OR" else condition & (kq.col("id") != i)
    assert frame.filter(condition).count() == (2 if word == "OR" else 1)
