"""``kq.explain``: text, object, HTML and metrics tell what happens."""

import pytest
from pyspark.sql import DataFrame

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.accelerate.explain_mermaid import _escaped

QUERY = (
    "SELECT l_returnflag, sum(l_quantity) AS q FROM lineitem WHERE l_shipdate > DATE'1995-01-01' GROUP BY 1"
)


BY_SPARK = "repartitioning that the query can observe is not supported"


def repartitioned(frame: DataFrame) -> DataFrame:
    """The frame below a node that falls back to Spark."""
    return frame.repartition(2)


def test_the_text_has_every_section(spark, tables):
    text = str(kq.explain(spark.sql(QUERY)))
    for title in (
        "Coverage: 100%",
        "== Query",
        "== Decision",
        "== Logical plan",
        "== Optimized plan",
        "== Stages",
    ):
        assert title in text
    assert "* Aggregate" in text
    assert "Falls back to Spark" not in text
    assert "== Rule projection_pushdown ==" in str(kq.explain(spark.sql(QUERY), trace=True))


def test_nodes_are_marked_with_who_runs_them(spark, tables):
    explained = kq.explain(repartitioned(spark.sql(QUERY)))
    names = [(n.name, n.runs) for n in explained.nodes]
    assert names[:2] == [("Repartition", "Spark"), ("Aggregate", "engine")]
    assert explained.nodes[0].reason == BY_SPARK
    assert ("Repartition", BY_SPARK) in explained.reasons
    assert 0 < explained.coverage < 1

    below = spark.table("lineitem").sample(1.0, seed=1).groupBy("l_returnflag").count()
    explained = kq.explain(below)
    assert (explained.nodes[0].name, explained.nodes[0].runs) == ("Aggregate", "engine")
    assert ("Sample", "hand-over") in [(n.name, n.runs) for n in explained.nodes]
    assert "> " in str(explained)


def test_a_subquery_is_part_of_the_plan(spark, tables):
    sql = "SELECT count(*) FROM nation WHERE n_nationkey > (SELECT avg(n_nationkey) FROM nation TABLESAMPLE (50 PERCENT))"
    explained = kq.explain(spark.sql(sql))
    assert explained.coverage < 1
    assert ("Sample", "hand-over") in [(n.name, n.runs) for n in explained.nodes]


def test_stages_have_splits_bytes_and_exchanges(spark, tables):
    (stages,) = kq.explain(spark.sql(QUERY)).stages
    assert stages[-1].output == "result"
    assert stages[0].splits >= 1
    assert stages[0].scan_bytes > 0
    assert "split(s) of about" in str(stages[0])
    pruned = spark.sql("SELECT count(*) FROM lineitem WHERE l_orderkey < 0")
    ((first, *_),) = kq.explain(pruned).stages
    assert first.splits == 0 < first.all_splits


def test_accelerated_follows_the_decision(spark, tables):
    frame = spark.sql("SELECT count(*) FROM region")
    explained = kq.explain(frame)
    assert explained.accelerated == any(d.accelerate for d in explained.decisions)
    always = kq.explain(frame.transform(kquery_plan, when="always"))
    assert always.accelerated
    assert always.coverage == 1.0
    assert not kq.explain(spark.range(3).sample(1.0)).accelerated


def test_metrics_after_a_run(spark, tables):
    frame = spark.sql(QUERY)
    assert kq.explain(frame).stages[0][0].metrics is None
    (stages,) = kq.explain(frame, analyze=True).stages
    assert all(s.metrics is not None and s.metrics.tasks == s.tasks for s in stages)
    last = stages[-1].metrics
    assert last.operators[0][1].rows == 3
    assert last.sent > 0
    scan = next(m for s in stages for label, m in s.metrics.operators if "ScanExec" in label)
    assert (
        scan.rows
        == frame.sparkSession.sql(
            "SELECT count(*) FROM lineitem WHERE l_shipdate > DATE'1995-01-01'"
        ).first()[0]
    )
    assert scan.seconds > 0
    text = str(kq.explain(frame.transform(kquery_plan, when="always"), analyze=True))
    assert "task(s) ran" in text
    assert " rows, " in text


def test_metrics_of_several_parts(spark, tables):
    half = repartitioned(spark.sql(QUERY))
    first, second = kq.explain(half.union(half), analyze=True).stages
    assert first[-1].metrics.operators[0][1].rows == second[-1].metrics.operators[0][1].rows == 3


def test_html_is_escaped_and_whole(spark, tables):
    frame = spark.sql("SELECT max('<b>&') AS `<i>`, n_regionkey FROM nation GROUP BY 2")
    html = kq.explain(repartitioned(frame))._repr_html_()
    assert html.startswith("<div")
    assert html.count("<details") == html.count("</details>") >= 4
    assert "<i>" not in html
    assert "&lt;" in html
    assert BY_SPARK in html


def test_assert_accelerated(spark, tables):
    kq.assert_accelerated(spark.sql(QUERY))
    kq.assert_accelerated(spark.sql(QUERY).transform(kquery_plan, when="always"))
    frame = repartitioned(spark.sql(QUERY))
    with pytest.raises(AssertionError, match=r"(?s)not 100%.*Repartition: repartitioning"):
        kq.assert_accelerated(frame)
    kq.assert_accelerated(frame, coverage=0.5)
    with pytest.raises(AssertionError, match="the engine runs 0% of the query"):
        kq.assert_accelerated(spark.range(3).sample(1.0))
    spark.conf.set("spark.kquery.enabled", "false")
    try:
        with pytest.raises(AssertionError, match="switched off"):
            kq.assert_accelerated(spark.sql(QUERY))
    finally:
        spark.conf.unset("spark.kquery.enabled")


def test_a_flowchart_has_the_stages_and_what_they_did(spark, tables):
    before = kq.explain(spark.sql(QUERY))
    chart = before.mermaid()
    assert chart.startswith("flowchart TD\n")
    for stage in before.stages[0]:
        assert f'["{stage.stage_id}: ' in chart
        assert stage.output == "result" or stage.output.replace("#", "#35;") in chart
    assert chart.count(" -->") == len(before.stages[0]) - 1
    assert " rows, " not in chart
    after = kq.explain(spark.sql(QUERY), analyze=True)
    assert "3 rows, " in after.mermaid()


def test_flowcharts_of_several_parts_of_rows_of_spark_and_of_none(spark, tables):
    half = repartitioned(spark.sql(QUERY))
    assert "part 2 of 2" in kq.explain(half.union(half)).mermaid()
    below = spark.table("lineitem").sample(1.0, seed=1).groupBy("l_returnflag").count()
    assert '["rows from Spark"]' in kq.explain(below).mermaid()
    assert "Spark runs all of this query" in kq.explain(spark.range(3).sample(1.0)).mermaid()


def test_flowcharts_escape_labels(spark, tables):
    """In Mermaid, quotes would end a box, and angle brackets would be HTML."""
    frame = spark.sql("SELECT count(*) FROM nation GROUP BY concat('\"<b>', n_name)")
    boxes = [line for line in kq.explain(frame).mermaid().splitlines() if "[" in line]
    assert all(line.count('"') == 2 for line in boxes)
    assert not any("<b>" in line for line in boxes)
    assert any("#60;b#62;" in line for line in boxes)
    assert _escaped("  'a\nb' * 2") == "#nbsp;#nbsp;'a#10;b' #42; 2"
    assert _escaped("#_tmp_ = ~#a_b__c + #__d") == "#35;#95;tmp#95; = #126;#35;a_b__c + #35;#95;#95;d"
