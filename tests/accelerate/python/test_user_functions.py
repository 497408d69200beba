"""Functions of the user's own: in columns, in SQL, in this process and in Spark's workers."""

from __future__ import annotations

import os
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark import col, lit
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import PlanError, SerializationError, SqlError, UserFunctionError
from kquery_spark.frontends.sql.analyzer import Analyzed
from kquery_spark.logical import LogicalPlan
from kquery_spark.service.requests import PlanRequest, read_request
from kquery_spark.stages.serialization import from_bytes, to_bytes

TRIPS = pa.table(
    {
        "tip": pa.array([1.0, None, 3.0, 0.0]),
        "total": pa.array([10.0, 5.0, None, 8.0]),
        "vendor": ["a", "b", "a", None],
    }
)


@kq.arrow_udf("double")
def share(tip: pa.Array, total: pa.Array) -> pa.Array:
    return pc.divide(tip, total)


@pytest.fixture
def trips() -> kq.ExecutionContext:
    context = kq.ExecutionContext()
    context.register_arrow("trips", TRIPS)
    return context


def test_a_function_of_columns(trips: kq.ExecutionContext):
    frame = trips.table("trips").select(share("tip", col("total")), share("tip", lit(2.0)).alias("half"))
    assert frame.columns == ["share(tip, total)", "half"]
    assert frame.schema.field("half") == pa.field("half", pa.float64(), True)
    assert frame.to_arrow().to_pydict() == {
        "share(tip, total)": [0.1, None, None, 0.0],
        "half": [0.5, None, 1.5, 0.0],
    }


def test_a_registered_function_in_sql(trips: kq.ExecutionContext):
    trips.register_function("share", share)
    trips.register_function("Twice", lambda x: pc.multiply(x, 2), "bigint")
    sql = """
        SELECT vendor, round(sum(share(tip, total)), 3) AS s, TWICE(count(*)) AS n
        FROM trips WHERE coalesce(share(tip, total), 0) < 1 GROUP BY vendor ORDER BY vendor
    """
    assert trips.sql(sql).collect() == [
        {"vendor": None, "s": 0.0, "n": 2},
        {"vendor": "a", "s": 0.1, "n": 4},
        {"vendor": "b", "s": None, "n": 2},
    ]


def test_frames_keep_the_function_they_were_made_with(trips: kq.ExecutionContext):
    trips.register_function("f", lambda x: pc.add(x, 1), "double")
    first = trips.sql("SELECT max(f(tip)) AS m FROM trips")
    trips.register_function("f", lambda x: pc.add(x, 2), "double")
    assert first.collect() + trips.sql("SELECT max(f(tip)) AS m FROM trips").collect() == [
        {"m": 4.0},
        {"m": 5.0},
    ]


def test_rows_that_a_condition_excludes_are_not_shown(trips: kq.ExecutionContext):
    def picky(x: pa.Array) -> pa.Array:
        if pc.any(pc.equal(x, 0.0)).as_py():
            raise ValueError("a zero")
        return x

    trips.register_function("picky", picky, "double")
    expected = [1.0, None, 3.0, None]
    for sql in (
        "SELECT CASE WHEN tip > 0 THEN picky(tip) END AS x FROM trips",
        "SELECT if(tip = 0, NULL, picky(tip)) AS x FROM trips",
    ):
        assert trips.sql(sql).to_arrow()["x"].to_pylist() == expected
    assert trips.sql("SELECT count(*) AS n FROM trips WHERE tip > 0 AND picky(tip) > 1").collect() == [
        {"n": 1}
    ]
    with pytest.raises(
        UserFunctionError, match=r"picky raised ValueError: a zero \(.*test_user_functions.py:\d+ in picky\)"
    ):
        trips.sql("SELECT picky(tip) FROM trips").collect()


def test_what_types_a_function_sees(trips: kq.ExecutionContext):
    def look(*arrays: pa.Array) -> pa.Array:
        return pa.array([";".join(str(a.type) for a in arrays)] * len(arrays[0]))

    trips.register_function("look", look, "string")
    sql = """
        SELECT look(vendor, CAST(tip AS decimal(10,2)), date '2024-01-01', timestamp '2024-01-01 00:00:00',
                    array(1), true) AS t FROM trips LIMIT 1
    """
    assert trips.sql(sql).collect()[0]["t"].split(";") == [
        "string", "decimal128(10, 2)", "date32[day]", "timestamp[us, tz=UTC]",
        "list<element: int32 not null>", "bool",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: x.to_pylist(), "returned list; it must return an Arrow array"),
        (lambda x: x[:1], "returned 1 values for 4 rows"),
        (lambda x: pa.array(["x"] * len(x)), "returned string instead of double"),
    ],
)
def test_what_a_function_must_not_give(trips: kq.ExecutionContext, function: Any, said: str):
    odd = kq.arrow_udf(function, "double", name="odd")
    with pytest.raises(UserFunctionError, match=f"odd {said}"):
        trips.table("trips").select(odd("tip")).collect()


def test_values_are_cast_to_the_announced_type(trips: kq.ExecutionContext):
    strings = kq.arrow_udf(
        lambda x: pa.chunked_array([pa.array(["é"] * len(x), pa.large_string())]), "string"
    )
    money = kq.arrow_udf(lambda x: pa.array([Decimal(1)] * len(x)), "decimal(5,2)", name="money")
    table = (
        trips.table("trips").select(strings("tip").alias("t"), money("tip").alias("m")).limit(1).to_arrow()
    )
    assert table.schema.types == [pa.string(), pa.decimal128(5, 2)]
    assert [str(c[0]) for c in table.columns] == ["é", "1.00"]


