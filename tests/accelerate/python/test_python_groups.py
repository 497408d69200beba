"""Python functions of groups and of batches between the engine's operators: each kind, each type, each place, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import PandasUDFType, pandas_udf
from pyspark.sql.types import StringType

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.accelerate.python.python_functions import (
    BATCHES_OF_50,
    TYPES,
    arrow_udf,
    check,
    mean,
    plain,
    shown,
    total,
    weighted,
    with_arrow_udf,
    with_names,
    with_tables,
)
from tests.conftest import SPARK_VERSION, exhaustive, settings

with_iterators = pytest.mark.skipif(SPARK_VERSION < (4, 1), reason="iterators over a group are of 4.1")
with_folds = pytest.mark.skipif(SPARK_VERSION < (4, 2), reason="aggregates over iterators are of 4.2")


@pandas_udf(StringType())
def text(x: pd.Series) -> str:
    return f"{x.dtype} {sorted(map(repr, x))}"


def test_aggregates_of_each_type(rows: DataFrame) -> None:
    check(rows.where("id < 200").groupBy("p").agg(*(text(column).alias(column) for column in TYPES)))


@with_arrow_udf
def test_arrow_aggregates_of_each_type(rows: DataFrame) -> None:
    def described(x: pa.Array) -> str:
        return f"{x.type} {x.null_count} {sorted(map(repr, x.to_pylist()))}"

    of_type = arrow_udf(described, "string")
    check(rows.where("id < 200").groupBy("p").agg(*(of_type(column).alias(column) for column in TYPES)))


def test_what_aggregates_give_of_each_type(rows: DataFrame) -> None:
    def largest(x):
        valid = x.dropna()
        return None if valid.empty else valid.max()

    calls = [
        pandas_udf(largest, TYPES[c], PandasUDFType.GROUPED_AGG)(c).alias(c)
        for c in TYPES
        if c != "timestamp_ntz"
    ]
    check(rows.groupBy("byte").agg(*calls))


QUICK_KEYS = ("double", "binary", "timestamp")
KEYS = [
    key if key in QUICK_KEYS else pytest.param(key, marks=exhaustive)
    for key in ("p", *TYPES)
    if key not in ("byte", "short")
]


@pytest.mark.parametrize("key", KEYS)
def test_keys_of_each_type(rows: DataFrame, key: str) -> None:
    check(rows.where("id < 150").groupBy(key).agg(mean("id").alias("m")))


def test_zeros_and_nans_are_one_key_each(spark: SparkSession, rows: DataFrame) -> None:
    zeros = rows.select(F.expr("id % 2 = 0 AS even"), F.expr("-0.0D AS z"), F.expr("IF(id % 2 = 0, 0.0D, -0.0D) AS y"), "id")  # fmt: skip
    check(zeros.groupBy("z").agg(mean("id").alias("m")))  # Spark keeps the sign of a key
    found = zeros.groupBy("y").agg(mean("id").alias("m")).transform(kquery_plan, when="always").collect()
    assert [row["m"] for row in found] == [599.5]


def test_aggregates_at_every_place(rows: DataFrame) -> None:
    other = rows.where("id < 100").select(F.col("id").alias("other"), F.col("p").alias("q"))
    check(rows.groupBy("p").agg((mean("double") + 1).alias("a"), weighted("id", "short"), mean("id")))
    check(rows.groupBy().agg(mean("id")))
    check(rows.where("id < 0").groupBy().agg(mean("id")))
    check(rows.where("id < 0").groupBy("p").agg(mean("id")))
    check(rows.groupBy(F.expr("id % 7").alias("k"), "p").agg(mean(F.col("id") * 2)))
    check(rows.join(other, rows.id == other.other).groupBy("q").agg(mean("id").alias("m")).orderBy("m"))
    check(rows.groupBy("p", "byte").agg(F.sum("id").alias("s")).groupBy("p").agg(mean("s").alias("m")).where("m > 3"))  # fmt: skip
    check(rows.rollup("p", "bool").agg(mean("id").alias("m")))
    check(rows.groupBy("p").agg(mean(plain(lambda x: x + 1, "bigint")("id")).alias("m")))


@with_names
def test_aggregates_with_named_arguments(rows: DataFrame) -> None:
    check(rows.groupBy("p").agg(weighted(weight=F.col("id"), x=F.col("byte")).alias("m")))


@with_arrow_udf
def test_arrow_aggregates(rows: DataFrame) -> None:
    check(rows.groupBy("byte").agg(arrow_udf(total, "bigint")("id").alias("t")))


@with_folds
def test_iterators_over_the_batches_of_a_group(rows: DataFrame, spark: SparkSession) -> None:
    @pandas_udf("double")
    def largest(batches: Iterator[pd.Series]) -> float:
        return float(max(len(x) for x in batches))

    with settings(spark, BATCHES_OF_50):
        check(rows.groupBy("p").agg(largest("id").alias("n")))


def test_apply_of_each_type(rows: DataFrame) -> None:
    schema = ", ".join(f"{name} {TYPES[name]}" for name in TYPES)
    few = rows.where("id < 100").select("p", *TYPES)
    check(few.groupBy("p").applyInPandas(lambda frame: frame, f"p string, {schema}"))
    check(
        few.groupBy("p").applyInPandas(lambda f: pd.DataFrame({"c": [str(f.dtypes.to_dict())]}), "c string")
    )


@with_tables
def test_apply_of_each_arrow_type(rows: DataFrame) -> None:
    schema = ", ".join(f"{name} {TYPES[name]}" for name in TYPES)
    few = rows.where("id < 100").select("p", *TYPES)
    check(few.groupBy("p").applyInArrow(lambda table: table, f"p string, {schema}"))
    check(few.groupBy("p").applyInArrow(lambda t: pa.table({"c": [t.schema.to_string()]}), "c string"))


RETURNS = "k string, n long, columns string"
KEYED = ("id", "p", "bool", "byte", "int", "double")


def test_apply_with_keys(rows: DataFrame) -> None:
    def keyed(key: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"k": [repr(key)], "n": [len(frame)], "columns": [",".join(frame.columns)]})

    few = rows.where("id < 60").select(*KEYED)
    check(few.groupBy("bool", "p").applyInPandas(keyed, RETURNS))
    check(few.groupBy(F.expr("id % 7")).applyInPandas(keyed, RETURNS))
    check(few.groupBy().applyInPandas(keyed, RETURNS))
    check(few.groupBy("int").applyInPandas(keyed, RETURNS))


@with_tables
def test_apply_to_tables_with_keys(rows: DataFrame) -> None:
    def keyed(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        return pa.table({"k": [repr(key)], "n": [table.num_rows], "columns": [",".join(table.column_names)]})

    few = rows.where("id < 60").select(*KEYED)
    check(few.groupBy("bool", "p").applyInArrow(keyed, RETURNS))
    check(few.groupBy(F.expr("id % 7").alias("k"), "p").applyInArrow(keyed, RETURNS))
    twice = few.select("p", "id", F.col("id").alias("id2"), "double")
    check(twice.groupBy("double").applyInArrow(keyed, RETURNS))


def test_apply_by_name_and_by_position(rows: DataFrame, spark: SparkSession) -> None:
    def swapped(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"b": frame["byte"].astype("int64"), "a": frame["id"]})

    query = rows.groupBy("p").applyInPandas(swapped, "a long, b long")
    check(query)
    spark.conf.set("spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName", "false")
    try:
        check(rows.groupBy("p").applyInPandas(swapped, "a long, b long"))
    finally:
        spark.conf.unset("spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName")


def test_apply_at_every_place(rows: DataFrame) -> None:
    def first(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.sort_values("id").head(2)

    def none(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame() if len(frame) < 400 else frame.iloc[:0]

    few = rows.select("id", "p", "byte")
    returns = "id long, p string, byte tinyint"
    check(few.groupBy("byte").applyInPandas(first, returns).groupBy("p").agg(F.sum("id")))
    check(few.groupBy("byte").applyInPandas(first, returns).where("id > 100").orderBy(F.desc("id")).limit(5))
    check(few.groupBy("p").applyInPandas(none, returns))
    check(few.where("id < 0").groupBy("p").applyInPandas(first, returns))
    check(few.groupBy("p").applyInPandas(first, returns).join(few.withColumnRenamed("p", "q"), "id"))
    check(few.groupBy("p").agg(F.count("*").alias("id"), F.max("byte").alias("byte")).groupBy("p").applyInPandas(first, returns))  # fmt: skip
    twice = few.groupBy("byte").applyInPandas(first, returns)
    check(twice.groupBy("byte").applyInPandas(first, returns).union(few))


@with_iterators
def test_iterators_of_apply(rows: DataFrame, spark: SparkSession) -> None:
    def pieces(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            yield pd.DataFrame({"n": [len(batch)]})
            if len(batch) > 45:
                return

    def arrow_pieces(key: tuple[Any, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"n": [batch.num_rows], "k": [str(key)]})

    with settings(spark, BATCHES_OF_50):
        check(rows.groupBy("p").applyInPandas(pieces, "n long"))
        check(rows.groupBy("p").applyInArrow(arrow_pieces, "n long, k string"))


def test_maps_of_each_type(rows: DataFrame) -> None:
    schema = ", ".join(f"{name} {TYPES[name]}" for name in TYPES)
    few = rows.select(*TYPES)
    check(few.mapInPandas(lambda frames: frames, schema))
    check(few.mapInArrow(lambda batches: batches, schema))
    check(few.mapInPandas(lambda fs: (pd.DataFrame({"c": [str(f.dtypes.to_dict())]}) for f in fs), "c string").distinct())  # fmt: skip
    check(few.mapInArrow(lambda bs: (pa.RecordBatch.from_pydict({"c": [b.schema.to_string()]}) for b in bs), "c string").distinct())  # fmt: skip


def test_maps_at_every_place(rows: DataFrame) -> None:
    def odd(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.filter(pc.equal(pc.bit_wise_and(batch.column("id"), 1), 1))

    def doubled(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield frame
            yield frame

    def nothing(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        return iter(())

    few = rows.select("id", "p")
    returns = "id long, p string"
    check(few.mapInArrow(odd, returns).groupBy("p").agg(F.sum("id")))
    check(few.mapInPandas(doubled, returns).groupBy("p").count())
    check(few.groupBy("p").agg(F.sum("id").alias("id")).select("id", "p").mapInPandas(doubled, returns))
    check(few.mapInArrow(odd, returns).mapInPandas(doubled, returns).where("id > 30").select(plain(lambda x: x + 1, "bigint")("id")))  # fmt: skip
    check(few.mapInPandas(nothing, returns).groupBy("p").count())
    check(few.where("id < 0").mapInPandas(doubled, returns).groupBy("p").count())
    other = few.withColumnRenamed("p", "q")
    check(few.mapInPandas(doubled, returns).join(other, "id").groupBy("q").count())


def test_a_map_reads_as_much_as_it_likes(rows: DataFrame) -> None:
    """Batches are computed as the function takes them, and it may stop early or give results without rows."""

    def first(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield frame.head(1)
            return

    def counted(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        yield pd.DataFrame({"n": [sum(map(len, frames))]})

    found = rows.select("id").mapInPandas(first, "id long").transform(kquery_plan, when="always")
    assert 1 <= found.count() <= 3
    check(rows.select("id").mapInPandas(counted, "n long").agg(F.sum("n")))


def test_errors_of_functions_are_spark_s_own(rows: DataFrame) -> None:
    def broken(frame: pd.DataFrame) -> pd.DataFrame:
        raise LookupError("seventy-seven")

    def misnamed(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.rename(columns={"id": "other"})

    def other_type(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"id": pa.array(["x"] * batch.num_rows)})

    def wrong(x: pd.Series) -> float:
        return x.no_such_thing()

    few = rows.select("id", "p")
    with pytest.raises(PythonException, match=r"(?s)LookupError: seventy-seven"):
        few.groupBy("p").applyInPandas(broken, "id long, p string").transform(
            kquery_plan, when="always"
        ).collect()
    for query in (
        few.groupBy("p").applyInPandas(misnamed, "id long, p string"),
        few.mapInArrow(other_type, "id long"),
        few.groupBy("p").agg(pandas_udf(wrong, "double")("id")),
    ):
        errors = []
        for frame in (query, query.transform(kquery_plan, when="always")):
            with pytest.raises(Exception) as raised:
                frame.collect()
            errors.append(raised.value)
        assert type(errors[0]) is type(errors[1])
        assert "TaskError" not in str(errors[1])


def test_each_group_is_called_once(rows: DataFrame, spark: SparkSession) -> None:
    counted = spark.sparkContext.accumulator(0)

    def count(frame: pd.DataFrame) -> pd.DataFrame:
        counted.add(1)
        return frame

    query = rows.select("id", "byte").groupBy("byte").applyInPandas(count, "id long, byte tinyint")
    query.groupBy("byte").count().transform(kquery_plan, when="always").collect()
    assert counted.value == 120


MONTHS = "make_ym_interval(CAST(id AS int), 1)"
DECLINED: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "barrier": (lambda rows: rows.select("id").mapInPandas(lambda f: f, "id long", barrier=True), "barrier"),
    "mixed": (
        lambda rows: rows.groupBy("p").agg((mean("id") + arrow_udf(total, "bigint")("id")).alias("v")),
        "several kinds",
    ),
    "no columns": (lambda rows: rows.select().mapInPandas(lambda f: f, "id long"), "without columns"),
    "months": (lambda rows: rows.select(F.expr(MONTHS).alias("a"), "id").mapInPandas(lambda f: f, "a int, id long"), "interval year to month"),
}  # fmt: skip


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=with_arrow_udf if case == "mixed" else ()) for case in DECLINED]
)
def test_what_stays_with_spark(rows: DataFrame, case: str) -> None:
    make, reason = DECLINED[case]
    frame = make(rows)
    explained = kq.explain(frame.agg(F.max(frame[frame.columns[-1]])))
    assert any(reason in found for _, found in explained.reasons), explained.reasons


def test_repartition_for_a_function_is_spark_s(rows: DataFrame) -> None:
    few = rows.select("id", "p").repartition(8)
    check(few.mapInPandas(lambda f: f, "id long, p string").groupBy("p").count(), whole=False)
    assert shown(few.groupBy("p").agg(mean("id")).collect())


def test_what_functions_see_in_another_time_zone(rows: DataFrame, spark: SparkSession) -> None:
    returns = "schema string, seen string"

    def describe_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = [repr(row) for row in batch.to_pylist()]
            yield pa.RecordBatch.from_pydict({"schema": [batch.schema.to_string()] * len(values), "seen": values})  # fmt: skip

    def frame_seen(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"schema": [str(frame.dtypes.to_dict())], "seen": [str(sorted(map(str, frame["t"])))]})  # fmt: skip

    few = rows.where("id < 50").select("p", F.col("timestamp").alias("t"), "timestamp_ntz")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        check(few.mapInArrow(describe_batches, returns))
        check(few.groupBy("p").applyInPandas(frame_seen, returns))
        check(few.mapInPandas(lambda frames: frames, "p string, t timestamp, timestamp_ntz timestamp_ntz"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
