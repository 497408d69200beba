"""Mistakes in calls of DataFrames and contexts are errors that say what is wrong."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as spark_functions
import pytest

import kquery_spark as kq
from kquery_spark.errors import KQueryError, PlanError, SqlError, Unsupported
from tests.frontends.dataframe.test_against_pyspark import VIEWS


@pytest.fixture(scope="module")
def frames(spark: Any) -> dict[str, Any]:
    """Two frames. Some mistakes are columns of PySpark, which need a Spark session."""
    context = kq.ExecutionContext()
    for name in ("people", "states"):
        context.register_arrow(name, spark.sql(VIEWS[name]).toArrow())
    return {name: context.table(name) for name in ("people", "states")}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda p, s: p.select("nosuch"), r"unknown column nosuch; the columns are people.id, people.name"),
        (lambda p, s: p["nosuch"], "unknown column nosuch; the columns are id, name"),
        (lambda p, s: p.select("nmae"), r"unknown column nmae \(did you mean people\.name\?\); the columns are people\.id,"),
        (lambda p, s: p["Nmae"], r"unknown column Nmae \(did you mean name\?\); the columns are id, name"),
        (lambda p, s: p.fillna(1, subset=["nmae"]), r"unknown column nmae \(did you mean name\?\)"),
        (lambda p, s: p.join(s, kq.col("state") == kq.col("state")), "AMBIGUOUS_REFERENCE"),
        (lambda p, s: p.join(s, "id").filter(kq.col("state") == "CO"), "AMBIGUOUS_REFERENCE"),
        (lambda p, s: p.join(s, "id", "sideways"), "unknown join 'sideways'; the joins are inner"),
        (lambda p, s: p.join(s, ["id", kq.col("id") == 1]), "conditions or names"),
        (lambda p, s: p.union(s), "NUM_COLUMNS_MISMATCH"),
        (lambda p, s: p.unionByName(s), "needs the same columns"),
        (lambda p, s: p.filter(kq.col("id")), "WHERE"),
        (lambda p, s: p.groupBy("state").agg(kq.col("id")), "MISSING_AGGREGATION"),
        (lambda p, s: p.agg("id"), "columns or a dict"),
        (lambda p, s: p.dropDuplicates(["nosuch"]), "unknown column nosuch"),
        (lambda p, s: p.fillna(1, subset=["nosuch"]), "unknown column nosuch"),
        (lambda p, s: p.fillna([1]), "a number, a string or a boolean"),
        (lambda p, s: p.replace(1, "x"), "one kind"),
        (lambda p, s: p.replace({None: 1}), "a number, a string or a boolean, not NoneType"),
        (lambda p, s: p.replace(10**400, 1), "within the range of a double"),
        (lambda p, s: p.replace(1, 10**400), "within the range of a double"),
        (lambda p, s: p.replace([[1]], [2]), "takes numbers, strings or booleans"),
        (lambda p, s: p.join(s, 1), "conditions or names of columns, not int"),
        (lambda p, s: p.join(s, [1]), "conditions or names of columns, not int"),
        (lambda p, s: kq.lit(Decimal("1E-40")), "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION"),
        (lambda p, s: kq.lit(Decimal("0." + "1" * 40)), "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION"),
        (lambda p, s: kq.lit(Decimal("12E+38")), "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION"),
        (lambda p, s: kq.lit(Decimal("1" * 5000)), "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION"),
        (lambda p, s: p.selectExpr("CAST(CAST(NULL AS INT) AS DATE)"), "CAST from int to date is not supported"),
        (lambda p, s: p.selectExpr("TRY_CAST(CAST(NULL AS BOOLEAN) AS DATE)"), "CAST from boolean to date"),
        (lambda p, s: p.dropna("some"), "'any' or 'all'"),
        (lambda p, s: p.toDF("a"), r"1 name\(s\) for 7 column"),
        (lambda p, s: p.sort("id", "name", ascending=[True]), "1 values for 2 sort keys"),
        (lambda p, s: p.drop(kq.col("id") + 1), "only columns can be dropped"),
        (lambda p, s: p.filter(kq.col("id") > 1 and kq.col("id") < 3), "no truth value"),
        (lambda p, s: 1 in kq.col("id"), "no 'in'"),
        (lambda p, s: list(kq.col("id")), "cannot be iterated"),
        (lambda p, s: kq.col("id").cast(int), "a type must be an SQL string"),
        (lambda p, s: kq.col("id").over(kq.Window.orderBy("id")), "belongs to a function call"),
        (lambda p, s: kq.Window.orderBy("id").rowsBetween(-(2**31) - 1, 0), "outside the range of int"),
        (lambda p, s: p.selectExpr("nullifzero(id, id)"), "nullifzero takes 1 argument, not 2"),
        (lambda p, s: p.selectExpr("to_date()"), "to_date takes 1 or 2 arguments, not 0"),
        (lambda p, s: p.selectExpr("try_to_timestamp(id, id, id)"), "takes 1 or 2 arguments, not 3"),
        (lambda p, s: kq.upper(lambda x: x), "takes columns and constants, not a Python function"),
        (lambda p, s: kq.transform("id", lambda *x: x), "positional parameters only"),
        (lambda p, s: kq.transform("id", lambda x: 1), "must return a column, not 1"),
        (lambda p, s: p.select(kq.transform("id", lambda x: x)), "takes an array, not int"),
        (lambda p, s: p.join(s, "id").distinct().select(s["id"]), "of another DataFrame"),
        (lambda p, s: p.agg(p.id), "MISSING_GROUP_BY|neither grouped by"),
        (lambda p, s: p.select(), "needs a column"),
        (lambda p, s: p.sort(), "needs a column"),
        (lambda p, s: p.sort(kq.desc("id"), ascending=False), "an order of its own"),
        (lambda p, s: p.withColumn("id", kq.col("id") * 10).filter(p["id"] > 2), "of another DataFrame"),
        (lambda p, s: p.withColumn("id", p.id + 1).groupBy(p.id).count(), "of another DataFrame"),
        (lambda p, s: p.join(s.toDF("a", "b", "c"), p["id"] == s["id"]), "of another DataFrame"),
        (lambda p, s: p.withColumn("id", p.id + 1).select(kq.explode(kq.array(p.id))), "of another DataFrame"),
        (lambda p, s: p.crossJoin(s).collect(), "two columns state"),
        (lambda p, s: p.crossJoin(s).tail(1), "two columns state"),
        (lambda p, s: p.replace(1), "needs a value"),
        (lambda p, s: kq.when(p.id > 1, 1).otherwise(2).when(p.id > 2, 3), "once otherwise"),
        (lambda p, s: kq.when(p.id > 1, 1).otherwise(2).otherwise(3), "only be applied once"),
        (lambda p, s: kq.when(True, 1), "a Column of kquery_spark as its condition, not bool"),
        (lambda p, s: p.select(spark_functions.col("id")), "a Column of kquery_spark, as kq.col.. returns, not pyspark.Column"),
        (lambda p, s: p.filter(spark_functions.col("id") > 1), "a Column of kquery_spark or a SQL string, not pyspark.Column"),
        (lambda p, s: p.withColumn("z", "id"), "a Column for z"),
        (lambda p, s: p.filter(5), "a Column of kquery_spark or a SQL string"),
        (lambda p, s: p.select(1), "a column is a name or a Column"),
        (lambda p, s: p.sort(1), "a column is a name or a Column"),
        (lambda p, s: p.join("people", "id"), "another DataFrame first"),
        (lambda p, s: p.dropDuplicates("id"), "a list of names"),
        (lambda p, s: p[99], "no item 99"),
        (lambda p, s: kq.sum("id").over("w"), "a window as Window makes them"),
        (lambda p, s: kq.lit(object()), "constant cannot have the type object"),
    ],
)  # fmt: skip
def test_mistakes_are_errors_in_words(wrong: Any, message: str, frames: dict[str, Any]):
    with pytest.raises(PlanError, match=rf"(?s){message}"):
        wrong(frames["people"], frames["states"])


def test_a_row_with_two_columns_of_one_name_is_not_empty(frames: dict[str, Any]):
    assert not frames["people"].crossJoin(frames["states"]).isEmpty()


@pytest.mark.parametrize("returns", ["interval month", "interval day to hour", "array<interval month>"])
def test_types_without_arrow_types_are_declined(returns: str):
    with pytest.raises(Unsupported, match=r"a function that returns .* is not supported"):
        kq.arrow_udf(lambda x: x, returns)
    with pytest.raises(Unsupported, match=r"column a: the type .* is not supported"):
        kq.ExecutionContext().register_csv("t", __file__, f"a {returns}")


def test_long_lists_are_not_nested(frames: dict[str, Any]):
    people = frames["people"]
    patterns = ", ".join(f"'{i}%'" for i in range(600))
    assert people.filter(f"name LIKE ANY ({patterns}, 'Vo%')").count() == 2
    assert people.filter("name LIKE ALL ('%o%', '%n')").count() == 3
    assert people.filter(f"id IN ({', '.join(f'id + {i}' for i in range(1, 600))}, id)").count() == 5
    wide = people.select(*(kq.col("id").alias(f"c{i}") for i in range(600)))
    assert wide.dropna(thresh=3).count() == 5


def test_functions_of_one_name_are_not_equal(frames: dict[str, Any]):
    first, second = kq.arrow_udf(lambda x: x, "int"), kq.arrow_udf(lambda x: pc.add(x, 1), "int")
    people = frames["people"]
    a, b = (people.select(function("id").alias("c")) for function in (first, second))
    with pytest.raises(PlanError, match="of another DataFrame"):
        b.select(a["c"])
    assert a.filter("c > 3").select(a["c"]).count() == 2


def test_unknown_attributes_are_attribute_errors(frames: dict[str, Any]):
    with pytest.raises(AttributeError, match="no column 'nosuch'"):
        _ = frames["people"].nosuch
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        _ = kq.nosuch


def test_an_error_in_a_part_points_at_no_place_in_the_query():
    made = kq.ExecutionContext().sql("SELECT 1 AS id, 2 AS g")
    with pytest.raises(SqlError, match=r"unknown column nope; the columns are id, g$"):
        made.filter("id > 0 AND nope > 1")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda c: c.register_arrow("a", pa.table({"at": pa.array([1], pa.timestamp("ns"))})),
            "column at has nanoseconds",
        ),
        (
            lambda c: c.register_arrow("a", pa.table({"n": pa.nulls(1, pa.decimal256(50, 2))})),
            "column n is decimal256",
        ),
        (
            lambda c: c.register_arrow("a", pa.table({"n": pa.nulls(1, pa.time32("s"))})),
            "column n of type time32",
        ),
        (lambda c: c.register_pandas("a", {}), "a pandas DataFrame, not dict"),
        (lambda c: c.register_arrow("a", [1]), "an Arrow table or stream, not list"),
        (lambda c: c.register_parquet("a", 5), "not int"),
        (
            lambda c: (c.register_arrow("trips", pa.table({"n": [1]})), c.table("trisp")),
            r"unknown table trisp \(did you mean trips\?\); the tables are trips",
        ),
        (lambda c: c.sql(None), "not NoneType"),
        (lambda c: c.sql("SELECT maxx(1)"), r"unknown function maxx, or .* have it \(did you mean max\?\)"),
        (lambda c: kq.ExecutionContext(time_zone="Mars/Base"), "no time zone 'Mars/Base'"),
        (lambda c: c.sql("SELECT format_number(1.5, '#')"), "format_number: argument 2"),
    ],
)
def test_mistakes_with_a_context_are_errors_in_words(wrong: Any, message: str):
    with pytest.raises(KQueryError, match=message):
        wrong(kq.ExecutionContext())