def test_no_rows_no_call(trips: kq.ExecutionContext):
    trips.register_function("never", lambda x: 1 / 0, "int")
    assert trips.sql("SELECT never(tip) FROM trips WHERE tip > 99").count() == 0


def test_a_function_that_is_not_deterministic_runs_once_a_place(trips: kq.ExecutionContext):
    source = kq.arrow_udf(lambda x: pc.random(len(x)), "double", deterministic=False, name="source")
    frame = trips.table("trips").select(source("tip").alias("r")).filter(col("r") >= lit(0.0))
    once = frame.select((col("r") - col("r")).alias("zero")).to_arrow()["zero"].to_pylist()
    assert once == [0.0] * 4


def test_only_a_deterministic_side_of_a_join_is_computed_by_every_task(tmp_path: Path):
    for name, rows in (("many", 40_000), ("few", 5)):
        pq.write_table(
            pa.table({"k": [i % 5 for i in range(rows)]}), tmp_path / f"{name}.parquet", row_group_size=4_000
        )
    context = kq.ExecutionContext(config=EngineConfig(parallelism=2, small_bytes=0, split_bytes=20_000))
    for name in ("many", "few"):
        context.register_parquet(name, str(tmp_path / f"{name}.parquet"))
    for deterministic in (True, False):
        source = kq.arrow_udf(lambda x: pc.random(len(x)), "double", deterministic=deterministic)
        context.register_function(f"source_{deterministic}", source)
        sql = f"SELECT m.k, r FROM many m JOIN (SELECT k, source_{deterministic}(k) AS r FROM few) f ON m.k = f.k"
        assert ("ReplicateExec" in context.sql(sql).explain()) is deterministic


def test_mistakes_are_reported_at_once(trips: kq.ExecutionContext):
    with pytest.raises(PlanError, match="what the function returns"):
        kq.arrow_udf(lambda x: x)  # type: ignore[call-overload]
    with pytest.raises(SqlError):
        kq.arrow_udf(lambda x: x, "no type")
    with pytest.raises(PlanError, match="a function is required, not int"):
        kq.arrow_udf(3, "int")  # type: ignore[call-overload]
    lock = threading.Lock()
    with pytest.raises(PlanError, match="cannot be sent to workers"):
        kq.arrow_udf(lambda x: lock and x, "int")
    with pytest.raises(PlanError, match="there is a function Upper already"):
        trips.register_function("Upper", share)
    with pytest.raises(PlanError, match="share says itself what it returns"):
        trips.register_function("share", share, "int")
    trips.register_function("share", share)
    with pytest.raises(SqlError, match=r"share takes arguments only"):
        trips.sql("SELECT share(DISTINCT tip, total) FROM trips")
    with pytest.raises(SqlError, match="nothing"):
        trips.sql("SELECT share(nothing) FROM trips")


def test_plans_with_functions_travel_but_not_from_strangers(trips: kq.ExecutionContext):
    plan = trips.table("trips").select(share("tip", "total").alias("s")).plan
    assert from_bytes(to_bytes(plan), LogicalPlan) == plan
    with pytest.raises(SerializationError, match="cannot have a UserCall"):
        read_request(PlanRequest(Analyzed(plan, ("s",))).ticket)


def test_workers_of_spark_run_it_and_give_what_spark_s_own_way_gives(spark: SparkSession, tmp_path: Any):
    rows = spark.range(10_000).selectExpr(
        "id", "CAST(id % 10 AS double) AS tip", "CAST(id % 7 AS double) AS total"
    )
    rows.write.parquet(str(tmp_path / "rows"))
    here, factor = os.getpid(), 3.0

    def scaled(tip: pa.Array, total: pa.Array) -> pa.Array:
        if os.getpid() == here:
            raise RuntimeError("ran in the driver")
        return pc.multiply(pc.add(tip, total), factor)

    context = kq.ExecutionContext(spark)
    context.register_parquet("rows", tmp_path / "rows")
    context.register_function("scaled", scaled, "double")
    sql = "SELECT total, sum(scaled(tip, total)) AS s, count(*) AS n FROM rows GROUP BY total ORDER BY total"
    ours = context.sql(sql).to_spark().collect()
    theirs = spark.read.parquet(str(tmp_path / "rows")).withColumn(
        "x", (F.col("tip") + F.col("total")) * factor
    )
    expected = theirs.groupBy("total").agg(F.sum("x").alias("s"), F.count("*").alias("n")).orderBy("total")
    assert ours == expected.collect()
    # an open plan over a frame of Spark
    plan = kq.plan().select(kq.arrow_udf(scaled, "double")("tip", "total").alias("x"))
    assert rows.transform(plan).agg(F.sum("x")).collect() == theirs.agg(F.sum("x")).collect()


def test_an_error_in_a_worker_says_where(spark: SparkSession):
    def broken(x: pa.Array) -> pa.Array:
        raise KeyError("gone")

    plan = kq.plan().select(kq.arrow_udf(broken, "int")("id").alias("x"))
    with pytest.raises(Exception, match="broken raised KeyError: 'gone'"):
        spark.range(5).transform(plan).collect()
