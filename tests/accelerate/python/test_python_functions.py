"""Python functions of Spark's users between the engine's operators: each kind, each type, each place, errors, surroundings."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.accelerate.python.python_functions import (
    BATCHES_OF_50,
    TYPES,
    arrow,
    arrow_udf,
    check,
    check_answers,
    plain,
    shown,
    with_arrow_udf,
    with_names,
)
from tests.conftest import SPARK_VERSION, settings


def test_arrow_optimized_functions_of_each_type(rows: DataFrame) -> None:
    text = arrow(lambda x: f"{type(x).__name__} {x!r}", "string")
    same = [arrow(lambda x: x, TYPES[column])(column).alias(column) for column in TYPES]
    check(rows.select("id", *same, *(text(column).alias(f"{column}_text") for column in TYPES)))


def test_functions_of_each_type(rows: DataFrame) -> None:
    text = plain(lambda x: f"{type(x).__name__} {x!r}", "string")
    same = [plain(lambda x: x, TYPES[column])(column).alias(column) for column in TYPES]
    check(rows.select("id", *same, *(text(column).alias(f"{column}_text") for column in TYPES)))


def test_pandas_functions_of_each_type(rows: DataFrame) -> None:
    def same(x: pd.Series) -> pd.Series:
        return x

    @pandas_udf("string")
    def text(x: pd.Series) -> pd.Series:
        return pd.Series([f"{x.dtype} {type(v).__name__} {v!r}" for v in x])

    columns = [pandas_udf(same, TYPES[column])(column).alias(column) for column in TYPES]
    check(rows.select("id", *columns, *(text(column).alias(f"{column}_text") for column in TYPES)))


@with_arrow_udf
def test_arrow_functions_of_each_type(rows: DataFrame) -> None:
    def same(x: pa.Array) -> pa.Array:
        return x

    def described(x: pa.Array) -> pa.Array:
        return pa.array([f"{x.type} {v!r}" for v in x.to_pylist()])

    text = arrow_udf(described, "string")
    columns = [arrow_udf(same, TYPES[column])(column).alias(column) for column in TYPES]
    check(rows.select("id", *columns, *(text(column).alias(f"{column}_text") for column in TYPES)))

    def each(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        yield from batches

    check(rows.select("id", arrow_udf(each, "double")("double").alias("v")))


# What a function may give for what is announced: Spark makes NULL of it, or another value.
VALUES = [
    True, False, 7, -300, 1 << 20, 1 << 40, -(1 << 63), 1 << 70, 2.5, 1e300, float("nan"), "7", "ä", None,
    Decimal("12.345"), Decimal("-12.344"), Decimal("5"), Decimal("0E+3"), Decimal("1E-30"),
]  # fmt: skip


TIMES = ("date", "timestamp", "timestamp_ntz")


@pytest.mark.parametrize("returns", [*TYPES.values()])
def test_values_of_other_types_than_announced(rows: DataFrame, returns: str) -> None:
    of_kind = {"string": (bool, int, str, type(None)), **dict.fromkeys(TIMES, (type(None),))}.get(
        returns, object
    )
    values = [v for v in VALUES if isinstance(v, of_kind)]
    give = plain(lambda i: values[i % len(values)], returns)
    check(rows.where("id < 50").select("id", give("id").alias("v")))


@pytest.mark.parametrize(
    ("returns", "value"),
    [
        ("int", [1]),
        ("date", 5),
        ("string", 2.5),
        ("decimal(4,2)", Decimal(1000)),
        ("bigint", b"x"),
        ("string", "\ud800"),
    ],
)
def test_values_of_which_only_spark_knows(rows: DataFrame, returns: str, value: Any) -> None:
    """Spark runs the query again, and gives what it makes of them or an error."""
    give = plain(lambda x: value, returns)
    check_answers(rows.where("id < 5").select("id", give("id").alias("v")))


def test_every_place(rows: DataFrame, spark: SparkSession) -> None:
    plus = plain(lambda x: None if x is None else x + 1, "bigint")
    odd = arrow(lambda x: bool(x % 2), "boolean")

    @pandas_udf("double")
    def half(x: pd.Series) -> pd.Series:
        return x / 2

    check(rows.groupBy("p").agg(F.sum(half("double")), F.sum(plus("long")), F.count("*")))
    check(rows.groupBy(plus("byte").alias("k")).agg(F.count("*")))
    check(rows.where(odd("id")).groupBy("p").count())
    check(rows.where(odd("id") | (F.col("id") < 10)).groupBy("p").agg(F.sum("int")))
    check(rows.select("id", plus("id").alias("v")).orderBy(F.desc("v")).limit(7))
    check(rows.groupBy("p").agg(F.sum("id").alias("s")).select("p", plus("s").alias("v")))
    check(rows.select(F.when(F.col("id") > 5, plus("id")).otherwise(-1).alias("v")).groupBy("v").count())
    other = rows.where("id < 100").select(F.col("id").alias("other"), F.col("p").alias("q"))
    check(rows.join(other, plus("id") == F.col("other")).groupBy("q").count())
    check(
        rows.join(other, (F.col("id") == F.col("other")) & odd(F.col("id") + F.col("other")))
        .groupBy("q")
        .count()
    )
    check(rows.select("id", F.row_number().over(__import__("pyspark").sql.Window.partitionBy("p").orderBy("id")).alias("n")).select(plus("n").alias("v")).groupBy("v").count())  # fmt: skip
    check(rows.select(plus("id").alias("v")).union(other.select(plus("other"))).groupBy("v").count())
    check(rows.select(plus("id").alias("v")).distinct())


def test_chains_and_several_functions(rows: DataFrame) -> None:
    for kind in (plain, arrow):
        plus = kind(lambda x: None if x is None else x + 1, "bigint")
        times = kind(lambda x, y: None if x is None or y is None else x * y, "double")
        none = kind(lambda: 42, "int")
        query = rows.select(
            plus(plus(plus("int"))).alias("a"),
            times("double", plus("id")).alias("b"),
            plus(F.col("id") * 2),
            none(),
        )
        check(query)
        check(query.groupBy("a").agg(F.max("b")))
    mixed = plain(lambda x: x + 1, "bigint")
    check(rows.select(arrow(lambda x: x * 2, "bigint")(mixed("id")).alias("v")))


@with_names
def test_named_arguments(rows: DataFrame) -> None:
    for kind in (plain, arrow):
        minus = kind(lambda a, b: None if a is None or b is None else a - b, "bigint")
        check(rows.select(minus("id", b=F.col("int")), minus(b=F.col("id"), a=F.col("int"))))

    @pandas_udf("double")
    def minus(a: pd.Series, b: pd.Series) -> pd.Series:
        return a - b

    check(rows.select(minus(b=F.col("id"), a=F.col("double")).alias("v")))


def test_iterators_over_all_batches_of_a_task(rows: DataFrame, spark: SparkSession) -> None:
    @pandas_udf("bigint")
    def ahead(batches: Iterator[tuple[pd.Series, pd.Series]]) -> Iterator[pd.Series]:
        held = [a + b for a, b in batches]  # reads all before it gives any
        yield from held

    @pandas_udf("bigint")
    def cut(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        for batch in batches:
            yield batch[:3]
            yield batch[3:]

    with settings(spark, BATCHES_OF_50):
        check(rows.select("id", ahead("id", "short").alias("v"), cut("id").alias("w")))
        check(rows.select(ahead("id", "byte").alias("v")).groupBy("v").count())


def test_batches_are_as_large_as_the_setting_says(rows: DataFrame, spark: SparkSession) -> None:
    @pandas_udf("bigint")
    def size(x: pd.Series) -> pd.Series:
        return pd.Series([len(x)] * len(x))

    query = rows.select(size("id").alias("n")).groupBy("n").count()
    for most in (7, 100, 1000, 0):
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(most))
        try:
            sizes = {row["n"] for row in query.transform(kquery_plan, when="always").collect()}
            assert max(sizes) == most or (most in (0, 1000) and max(sizes) >= 400), sizes
        finally:
            spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def test_no_rows(rows: DataFrame) -> None:
    never = plain(lambda x: 1 // 0, "int")

    @pandas_udf("int")
    def pandas_never(x: pd.Series) -> pd.Series:
        return x // (len(x) - len(x))

    check(rows.where("id < 0").select(never("id").alias("v")).groupBy("v").count())
    check(rows.where("id < 0").select(pandas_never("int").alias("v")))


def test_a_function_that_writes_to_its_arguments(rows: DataFrame) -> None:
    """Columns beside the result keep their values, and what Spark does not let it write to, the engine does not."""

    @pandas_udf("double")
    def zeroed(x: pd.Series) -> pd.Series:
        try:
            x.values[:] = 0
        except ValueError:
            return x - 1
        return x

    check(rows.select("id", F.col("id").cast("double").alias("d")).select("d", "id", zeroed("d").alias("v")))
    check(rows.select("double", zeroed("double").alias("v")))


def test_a_user_s_error_is_spark_s_own(rows: DataFrame) -> None:
    def broken(x):
        if x == 77:
            raise LookupError("seventy-seven")
        return x

    def mistaken(x: pd.Series) -> pd.Series:
        return x[:3]

    for function, said in (
        (plain(broken, "bigint"), "LookupError: seventy-seven"),
        (arrow(broken, "bigint"), "LookupError: seventy-seven"),
        (pandas_udf(mistaken, "bigint"), "length|row"),
    ):
        query = rows.select(function("id").alias("v")).groupBy("v").count()
        with pytest.raises(PythonException, match=f"(?s){said}") as ours:
            query.transform(kquery_plan, when="always").collect()
        with pytest.raises(PythonException) as theirs:
            query.collect()
        assert type(ours.value) is type(theirs.value)
        assert "TaskError" not in str(ours.value)
        if "LookupError" in said:
            assert "test_python_functions.py" in str(ours.value)


def test_functions_run_in_spark_s_tasks(rows: DataFrame) -> None:
    import os

    here = os.getpid()
    where = plain(
        lambda x: (__import__("os").getpid(), __import__("pyspark").TaskContext.get().partitionId())[0],
        "bigint",
    )
    query = rows.select(where("id").alias("v")).groupBy("v").count()
    found = query.transform(kquery_plan, when="always").collect()
    assert here not in {row["v"] for row in found}
    assert sum(row["count"] for row in found) == 1200


def test_accumulators_count_each_row_once(rows: DataFrame, spark: SparkSession) -> None:
    counted = spark.sparkContext.accumulator(0)

    def count(x):
        counted.add(1)
        return x

    for kind in (plain, arrow):
        query = rows.select(kind(count, "bigint")("id").alias("v")).groupBy("v").count()
        before = counted.value
        query.transform(kquery_plan, when="always").collect()
        assert counted.value == before + 1200
    small = rows.where("id < 10").select(plain(count, "bigint")("id").alias("k"))
    before = counted.value
    rows.join(small, F.col("id") == F.col("k")).groupBy("p").count().transform(
        kquery_plan, when="always"
    ).collect()
    assert counted.value <= before + 20  # Spark may have put the function into both sides' filters


DECLINED = {
    "profiled": "while they are profiled",
}


@pytest.mark.parametrize("case", DECLINED)
def test_what_stays_with_spark(rows: DataFrame, spark: SparkSession, case: str) -> None:
    functions = {
        "profiled": plain(lambda x: x, "bigint"),
    }
    query = rows.select(functions[case]("id").alias("v"), "p").groupBy("p").agg(F.max("v"))
    if case == "profiled":
        if SPARK_VERSION < (4, 0):
            pytest.skip("a setting of 4.0")
        spark.conf.set("spark.sql.pyspark.udf.profiler", "perf")
    try:
        explained = kq.explain(query)
        assert any(DECLINED[case] in reason for _, reason in explained.reasons), explained.reasons
        assert explained.coverage < 1
    finally:
        spark.conf.unset("spark.sql.pyspark.udf.profiler")
    assert shown(query.transform(kquery_plan, when="always").collect()) == shown(query.collect())


def test_files_that_the_session_added(rows: DataFrame, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "added_module.py").write_text("def tripled(x):\n    return 3 * x\n")
    spark.sparkContext.addPyFile(str(tmp_path / "added_module.py"))

    def call(x):
        import added_module

        return added_module.tripled(x)

    check(rows.select(plain(call, "bigint")("id").alias("v")).groupBy("v").count())


def test_repartition_for_a_function_is_spark_s(rows: DataFrame) -> None:
    plus = plain(lambda x: x + 1, "bigint")
    check(rows.repartition(8).select(plus("id").alias("v")).groupBy("v").count(), whole=False)
