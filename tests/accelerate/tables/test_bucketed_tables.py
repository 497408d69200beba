"""Bucketed tables of the session's catalog: no shuffle where Spark has none, only the buckets that Spark reads, its rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kquery_spark as kq
from tests.accelerate.checks import check
from tests.conftest import exhaustive, settings

#: Several tasks for little data, and joins that are not broadcast.
TASKS = {
    "spark.kquery.smallBytes": "0",
    "spark.kquery.broadcastBytes": "0",
    "spark.kquery.splitBytes": "4k",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.enabled": "false",
}
BUCKETING = "spark.sql.sources.bucketing.enabled"
KEYS = {
    "i": "cast(id % 40 - 20 AS int)",
    "s": "concat('ä', id % 40)",
    "d": "if(id % 40 = 3, -0.0D, if(id % 40 = 4, double('NaN'), id % 40 / 4))",
    "m": "cast(id % 40 / 4 AS decimal(10,2))",
    "at": "timestamp_millis(id % 40 * 1234567)",
    "b": "id % 2 = 0",
    "t": "cast(id % 40 AS tinyint)",
    "l": "id * 10000000019",
    "w": "cast(id % 40 AS decimal(30,4))",
    "y": "cast(concat('b', id % 40) AS binary)",
    "day": "date_add(date'1969-12-20', cast(id % 40 AS int))",
    "n": "cast(timestamp_millis(id % 40 * 1234567) AS timestamp_ntz)",
    "f": "float(id % 40 / 4)",
    "h": "cast(id % 40 AS smallint)",
    "months": "make_ym_interval(0, cast(id % 40 AS int))",
    "time": "make_dt_interval(0, 0, 0, id % 40 / 4)",
}


#: Queries, and how many shuffles Spark plans for them where the engine has as many.
QUERIES: list[tuple[str, int | None]] = [
    ("SELECT k, count(*), sum(id), min(s) FROM eight GROUP BY k", 0),
    ("SELECT s, k, count(DISTINCT id) FROM eight GROUP BY s, k", 0),
    ("SELECT k, count(*) FROM stripes GROUP BY k", 0),
    ("SELECT k, p, count(*) FROM directories WHERE p > 0 GROUP BY k, p", 0),
    ("SELECT s, k, count(*) FROM two GROUP BY k, s", 0),
    ("SELECT a.id, b.s FROM eight a JOIN eight b ON a.k = b.k AND a.id < b.id WHERE a.id < 500", 0),
    ("SELECT a.id, b.s FROM stripes a LEFT JOIN directories b ON a.k = b.k AND b.p = 1", 0),
    ("SELECT k, count(*) FROM four LEFT SEMI JOIN directories USING (k) GROUP BY k", 0),
    ("SELECT k, a.id, b.id FROM four a FULL JOIN stripes b USING (k)", 0),
    ("SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS r FROM eight", 0),
    (
        "SELECT * FROM (SELECT id, rank() OVER (PARTITION BY k ORDER BY s, id) AS r FROM eight) WHERE r < 3",
        0,
    ),
    ("SELECT a.id, b.s FROM two a JOIN two b ON a.k = b.k AND a.s = b.s", 0),
    ("SELECT k, count(*) FROM two GROUP BY k", 1),
    ("SELECT k + 1, count(*) FROM eight GROUP BY k + 1", 1),
    ("SELECT a.id, b.s FROM two a JOIN two b ON a.k = b.k AND a.id = b.id", 2),
    ("SELECT a.id, b.s FROM eight a JOIN rest b USING (k)", None),
    ("SELECT a.id FROM eight a JOIN four b ON a.k = cast(b.k AS int)", None),
    ("SELECT k, count(*) FROM (SELECT k FROM eight UNION ALL SELECT k FROM four) GROUP BY k", None),
]


@pytest.fixture(scope="module")
def tables(spark: Any) -> Iterator[None]:
    """eight and four by k, two by k and s, rest by k into three buckets; in directories by p; as ORC."""
    rows = spark.range(3000).selectExpr(
        "id", "if(id % 101 = 0, NULL, id % 97) AS k", "concat('s', id % 13) AS s", "id % 3 AS p"
    )
    written = {
        "eight": rows.write.bucketBy(8, "k").sortBy("k"),
        "four": rows.where("id % 3 = 0").write.bucketBy(4, "k"),
        "two": rows.where("id % 2 = 0").write.bucketBy(4, "k", "s"),
        "rest": rows.where("id % 5 = 0").write.bucketBy(3, "k"),
        "directories": rows.write.partitionBy("p").bucketBy(4, "k"),
        "stripes": rows.write.format("orc").bucketBy(4, "k"),
    }
    for name, writer in written.items():
        writer.mode("overwrite").saveAsTable(name)
    with settings(spark, TASKS):
        yield
    for name in written:
        spark.sql(f"DROP TABLE {name}")


def stages(frame: Any) -> int:
    return sum(map(len, kq.explain(frame).stages))


def exchanges(frame: Any) -> int:
    return str(frame._jdf.queryExecution().executedPlan()).count("Exchange ")


@pytest.mark.parametrize(
    ("query", "shuffles"),
    [pytest.param(*case, marks=exhaustive if n % 2 else ()) for n, case in enumerate(QUERIES)],
)
def test_no_shuffle_where_spark_has_none(spark: Any, tables: None, query: str, shuffles: int | None) -> None:
    frame = spark.sql(query)
    check(frame, coverage=1.0)
    if shuffles is not None:
        assert exchanges(frame) == shuffles
        assert stages(frame) == shuffles + 1


def test_tables_of_other_numbers_of_buckets(spark: Any, tables: None) -> None:
    """Spark shuffles one of them, or coalesces; the engine does not have to shuffle."""
    frame = spark.sql("SELECT a.id, b.s FROM eight a JOIN four b ON a.k = b.k")
    check(frame, coverage=1.0)
    assert stages(frame) == 1


def test_without_bucketing(spark: Any, tables: None) -> None:
    with settings(spark, {BUCKETING: "false"}):
        frame = spark.sql("SELECT k, count(*) FROM eight GROUP BY k")
        check(frame, coverage=1.0)
        assert stages(frame) == exchanges(frame) + 1 == 2


def test_few_rows_in_one_task(spark: Any, tables: None) -> None:
    with settings(spark, {"spark.kquery.smallBytes": "8m"}):
        check(spark.sql("SELECT k, count(*) FROM eight JOIN four USING (k) GROUP BY k"), coverage=1.0)


def test_rows_that_were_appended_are_in_further_files_of_their_buckets(spark: Any, tables: None) -> None:
    spark.sql("INSERT INTO two SELECT id + 10000, 3, 'new', 0 FROM range(50)")
    check(spark.sql("SELECT k, s, count(*) FROM two WHERE k = 3 GROUP BY k, s"), coverage=1.0)


@pytest.mark.parametrize("key", KEYS)
def test_only_the_buckets_of_the_values_are_read(spark: Any, tables: None, key: str) -> None:
    """A hash other than Spark's would miss rows."""
    rows = spark.range(200).selectExpr(f"if(id % 23 = 0, NULL, {KEYS[key]}) AS k", "id")
    try:
        rows.write.bucketBy(6, "k").saveAsTable("keyed")
        values = [
            row.v for row in spark.sql("SELECT DISTINCT string(k) AS v FROM keyed ORDER BY v").collect()
        ]
        kind = spark.table("keyed").schema["k"].dataType.simpleString()
        some = [f"""cast("{value}" AS {kind})""" for value in values[1:8]]
        for condition in (
            f"k = {some[0]}",
            f"k <=> {some[-1]}",
            f"k IN ({', '.join(some)})",
            f"k IN ({', '.join(some[:2])}, NULL) OR k IS NULL",
            f"k = {some[1]} AND id > 20",
            f"k = {some[1]} OR id > 190",
        ):
            frame = spark.sql(f"SELECT k, id FROM keyed WHERE {condition}")
            # IN lists with zeros of both signs fall back to Spark
            check(frame, coverage=0.0 if key == "d" and "IN" in condition else 1.0)
        (stage,) = kq.explain(spark.sql(f"SELECT id FROM keyed WHERE k = {some[0]}")).stages[0]
        assert stage.splits < stage.all_splits
    finally:
        spark.sql("DROP TABLE IF EXISTS keyed")


