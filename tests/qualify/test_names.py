"""Queries are named by what they do, and those of the engine are recognized."""

from __future__ import annotations

import re

import pytest

import kquery_spark as kq
from kquery_spark.qualify.html import render_html
from kquery_spark.qualify.logs import qualify_logs
from kquery_spark.qualify.names import query_name, runs_in_engine, summarize, table_name
from kquery_spark.qualify.plan import PhysicalNode
from kquery_spark.qualify.text import render_text
from tests.support.event_logs import logged_events


@pytest.mark.parametrize(
    ("description", "summary", "name"),
    [
        ("collect at /jobs/daily.py:27", "orders: sort", ("orders: sort", "collect at daily.py:27")),
        ("save at NativeMethodAccessorImpl.java:0", "orders: write", ("orders: write", "save")),
        ("nightly  totals", "orders: sort", ("nightly totals", "orders: sort")),
        ("meet at noon", "orders: sort", ("meet at noon", "orders: sort")),
        ("", "orders: sort", ("orders: sort", "")),
        ("collect at /jobs/daily.py:27", "", ("collect at /jobs/daily.py:27", "")),
        ("", "", ("query 3", "")),
    ],
)
def test_a_line_of_code_is_a_detail_and_a_description_is_a_name(description, summary, name):
    assert query_name(description, summary, 3) == name


@pytest.mark.parametrize(
    ("node", "name"),
    [
        (PhysicalNode("Scan parquet spark_catalog.default.orders", "FileScan parquet ..."), "orders"),
        (PhysicalNode("Scan hive default.orders"), "orders"),
        (PhysicalNode("BatchScan ice.db.orders"), "orders"),
        (
            PhysicalNode(
                "Scan csv ",
                "FileScan csv [a#1] Batched: false, Location: InMemoryFileIndex(1 paths)[file:/data/orders/day=1], X: [y]",
            ),
            "orders",
        ),
        (
            PhysicalNode(
                "Scan parquet",
                metadata={"Location": "InMemoryFileIndex(2 paths)[s3a://b/a.parquet, s3a://b/b..."},
            ),
            "a.parquet",
        ),
        (PhysicalNode("Scan parquet", metadata={"Location": "InMemoryFileIndex(1 paths)[..."}), ""),
        (PhysicalNode("Range"), "range"),
        (PhysicalNode("Filter", "Filter (Location: x [file:/a/b])"), ""),
    ],
)
def test_a_scan_is_named_by_its_table_or_directory(node, name):
    assert table_name(node) == name


def test_a_plan_that_nests_deeply_has_a_summary():
    plan = PhysicalNode("Range")
    for _ in range(20_000):
        plan = PhysicalNode("Filter", children=(plan,))
    assert summarize(plan) == "range: filter"
    assert not runs_in_engine(plan)


@pytest.fixture(scope="module")
def logs(spark, tmp_path_factory):
    """Logs of one job, on plain Spark and with the engine."""
    root = tmp_path_factory.mktemp("logs")
    for name, rows in (("orders", 20_000), ("cities", 7)):
        spark.range(rows).selectExpr("id % 7 AS city", f"id AS {name}_v").write.parquet(str(root / name))

    def job():
        orders, cities = (spark.read.parquet(str(root / name)) for name in ("orders", "cities"))
        orders.join(cities, "city").groupBy("city").count().collect()
        orders.orderBy("city", "orders_v").write.format("noop").mode("overwrite").save()
        spark.sql("SELECT max(id) FROM range(10)").collect()

    with logged_events(spark, root / "plain", compress="false", rolling_enabled="false"):
        job()
    with logged_events(spark, root / "accelerated", compress="false", rolling_enabled="false"):
        kq.enable(spark, when="always")
        try:
            job()
        finally:
            kq.disable(spark)
        orders = spark.read.parquet(str(root / "orders"))
        orders.groupBy("city").count().collect()
    return root


def test_queries_of_the_engine_are_left_out_and_counted(logs):
    result = qualify_logs(logs / "accelerated")
    assert [query.name for query in result.queries] == ["orders: aggregate"]
    assert result.accelerated == 3
    assert "3 queries already ran in the engine and are left out" in render_text(result, 20)
    assert result.as_dict()["accelerated"] == 3
    assert qualify_logs(logs / "plain").accelerated == 0


def test_queries_are_named_by_tables_and_operators(logs):
    names = {query.name: query.detail for query in qualify_logs(logs / "plain").queries}
    joined = next(name for name in names if "join" in name)
    assert set(joined.partition(":")[0].split(", ")) == {"orders", "cities"}
    assert joined.endswith("join, aggregate")
    assert re.fullmatch(r"collect at test_names\.py:\d+", names[joined])
    assert names["orders: sort, write"] == "save"
    assert "range: aggregate" in names
    text = render_text(qualify_logs(logs / "plain"), 20)
    assert f"{joined} ({names[joined]})" in text


def test_the_page_fits_a_narrow_screen(logs):
    page = render_html(qualify_logs(logs / "plain"), "queries")
    style = page[page.index("<style>") : page.index("</style>")]
    assert 'name="viewport" content="width=device-width"' in page
    # Below this width each row is a card, so no table is wider than the screen.
    narrow = style[style.index("@media (max-width: 45em)") :]
    assert re.search(r"table\.cards, [^{]*\.cards td \{ display: block; \}", narrow)
    assert "white-space: normal" in narrow
    assert re.findall(r"(?<![-\w])width: *[\d.]+(?:px|em)", style) == []
    # Only ``pre`` keeps its line ends; it scrolls in its own box. Other long words are broken.
    assert re.search(r"pre \{[^}]*overflow-x: auto", style)
    assert re.search(r"summary, td\.name \{ overflow-wrap: anywhere", style)
    assert page.count("<table") == page.count("<table class=cards>")
    assert 'data-label="saves"' in page
