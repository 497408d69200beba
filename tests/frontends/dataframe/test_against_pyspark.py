"""One text for both APIs: each case runs on PySpark and on the engine in this process, and the answers are the same."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pyspark.sql.functions as spark_functions
import pytest
from pyspark.sql import Window as SparkWindow

import kquery_spark as kq
from kquery_spark.frontends.dataframe import named_function
from kquery_spark.frontends.dataframe.functions import call_form_of
from tests.conftest import settings
from tests.frontends.sql.analyzer.engine import rows, same_type

VIEWS = {
    "people": """SELECT * FROM VALUES
        (1, 'Bill', 'CA', 12000L, 1.5D, DATE '2020-01-31', true),
        (2, 'Gregg', 'CO', 10000L, CAST('NaN' AS DOUBLE), DATE '2020-02-29', false),
        (3, 'John', 'CO', 11500L, NULL, NULL, NULL),
        (4, 'Von', NULL, 11500L, -0.0D, DATE '1999-12-31', true),
        (4, 'Von', NULL, 11500L, 0.0D, DATE '1999-12-31', true),
        (NULL, NULL, 'CA', NULL, 2.5D, NULL, false)
        AS t(id, name, state, salary, score, born, flag)""",
    "states": "SELECT * FROM VALUES ('CA', 'California', 1), ('CO', 'Colorado', 3), (NULL, 'nowhere', 9) AS t(state, title, id)",
    "lists": """SELECT * FROM VALUES
        (1, array(1, NULL, 2), map('a', 1, 'b', NULL), named_struct('x', 1, 'y', 'p')),
        (2, array(), map(), named_struct('x', NULL, 'y', NULL)), (3, NULL, NULL, NULL) AS t(k, xs, m, st)""",
    "shown": """SELECT X'414243' AS b, INTERVAL '1 02:03:04.5' DAY TO SECOND AS i, array(1e10D, 1e-5D, CAST('NaN' AS DOUBLE),
        CAST('-Infinity' AS DOUBLE), 0.5D) AS xs, named_struct('f', CAST(0.1 AS FLOAT), 'at', TIMESTAMP '2020-01-01 10:00:00.25',
        'on', TIMESTAMP '2020-01-01', 'day', DATE '2020-01-01', 'b', X'00FF') AS st""",
    "named": "SELECT id AS `the id`, name AS `a.b` FROM people",
}

Case = Callable[[dict[str, Any], Any, Any], Any]
# Each is given the tables, the module of functions and Window: PySpark's, then ours.
CASES: dict[str, Case] = {
    "select": lambda t, f, w: t["people"].select("id", f.col("name"), (f.col("salary") * 2).alias("twice")),
    "select a list": lambda t, f, w: t["people"].select(["id", "name"]),
    "select everything": lambda t, f, w: t["people"].select("*", f.lit(1).alias("one")),
    "selectExpr": lambda t, f, w: t["people"].selectExpr("id + 1 AS next", "upper(name)", "salary / 3"),
    "column names of expressions": lambda t, f, w: t["people"].select(
        f.col("id") + 1, -f.col("id"), f.col("id") == 2, f.upper("name"), f.col("id").cast("string"), 2 - f.col("id")
    ),
    "operators": lambda t, f, w: t["people"].select(
        (f.col("id") % 2).alias("a"), (1 / f.col("id")).alias("b"), (f.col("id") ** 2).alias("c"),
        f.col("id").bitwiseAND(1).alias("d"), f.col("id").bitwiseOR(8).alias("e"), f.col("id").bitwiseXOR(3).alias("g"),
        (f.col("flag") & (f.col("id") > 1)).alias("h"), (f.col("flag") | f.col("id").isNull()).alias("i"),
        (~f.col("flag")).alias("j"), f.col("score").isNaN().alias("k"),
    ),
    "predicates": lambda t, f, w: t["people"].select(
        f.col("id").isin(1, 2).alias("a"), f.col("id").isin([3]).alias("b"), f.col("id").between(2, 3).alias("c"),
        f.col("name").like("%o%").alias("d"), f.col("name").rlike("^[BJ]").alias("e"), f.col("name").ilike("v%").alias("g"),
        f.col("state").eqNullSafe(None).alias("h"), f.col("name").startswith("B").alias("i"),
        f.col("name").endswith("n").alias("j"), f.col("name").contains("reg").alias("k"), f.col("id").isNotNull().alias("l"),
        (f.col("id") != 4).alias("m"), f.col("name").substr(2, 2).alias("n"),
    ),
    "filter by a column": lambda t, f, w: t["people"].filter(f.col("state") == f.lit("CO")),
    "filter by text": lambda t, f, w: t["people"].where("salary > 10000 AND state IS NOT NULL"),
    "filters one after another": lambda t, f, w: t["people"].filter("id > 1").select("id").filter(f.col("id") < 4),
    "columns of the frame": lambda t, f, w: t["people"].filter(t["people"]["id"] > 1).select(t["people"].name, t["people"]["SALARY"]),
    "when": lambda t, f, w: t["people"].select(
        f.when(f.col("id") == 1, "one").when(f.col("id") == 2, "two").otherwise("many").alias("a"),
        f.when(f.col("id") > 2, f.col("salary")).alias("b"),
    ),
    "literals": lambda t, f, w: t["states"].select(f.lit(None).alias("a"), f.lit(1.5).alias("b"), f.lit(2**40).alias("c"), f.lit([1, 2]).alias("d"), f.lit(True).alias("e")),
    "casts": lambda t, f, w: t["people"].select(f.col("salary").cast("int"), f.col("name").try_cast("int"), f.col("id").astype("decimal(5,2)")),
    "withColumn": lambda t, f, w: t["people"].withColumn("id", f.col("id") + 1).withColumn("more", f.col("id") * 2),
    "withColumn in another case": lambda t, f, w: t["people"].withColumn("ID", f.lit(0)),
    "withColumns": lambda t, f, w: t["people"].withColumns({"id": f.col("id") + 1, "old": f.col("id")}),
    "renames one after the other": lambda t, f, w: t["people"].withColumnsRenamed({"id": "name", "name": "id", "ID": "last"}),
    "renames": lambda t, f, w: t["people"].withColumnRenamed("id", "key").withColumnsRenamed({"name": "who", "none": "x"}),
    "toDF": lambda t, f, w: t["states"].toDF("a", "b", "c"),
    "odd names": lambda t, f, w: t["named"].withColumnRenamed("a.b", "c.d").select("*", f.col("`c.d`").alias("e"), "the id"),
    "drop": lambda t, f, w: t["people"].drop("id", "no such column", "STATE"),
    "drop a column": lambda t, f, w: t["people"].drop(f.col("id")),
    "group and count": lambda t, f, w: t["people"].groupBy("state").count(),
    "aggregates": lambda t, f, w: t["people"].groupBy("state").agg(
        f.min("salary"), f.max(f.col("salary")).alias("most"), f.sum("id"), f.avg("salary"), f.count("*"), f.count("id"),
        f.count_distinct("id", "name").alias("d"), f.sum_distinct(f.col("id")).alias("e"),
    ),
    "two maxima": lambda t, f, w: t["people"].agg(f.max("id"), f.max("id").alias("m"), f.max("salary")),
    "aggregates by name": lambda t, f, w: t["people"].groupBy("state").agg({"salary": "max", "id": "sum"}).select("state", "sum(id)", "max(salary)"),
    "all rows": lambda t, f, w: t["people"].agg({"*": "count"}),
    "numeric columns": lambda t, f, w: t["people"].drop("score").groupBy("state").max(),
    "keys are numeric columns, too": lambda t, f, w: t["people"].groupBy("id").max(),
    "maxima by a column": lambda t, f, w: t["people"].groupBy(f.col("state")).max(),
    "fillna casts what a dict gives": lambda t, f, w: t["people"].select("id", "name", "flag").fillna({"ID": "7", "name": 1.5, "flag": True}),
    "names in another case": lambda t, f, w: t["people"].fillna(7, subset=["ID"]).dropna(subset=["SCORE"]),
    "smallest numbers": lambda t, f, w: t["people"].filter(f.col("id") > -(2**31)).select(f.lit(-(2**31)), f.lit(-(2**63)), f.lit(-5), f.col("id").isin(-(2**31), 2).alias("b")),
    "columns of frames further down": lambda t, f, w: t["people"].filter(t["people"].id > 1).dropDuplicates(["name"]).union(t["people"]).distinct()
    .filter(t["people"]["id"] < 4).groupBy(t["people"].state).agg(f.sum("id")),
    "columns of both sides": lambda t, f, w: t["people"].join(t["states"].toDF("s", "title", "n"), t["people"].state == f.col("s"), "left").select(t["people"]["id"], "title"),
    "items of a frame": lambda t, f, w: t["people"][t["people"].id > 1][["id", "name"]].select(t["people"][0]),
    "sort descending by a number": lambda t, f, w: t["people"].orderBy("id", "score", ascending=0),
    "join of no kind": lambda t, f, w: t["people"].join(t["states"].drop("id"), "state", None),
    "first without NULLs": lambda t, f, w: t["people"].groupBy("name").agg(f.first("state", ignorenulls=True), f.countDistinct("*")),
    "sums of some": lambda t, f, w: t["people"].groupBy("state").sum("id", "salary"),
    "means": lambda t, f, w: t["people"].groupby(["state"]).mean("salary"),
    "grouped by an expression": lambda t, f, w: t["people"].groupBy((f.col("id") % 2).alias("odd")).agg(f.max("name")),
    "no keys": lambda t, f, w: t["people"].groupBy().min("salary"),
    "rollup": lambda t, f, w: t["people"].rollup("state", "flag").agg(f.sum("id"), f.grouping_id()),
    "cube": lambda t, f, w: t["people"].cube("state", "flag").count(),
    "filtered after grouping": lambda t, f, w: t["people"].groupBy("state").agg(f.count("*").alias("n")).where("n > 1"),
    "max_by and lists": lambda t, f, w: t["people"].groupBy("state").agg(f.max_by("name", "id"), f.min_by(f.col("name"), "id"), f.max_by("name", "id", 2)),
    "cross join": lambda t, f, w: t["people"].select("id").crossJoin(t["states"].select("title")),
    "join by several names": lambda t, f, w: t["people"].join(t["states"], ["state", "id"], "left"),
    "join by conditions": lambda t, f, w: t["people"].alias("p").join(
        t["states"].alias("s"), [f.col("p.state") == f.col("s.state"), f.col("p.id") > f.col("s.id")]
    ),
    "join by inequality": lambda t, f, w: t["people"].alias("p").join(t["states"].alias("s"), f.col("p.id") < f.col("s.id"), "left").select("p.id", "title"),
    "null safe join": lambda t, f, w: t["people"].alias("p").join(t["states"].alias("s"), f.col("p.state").eqNullSafe(f.col("s.state"))).select("p.*", "s.title"),
    "the sides of a join by name": lambda t, f, w: t["people"].alias("p").join(t["states"].alias("s"), "state").select("p.*", "s.*"),
    "self join": lambda t, f, w: t["people"].alias("a").join(t["people"].alias("b"), f.col("a.id") == f.col("b.id")).select("a.name", f.col("b.salary")),
    "the sides of a join by name, one by one": lambda t, f, w: t["people"].join(t["states"], "id", "left").select("id", t["people"]["id"], t["states"]["id"], t["states"].title),
    "the sides of a right join": lambda t, f, w: t["people"].join(t["states"], "id", "right").select("id", t["people"]["id"], t["states"]["id"]),
    "the sides of a full join": lambda t, f, w: t["people"].join(t["states"], "id", "full").select("id", t["people"]["id"], t["states"]["id"]),
    "rows that found nothing": lambda t, f, w: t["people"].join(t["states"], "id", "left").filter(t["states"]["id"].isNull()).select("id", "name"),
    "a join by columns": lambda t, f, w: t["people"].join(t["states"], t["people"].id == t["states"].id, "left").select(t["people"].id, t["states"].id, t["states"].state),
    "a join by columns of frames further down": lambda t, f, w: t["people"].filter(t["people"].id > 1).join(t["states"], [t["people"].id == t["states"].id]).groupBy(t["states"].id).agg(f.sum(t["people"].salary)),
    "one side's column dropped": lambda t, f, w: t["people"].join(t["states"], t["people"].id == t["states"].id).drop(t["states"].id).drop("title").drop(t["people"].state),
    "the side that is not shown dropped": lambda t, f, w: t["people"].join(t["states"], "id").drop(t["states"]["id"]).select("id"),
    "columns from before cache": lambda t, f, w: t["people"].cache().filter(t["people"].id > 1).join(t["states"], t["people"].id == t["states"].id).select(t["people"].id, t["states"]["id"]),
    "columns after cache": lambda t, f, w: (lambda g: g.cache().select(g.s, g["state"]))(t["people"].groupBy("state").agg(f.sum("id").alias("s"))),
    "sort by a column of before": lambda t, f, w: t["people"].select((-f.col("id")).alias("id")).orderBy(t["people"].id),
    "in nothing": lambda t, f, w: t["people"].select(f.col("name").isin([]), ~f.col("id").isin([])),
    "names of predicates": lambda t, f, w: t["people"].select(f.col("name").between("A", "H"), f.col("name").substr(1, 1)),
    "no aggregate at all": lambda t, f, w: t["people"].agg(f.lit(1)),
    "names of frames": lambda t, f, w: t["people"].select("id", f.sum("id").over(w.partitionBy("state").orderBy("id", "score").rowsBetween(-1, 1))),
    "selectExpr of a list": lambda t, f, w: t["states"].selectExpr(["id", "title AS x"]),
    "sort": lambda t, f, w: t["people"].sort("state", f.col("id").desc()).select("id", "state"),
    "sort by nulls": lambda t, f, w: t["people"].orderBy(f.col("state").desc_nulls_first(), f.asc_nulls_last("id"), f.desc("score")),
    "sort descending": lambda t, f, w: t["people"].orderBy(["state", "id", "score"], ascending=[False, True, False]),
    "sort by what is not selected": lambda t, f, w: t["people"].sort(f.desc("salary"), "name", "score").select("name"),
    "limit and offset": lambda t, f, w: t["people"].orderBy("id", "score").offset(1).limit(3),
    "limit then offset": lambda t, f, w: t["people"].orderBy("id", "score").limit(3).offset(1),
    "limit, filter": lambda t, f, w: t["people"].orderBy("id", "score").limit(3).filter("id IS NOT NULL"),
    "distinct": lambda t, f, w: t["people"].select("id", "state").distinct(),
    "distinct zeros": lambda t, f, w: t["people"].select("score").distinct(),
    "dropDuplicates": lambda t, f, w: t["people"].select("state", "flag").dropDuplicates(),
    "dropDuplicates of some": lambda t, f, w: t["people"].dropDuplicates(["id", "name"]).drop("score"),
    "dropDuplicates by nothing": lambda t, f, w: t["states"].limit(1).dropDuplicates([]),
    "dropDuplicates of no rows": lambda t, f, w: t["people"].filter(f.col("id") > 100).dropDuplicates([]),
    "union": lambda t, f, w: t["people"].select("id", "name").union(t["states"].select("id", "title")),
    "union widens": lambda t, f, w: t["people"].select("id").unionAll(t["people"].select("salary")),
    "unionByName": lambda t, f, w: t["people"].select("id", "state").unionByName(t["states"].select("state", "id")),
    "unionByName with less": lambda t, f, w: t["people"].select("id", "name").unionByName(t["states"], allowMissingColumns=True),
    "intersect": lambda t, f, w: t["people"].select("state").intersect(t["states"].select("state")),
    "intersectAll": lambda t, f, w: t["people"].select("state").intersectAll(t["people"].select("state").limit(6)),
    "subtract": lambda t, f, w: t["people"].select("state").subtract(t["states"].select("state").where("state = 'CA'")),
    "exceptAll": lambda t, f, w: t["people"].select("state").exceptAll(t["states"].select("state")),
    "fillna with a number": lambda t, f, w: t["people"].fillna(7),
    "fillna with text": lambda t, f, w: t["people"].na.fill("none", subset=["name", "id"]),
    "fillna with a boolean": lambda t, f, w: t["people"].fillna(True),
    "fillna by column": lambda t, f, w: t["people"].fillna({"id": 0, "state": "?", "score": 1.5}),
    "fillna with a fraction": lambda t, f, w: t["people"].fillna(1.7, subset=["id", "score"]),
    "dropna": lambda t, f, w: t["people"].dropna(),
    "dropna of all": lambda t, f, w: t["people"].dropna("all", subset=["id", "name"]),
    "dropna by number": lambda t, f, w: t["people"].na.drop(thresh=6),
    "dropna of one": lambda t, f, w: t["people"].dropna(subset="score"),
    "replace": lambda t, f, w: t["people"].replace(4, 40).na.replace(["CA", "CO"], ["ca", "co"], "state"),
    "replace by a dict": lambda t, f, w: t["people"].replace({"Bill": "William", "Von": None}),
    "replace by numbers beyond a double": lambda t, f, w: t["people"].selectExpr("salary", "CAST(salary AS DECIMAL(38, 0)) AS d", "CAST(salary AS DECIMAL(38, 18)) AS e")
    .replace(10000, 9007199254740993).replace({11500: 12345678901234567, 12000: None}),
    "row numbers": lambda t, f, w: t["people"].select("id", f.row_number().over(w.partitionBy("state").orderBy("id", "score")).alias("n")),
    "ranks": lambda t, f, w: t["people"].select(
        "id", f.rank().over(w.orderBy("salary")).alias("r"), f.dense_rank().over(w.orderBy("salary")).alias("d"),
        f.percent_rank().over(w.orderBy("salary")).alias("p"), f.cume_dist().over(w.orderBy("salary")).alias("c"),
        f.ntile(2).over(w.orderBy("id", "score")).alias("t"),
    ),
    "neighbors": lambda t, f, w: t["people"].select(
        "id", f.lag("id").over(w.orderBy("id", "score")).alias("a"), f.lead("name", 2, "none").over(w.orderBy("id", "score")).alias("b"),
    ),
    "frames": lambda t, f, w: t["people"].select(
        "id", f.sum("salary").over(w.orderBy("id", "score").rowsBetween(-1, w.currentRow)).alias("a"),
        f.sum("salary").over(w.orderBy("id", "score").rowsBetween(w.unboundedPreceding, w.unboundedFollowing)).alias("b"),
        f.count("*").over(w.partitionBy("state")).alias("c"),
        f.max("id").over(w.orderBy("salary").rangeBetween(-1500, 0)).alias("d"),
    ),
    "frames beyond 32 bits": lambda t, f, w: t["people"].select(
        "id",
        f.sum("id").over(w.orderBy(f.col("id").cast("bigint") * 2_000_000_000).rangeBetween(-3_000_000_000, 3_000_000_000)).alias("a"),
        f.sum("id").over(w.orderBy(f.col("id").cast("bigint") * 2_000_000_000).rangeBetween(1 - 2**63, 0)).alias("b"),
    ),
    "explode": lambda t, f, w: t["lists"].select("k", f.explode("xs").alias("x")),
    "explode_outer": lambda t, f, w: t["lists"].select("k", f.explode_outer("xs")),
    "posexplode": lambda t, f, w: t["lists"].select("k", f.posexplode(f.col("xs")).alias("at", "x")),
    "explode a map": lambda t, f, w: t["lists"].select(f.explode("m")),
    "inside nested values": lambda t, f, w: t["lists"].select(
        f.col("st.x"), f.col("st").getField("y"), f.size("xs"), f.col("m")["a"], f.col("m").getItem("b"), "st.*"
    ),
    "arrays and structs": lambda t, f, w: t["states"].select(f.array("id", "id").alias("a"), f.struct("state", f.col("id")).alias("b"), f.named_struct(f.lit("q"), f.col("id")).alias("c")),
    "many columns in a function": lambda t, f, w: t["people"].select(
        f.coalesce("name", "state", f.lit("?")).alias("a"), f.concat("name", f.lit("-"), "state").alias("b"), f.concat_ws("/", "name", "state").alias("c"),
        f.greatest("id", "salary").alias("d"), f.least(f.col("id"), f.lit(2)).alias("e"), f.nvl("name", "state").alias("g"), f.hash("id", "name").alias("h"),
    ),
    "strings": lambda t, f, w: t["people"].select(
        f.trim("name").alias("a"), f.lpad("name", 6, "*").alias("b"), f.instr("name", "o").alias("c"), f.locate("o", "name").alias("d"),
        f.regexp_replace("name", "[aeiou]", "_").alias("e"), f.substring("name", 1, 2).alias("g"), f.split("name", "o").alias("h"),
        f.trim("name", f.lit("B")).alias("i"), f.initcap("name").alias("j"), f.translate("name", "abc", "xyz").alias("k"), f.repeat("name", 2).alias("l"),
    ),
    "days": lambda t, f, w: t["people"].select(
        f.year("born"), f.month(f.col("born")), f.date_add("born", 3).alias("a"), f.datediff("born", f.lit("2020-01-01").cast("date")).alias("b"),
        f.date_trunc("month", "born").alias("c"), f.trunc("born", "year").alias("d"), f.add_months("born", 1).alias("e"), f.last_day("born").alias("g"),
        f.date_format("born", "yyyy/MM").alias("h"), f.to_date(f.lit("2020-05-06")).alias("i"), f.months_between("born", f.lit("2020-01-01").cast("date")).alias("j"),
    ),
    "numbers": lambda t, f, w: t["people"].select(
        f.round("score", 1).alias("a"), f.abs(-f.col("id")).alias("b"), f.sqrt("id").alias("c"), f.pow("id", f.lit(2)).alias("d"), f.ceil("score").alias("e"),
        f.pmod("id", f.lit(3)).alias("g"), f.try_divide("id", f.lit(0)).alias("h"), f.nanvl("score", f.lit(9.0)).alias("i"), f.isnan("score").alias("j"), f.signum("id").alias("k"),
    ),
    "lambdas": lambda t, f, w: t["lists"].select(
        f.transform("xs", lambda x: x + f.col("k")).alias("a"), f.transform("xs", lambda x, i: x * i).alias("b"),
        f.filter("xs", lambda x: x.isNotNull()).alias("c"), f.exists("xs", lambda x: x > 1).alias("d"), f.forall(f.col("xs"), lambda x: x > 0).alias("e"),
        f.transform("xs", lambda k: f.transform(f.array(k, f.col("k")), lambda x: x + k)).alias("g"),
    ),
    "expr": lambda t, f, w: t["people"].select(getattr(f, "sql_expr", f.expr)("CASE WHEN id > 2 THEN 'late' END AS z"), getattr(f, "sql_expr", f.expr)("salary DIV 1000")),
    "transform": lambda t, f, w: t["people"].transform(lambda d, n: d.limit(n), 0),
    "cached": lambda t, f, w: t["people"].groupBy("state").agg(f.max("id")).cache().filter("state = 'CO'"),
    "plan of the book": lambda t, f, w: t["people"].filter(f.col("state") == f.lit("CO"))
    .select("id", "name", (f.col("salary") * f.lit(0.1)).alias("bonus")).filter(f.col("bonus") > f.lit(1000)),
}  # fmt: skip
for _kind in (
    "inner",
    "left",
    "right",
    "full",
    "semi",
    "anti",
    "leftouter",
    "right_outer",
    "fullouter",
    "left_semi",
    "leftanti",
):
    CASES[f"{_kind} join by name"] = lambda t, f, w, kind=_kind: t["people"].join(t["states"].drop("id"), "state", kind)  # fmt: skip
    CASES[f"{_kind} join by condition"] = lambda t, f, w, kind=_kind: t["people"].join(
        t["states"].toDF("s", "title", "n"), f.col("state") == f.col("s"), kind
    )


@pytest.fixture(scope="module")
def tables(spark: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """PySpark's frames, and the engine's of the same rows."""
    context = kq.ExecutionContext()
    sparks = {}
    for name, query in VIEWS.items():
        spark.sql(query).createOrReplaceTempView(name)
        sparks[name] = spark.table(name)
        context.register_arrow(name, sparks[name].toArrow())
    return sparks, {name: context.table(name) for name in VIEWS}


@pytest.mark.parametrize("name", CASES)
def test_the_same_text_gives_the_same_answer(name: str, tables: Any):
    theirs, ours = tables
    reference = CASES[name](theirs, spark_functions, SparkWindow)
    actual = CASES[name](ours, kq, kq.Window)
    expected, table = reference.toArrow(), actual.to_arrow()
    assert actual.columns == reference.columns
    for field, other in zip(actual.schema, expected.schema, strict=True):
        assert same_type(field.type, other.type), f"{field.name}: {field.type} instead of {other.type}"
    if "sort" in name or "limit" in name:
        assert rows(table) == rows(expected)
    else:
        assert sorted(map(repr, rows(table))) == sorted(map(repr, rows(expected)))


@pytest.mark.parametrize("ansi", [True, False])
def test_nothing_is_in_an_empty_list(ansi: bool, tables: Any, spark: Any):
    context = kq.ExecutionContext(ansi=ansi)
    context.register_arrow("people", tables[1]["people"].to_arrow())
    answers = []
    with settings(spark, {"spark.sql.ansi.enabled": str(ansi).lower()}):
        for frame, functions in ((spark.table("people"), spark_functions), (context.table("people"), kq)):
            in_nothing = functions.col("id").isin([])
            in_list = frame.select("id", in_nothing.alias("a"), (~in_nothing).alias("b")).toArrow()
            answers.append((sorted(map(repr, rows(in_list))), frame.filter(~in_nothing).count()))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", VIEWS)
def test_show_and_print_schema_print_what_spark_prints(name: str, tables: Any, capsys: Any):
    theirs, ours = tables
    for options in ({}, {"n": 2}, {"truncate": False}, {"truncate": 3, "n": 1}, {"vertical": True}, {"n": 0}):
        theirs[name].show(**options)
        expected = capsys.readouterr().out
        ours[name].show(**options)
        assert capsys.readouterr().out == expected
    theirs[name].printSchema()
    expected = capsys.readouterr().out
    ours[name].printSchema()
    assert capsys.readouterr().out == expected
    assert ours[name].dtypes == theirs[name].dtypes


def test_actions(tables: Any):
    theirs, ours = (t["people"].orderBy("id", "score").select("id", "name") for t in tables)
    assert ours.collect() == [r.asDict() for r in theirs.collect()]
    assert ours.take(2) == ours.head(2) == [r.asDict() for r in theirs.take(2)]
    assert ours.first() == ours.head() == theirs.first().asDict()
    assert ours.tail(2) == [r.asDict() for r in theirs.tail(2)]
    assert ours.count() == theirs.count()
    assert ours.isEmpty() is theirs.isEmpty() is False
    assert ours.filter("id > 100").isEmpty()
    assert ours.filter("id > 100").first() is None
    assert ours.toPandas().equals(theirs.toPandas())
    assert ours.toArrow().to_pylist() == theirs.toArrow().to_pylist()


def test_strings_are_columns_where_they_are_in_pyspark():
    """Every function both have, by PySpark's own annotations."""
    seen = 0
    for name, function in inspect.getmembers(spark_functions, inspect.isfunction):
        if name.startswith("_") or named_function(name) is None:
            continue
        places, rest = [], None
        for i, parameter in enumerate(inspect.signature(function).parameters.values()):
            if "ColumnOrName" in str(parameter.annotation):
                if parameter.kind is parameter.VAR_POSITIONAL:
                    rest = i
                else:
                    places.append(i)
        form = call_form_of(name)
        if rest is not None:
            assert form.columns_from is not None, name
            assert rest - len(places) <= form.columns_from <= rest, name
        elif places:
            assert form.columns == tuple(places), name
        seen += 1
    assert seen > 180
