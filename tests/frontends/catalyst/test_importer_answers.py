"""Imported plans give Spark's rows where more than a statement is needed; statements are in tests/sql."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.spark_bridge.jvm.calls import Jvm
from tests.frontends.catalyst.engine import assert_same_rows, take


def test_projections_of_expand_that_the_json_loses_are_fetched(spark: Any, jvm: Jvm, zoo: None) -> None:
    """Spark pushes projections into an Expand over a UNION as Scala vectors, which its JSON leaves out."""
    taken = take(
        spark,
        jvm,
        """select k, s, sum(x) from (select i k, s, sum(m) as x from t group by i, s
           union all select k, string(p), null from pt group by k, p) group by rollup(k, s)""",
    )
    expands = [node for node in taken.root.walk() if node.cls == "Expand"]
    assert [node.fields["projections"] for node in expands] == [None]
    fetched = taken.facts.projections(expands[0])
    assert [[item.cls for item in row][-1] for row in fetched] == ["Literal"] * 3
    assert_same_rows(taken.run(taken.whole()), taken.frame.toArrow())


def test_two_rows_of_a_scalar_subquery_are_an_error(spark: Any, jvm: Jvm, zoo: None) -> None:
    taken = take(spark, jvm, "select id from t where i > (select k from pt where id < 3)")
    with pytest.raises(ExecutionError, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        taken.run(taken.whole())
    with pytest.raises(Exception, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        taken.frame.toArrow()


def test_a_kept_build_side_is_not_taken_for_one_that_matches_nulls(spark: Any, jvm: Jvm, zoo: None) -> None:
    """The same build plan and keys: with ``=`` its NULLs match nothing, with ``<=>`` they match NULLs."""
    plain = take(spark, jvm, "select t.id from t left semi join pt on t.i = pt.k")
    safe = take(spark, jvm, "select t.id from t left semi join pt on t.i <=> pt.k")
    for taken in (plain, safe, plain):
        assert_same_rows(taken.run(taken.whole()), taken.frame.toArrow())


# Expressions with a mode of their own, in one query: what each does with the same bad value.
def test_modes_of_one_query_are_kept_apart(spark: Any, jvm: Jvm, zoo: None) -> None:
    taken = take(
        spark,
        jvm,
        """select try_add(i, 2147483645) a, i + 1 b, try_cast(s as int) c, cast(i as bigint) + 1 d,
           try_multiply(id, 9223372036854775807) e, sum(try_add(i, 2147483645)) over_all
           from t group by i, s, id""",
    )
    ours = taken.run(taken.whole())
    assert ours.column("a").null_count > ours.column("b").null_count
    assert_same_rows(ours, taken.frame.toArrow())


def test_an_overflow_is_an_error_where_spark_has_one(spark: Any, jvm: Jvm, zoo: None) -> None:
    taken = take(spark, jvm, "select i + 2147483647 a from t")
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        taken.run(taken.whole())
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        taken.frame.toArrow()


def test_a_plan_made_without_ansi_keeps_its_arithmetic(spark: Any, jvm: Jvm, zoo: None) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        frame = spark.sql(
            "select i + 2147483647 a, i / 0 b, id % 0 c, cast(w as int) d, sum(i) e from t group by all"
        )
        frame.createOrReplaceTempView("old")
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        taken = take(spark, jvm, "select a, b, c, e, try_add(e, 1) f, e + 1 g from old")
        assert_same_rows(
            taken.run(taken.whole()), frame.selectExpr("a", "b", "c", "e", "e + 1 f", "e + 1 g").toArrow()
        )
    except Unsupported as declined:
        pytest.fail(declined.reason)
    finally:
        spark.catalog.dropTempView("old")


@pytest.mark.parametrize(
    "options",
    [{}, {"header": "true"}, {"header": "true", "inferSchema": "true"}, {"sep": ",", "nullValue": "abc"}],
    ids=str,
)
def test_csv_files(spark: Any, jvm: Jvm, zoo_dir: Path, tmp_path: Path, options: dict[str, str]) -> None:
    columns = ["id", "i", "d", "m", "s", "day", "b", "id % 3 as k"]
    frame = spark.read.parquet(str(zoo_dir / "t")).selectExpr(*columns)
    frame.repartition(2).write.partitionBy("k").option("header", "header" in options).csv(str(tmp_path / "c"))
    frame = spark.read.options(**options).csv(str(tmp_path / "c"))
    for query in (frame, frame.groupBy(frame.columns[1], "k").count()):
        taken = take(spark, jvm, query)
        imported = taken.whole()
        assert not imported.inputs
        assert_same_rows(taken.run(imported), query.toArrow())


def test_csv_options_that_the_engine_does_not_follow(spark: Any, jvm: Jvm, tmp_path: Path) -> None:
    spark.range(5).write.csv(str(tmp_path / "c"))
    taken = take(spark, jvm, spark.read.option("lineSep", "|").csv(str(tmp_path / "c")))
    with pytest.raises(Unsupported, match="linesep"):
        taken.whole()