@pytest.mark.parametrize("key", KEYS)
def test_rows_of_another_table_are_sent_to_the_buckets(
    spark: Any, tables: None, key: str, tmp_path: Path
) -> None:
    """A hash other than Spark's would send them to where they meet nothing."""
    shuffled = 2 if key in "df" else 1  # Spark normalizes floating-point keys first, so both sides
    rows = spark.range(400).selectExpr(f"if(id % 23 = 0, NULL, {KEYS[key]}) AS k", "id")
    loose = str(tmp_path / "loose")
    rows.where("id < 60").repartition(2).write.parquet(loose)
    try:
        rows.write.bucketBy(6, "k").saveAsTable("keyed")
        spark.read.parquet(loose).createOrReplaceTempView("loose")
        for joined in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT ANTI JOIN"):
            frame = spark.sql(f"SELECT a.id FROM keyed a {joined} loose b ON a.k = b.k AND a.id > b.id")
            check(frame, coverage=1.0)
            assert exchanges(frame) == shuffled
            assert stages(frame) == shuffled + 1, joined
        grouped = spark.sql("SELECT a.k, count(*) FROM keyed a JOIN loose b ON a.k = b.k GROUP BY a.k")
        check(grouped, coverage=1.0)
        assert shuffled == 2 or stages(grouped) == 2
    finally:
        spark.sql("DROP TABLE IF EXISTS keyed")
        spark.catalog.dropTempView("loose")


def test_queries_over_files_of_no_bucket_fall_back_to_spark(spark: Any, tables: None) -> None:
    location = spark.sql("DESCRIBE FORMATTED rest").where("col_name = 'Location'").head().data_type
    file = next(Path(location.removeprefix("file:")).glob("part-*.parquet"))
    file.rename(file.with_name("plain.parquet"))
    try:
        spark.catalog.refreshTable("rest")
        frame = spark.sql("SELECT k, count(*) FROM rest GROUP BY k")
        assert any("plain.parquet" in sentence for _, sentence in kq.explain(frame).reasons)
        counted = "(SELECT k % 9 AS k, count(*) AS n FROM four GROUP BY k % 9)"
        joined = spark.sql(f"SELECT rest.k, n FROM rest JOIN {counted} c ON rest.k = c.k ORDER BY n")
        for query in (frame, joined):
            assert kq.explain(query).coverage == 0
            with pytest.raises(Exception, match="INVALID_BUCKET_FILE"):
                query.transform(kq.kquery_plan, when="always").collect()
        check(spark.table("rest").where("k > 3"), coverage=0.0)  # not by buckets, which it does not need
        with settings(spark, {BUCKETING: "false"}):
            check(spark.sql("SELECT k, count(*) FROM rest GROUP BY k"), coverage=1.0)
    finally:
        file.with_name("plain.parquet").rename(file)
        spark.catalog.refreshTable("rest")
