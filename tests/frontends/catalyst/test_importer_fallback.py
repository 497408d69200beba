"""What falls back to Spark: hand-overs below, accelerated subtrees under unsupported parents, reasons."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kquery_spark as kq
from kquery_spark.accelerate.planning.pipeline import plan_frame
from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.importer import support_table
from kquery_spark.frontends.catalyst.support import Level
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.relations.leaves import RelationReader
from tests.conftest import settings
from tests.docs.support_page import support_page
from tests.frontends.catalyst.engine import TakenQuery, assert_same_rows, take


@pytest.fixture
def take_query(spark: Any, jvm: Jvm, zoo: None) -> Any:
    return lambda query: take(spark, jvm, query)


@contextmanager
def setting(spark: Any, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def declined(query: TakenQuery) -> str:
    with pytest.raises(Unsupported) as error:
        query.whole()
    return error.value.reason


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("select corr(id, id) as c from t", "Corr"),
        ("select id from t where size(slice(array(id, 2), 1, 1)) = 1", "Slice"),
    ],
)
def test_what_a_release_answers_otherwise_stays_with_it(
    take_query: Any, jvm: Jvm, query: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(jvm), "spark_version", "4.3.0")
    take_query(query).whole()
    monkeypatch.setitem(vars(jvm), "spark_version", "4.2.1")
    assert declined(take_query(query)).startswith("Spark 4.2.1, unlike 4.3, ")
    assert name in declined(take_query(query))


@pytest.mark.parametrize(
    ("query", "release", "first"),
    [
        ("select initcap(concat('a', id)) as c from t", "3.5.6", "4.0.0"),
        ("select cast(timestamp_seconds(id) as int) as c from t", "3.5.6", "4.0.0"),
        ("select -cast(id as decimal(38, 10)) as c from t", "3.5.6", "4.0.0"),
        ("select abs(cast(id as decimal(38, 10))) as c from t", "3.5.6", "4.0.0"),
        ("select lpad(concat('a', id), cast(id as int), 'x') as c from t", "4.0.4", "4.0.5"),
        ("select substring(cast(concat('a', id) as binary), -3, 2) as c from t", "4.1.3", "4.1.4"),
        ("select regexp_instr(concat('a', id), '[0-9]') as c from t", "4.2.0", "4.2.1"),
        ("select concat('a', id) like '%😀_' as c from t", "3.5.8", "3.5.9"),
        ("select try_to_number(concat(id, ''), '99') as c from t", "4.1.0", "4.1.1"),
        ("select regr_r2(id, 1) as c from t", "4.0.2", "4.0.4"),
        ("select overlay(concat('a', id), 'b', cast(id as int)) as c from t", "4.2.0", "4.2.1"),
        ("select ceil(cast(id as double)) as c from t", "4.2.1", "4.3.0"),
    ],
)
def test_a_call_stays_with_releases_before_the_one_that_changed_it(
    take_query: Any, jvm: Jvm, query: str, release: str, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(jvm), "spark_version", first)
    take_query(query).whole()
    monkeypatch.setitem(vars(jvm), "spark_version", release)
    reason = declined(take_query(query))
    assert f"Spark {release}, unlike " in reason
    assert first.removesuffix(".0") in reason


@pytest.mark.parametrize(
    "query",
    [
        "select lpad(concat('a', id), 5, 'x') as c from t",
        "select -cast(id as decimal(30, 10)) as c from t",
        "select overlay(concat('a', id), 'b', 2) as c from t",
        "select ceil(cast(id as decimal(7, 2))) as c from t",
        "select cast(timestamp_seconds(id) as bigint) as c from t",
    ],
)
def test_calls_that_no_release_answers_otherwise_do_not_stay(
    take_query: Any, jvm: Jvm, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(jvm), "spark_version", "3.5.6")
    take_query(query).whole()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select id, uuid() as u from t", "random identifiers are not supported"),
        ("select id, rand() as r from t", "random numbers are not supported"),
        (
            "select id, spark_partition_id() as p from t",
            "the number of a Spark partition is not supported",
        ),
        (
            "select id, input_file_block_start() as f from range(3)",
            "which file is being read is known to Spark only",
        ),
        (
            f"select * from values {', '.join(f'(array({i}))' for i in range(201))} as v(a)",
            "array<int> values in large inline tables are not supported",
        ),
        (
            f"select a.id from values ({'), ('.join(map(str, range(20001)))}) as a(id)",
            "inline tables of 20,001 rows are not supported",
        ),
        ("select id from range(-9000000000000000000, 9000000000000000000)", "wider than 62 bits"),
        ("select id from t sort by id", "sorting within Spark's partitions is not supported"),
        ("select id from t tablesample (50 percent)", "random samples are not supported"),
        (
            "select /*+ repartition(3) */ id from t",
            "repartitioning that the query can observe is not supported",
        ),
        ("select reflect('java.util.UUID', 'randomUUID') as r from t", "is not supported"),
    ],
)
def test_one_sentence_says_why(take_query: Any, query: str, reason: str) -> None:
    assert reason in declined(take_query(query))


def test_parts_of_files_are_known_to_spark(spark: Any, jvm: Jvm, zoo_dir: Any) -> None:
    with settings(spark, {"spark.sql.files.openCostInBytes": "1b"}):
        frame = spark.read.parquet(str(zoo_dir / "t")).select("id", "_metadata.file_block_start")
        reason = declined(take(spark, jvm, frame))
    assert reason == "_metadata.file_block_start of files that Spark may split is not supported"


def test_the_first_node_that_is_unsupported_is_named(take_query: Any) -> None:
    """Nodes that only pass rows on let the reason of what is below them through."""
    query = take_query(
        "select id + 1 as a from (select id from t tablesample (50 percent)) where id > 3 order by id"
    )
    with pytest.raises(Unsupported) as error:
        query.whole()
    assert error.value.node.cls == "Sample"  # type: ignore[attr-defined]


def test_python_functions_stay_with_spark(spark: Any, take_query: Any) -> None:
    from pyspark.sql.functions import udf

    plus = udf(lambda x: None if x is None else x + 1, "long")
    query = take_query(spark.table("t").select(plus("id").alias("a")))
    assert declined(query) == "a Python UDF is not supported"


def test_an_unsupported_subtree_feeds_the_engine(spark: Any, take_query: Any) -> None:
    from pyspark.sql.functions import udf

    text = udf(lambda x: f"<{x}>", "string")
    frame = spark.table("t").select("i", "m", "b", text("s").alias("x")).groupBy("x").sum("m")
    query = take_query(frame)
    imported = query.whole()
    (handover,) = imported.inputs
    assert handover.node.cls == "Project"
    assert [name for _, name in [(n.cls, r) for n, r in imported.declined]] == [
        "a Python UDF is not supported"
    ]
    assert set(handover.schema.names) == {"m", "x"}
    assert_same_rows(query.run(imported), frame.toArrow())


def test_a_hand_over_keeps_only_the_columns_that_are_read(spark: Any, take_query: Any) -> None:
    spark.range(100).sample(1.0, seed=1).selectExpr("id", "id + 1 as unread").createOrReplaceTempView("r")
    query = take_query("select k, count(*) as n from r join pt using (id) group by k")
    imported = query.whole()
    assert [h.schema.names for h in imported.inputs] == [["id"]]
    assert_same_rows(query.run(imported), query.frame.toArrow())


def test_a_cached_table_feeds_the_engine(spark: Any, take_query: Any) -> None:
    cached = spark.sql("select i, m, s from t where i is not null").cache()
    cached.count()
    try:
        frame = cached.groupBy("i").sum("m")
        query = take_query(frame)
        imported = query.whole()
        assert [(n.cls, reason) for n, reason in imported.declined] == [
            ("InMemoryRelation", "cached rows other than plain columns of files are not supported")
        ]
        assert_same_rows(query.run(imported), frame.toArrow())
    finally:
        cached.unpersist()


def test_below_an_unsupported_node_the_aggregate_is_accelerated(take_query: Any) -> None:
    query = take_query(
        "select i, count(*) as n from t group by i having size(sentences(cast(count(*) as string))) > 1"
    )
    (part,) = plan_frame(query.frame).parts
    assert part.node.cls == "Aggregate"
    assert str(part.imported.plan).startswith("Aggregate: groupExpr=[#i], aggregateExpr=[COUNT(*) AS n]")


def test_both_sides_of_an_unsupported_node_are_accelerated(take_query: Any) -> None:
    query = take_query(
        """select * from (select i, count(*) n from t group by i) a
           full join (select k, count(*) n from pt group by k) b
           on a.i = b.k and size(sentences(cast(a.n + b.n as string))) > 1"""
    )
    with pytest.raises(Unsupported):
        query.whole()
    assert [part.node.cls for part in plan_frame(query.frame).parts] == ["Aggregate", "Aggregate"]


def test_a_scan_below_an_unsupported_node_is_not_worth_it(take_query: Any) -> None:
    query = take_query("select id, rand() as r from t where i > 3")
    assert plan_frame(query.frame).parts == ()


@pytest.mark.parametrize(
    "query",
    ["select i, percentile_approx(m, 0.5) from t group by i", "select id, rand() as r from t where i > 3"],
)
def test_relations_of_what_stays_with_spark_are_looked_at_once_at_most(
    take_query: Any, monkeypatch: Any, query: str
) -> None:
    asked: list[str] = []
    read = RelationReader.read
    monkeypatch.setattr(
        RelationReader, "read", lambda reader, node: (asked.append(node.cls), read(reader, node))[1]
    )
    assert plan_frame(take_query(query).frame).parts == ()
    assert len(asked) == ("rand()" in query)


def test_a_whole_query_is_its_own_root(take_query: Any) -> None:
    query = take_query("select id from t where i > 3")
    (part,) = plan_frame(query.frame).parts
    assert part.position == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.legacy.charVarcharAsString", "true"),
    ],
)
def test_settings_that_change_answers_decline_the_query(
    spark: Any, take_query: Any, name: str, value: str
) -> None:
    with setting(spark, name, value):
        query = take_query("select sum(m) as x from t")
        assert declined(query) == f"the engine does not follow the setting {name}={value}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.files.ignoreCorruptFiles", "true"),
        ("spark.sql.parquet.ignoreVariantAnnotation", "true"),
        ("spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing", "true"),
    ],
)
def test_settings_of_files_make_spark_read_them(spark: Any, take_query: Any, name: str, value: str) -> None:
    with setting(spark, name, value):
        imported = take_query("select i, count(*) as n from t group by i").whole()
    ((node, reason),) = imported.declined
    assert node.cls == "LogicalRelation"
    assert "files are not supported while" in reason


def test_an_option_that_is_not_known_makes_spark_read_the_files(spark: Any, jvm: Jvm, zoo_dir: Any) -> None:
    frame = (
        spark.read.option("variantAllowReadingShredded", "true")
        .parquet(str(zoo_dir / "t"))
        .groupBy("i")
        .count()
    )
    imported = take(spark, jvm, frame).whole()
    assert [reason for _, reason in imported.declined] == [
        "files with the option variantallowreadingshredded are not supported"
    ]


def test_the_support_table_has_a_reason_for_whatever_stays(spark: Any) -> None:
    rows = support_table()
    assert {"plan", "expression", "aggregate", "window function"} == {row.kind for row in rows}
    assert all(row.note for row in rows if row.level is not Level.FULL)
    assert len({(row.kind, row.cls) for row in rows}) == len(rows)


def test_the_page_of_the_support_table_is_up_to_date() -> None:
    command = "python -m tests.docs.support_page docs/support.md"
    page = Path(__file__).parents[3] / "docs" / "support.md"
    assert page.read_text() == support_page(kq.support_table()), f"write it anew: {command}"
