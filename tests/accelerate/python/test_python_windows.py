"""Python functions over windows between the engine's operators: frames, types, order, several functions, errors."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf
from pyspark.sql.types import StringType

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.accelerate.python.python_functions import (
    TYPES,
    arrow_udf,
    check,
    mean,
    total,
    weighted,
    with_arrow_udf,
    with_names,
)


@pandas_udf(StringType())
def text(x: pd.Series) -> str:
    return f"{x.dtype} {list(map(repr, x))}"


def by(*keys: str) -> WindowSpec:
    return Window.partitionBy(*keys)


def ordered() -> WindowSpec:
    return by("p").orderBy("id")


FRAMES: dict[str, Callable[[], WindowSpec]] = {
    "running": lambda: ordered(),
    "sliding": lambda: ordered().rowsBetween(-2, 3),
    "rest": lambda: ordered().rowsBetween(1, Window.unboundedFollowing),
    "ahead": lambda: ordered().rowsBetween(2, 4),
    "range": lambda: ordered().rangeBetween(-6, 3),
    "whole": lambda: ordered().rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing),
    "unpartitioned": lambda: Window.orderBy("id").rowsBetween(-1, 1),
    "running rows": lambda: ordered().rowsBetween(Window.unboundedPreceding, Window.currentRow),
    "behind": lambda: ordered().rowsBetween(-5, -3),
    "range down": lambda: by("p").orderBy(F.desc("id")).rangeBetween(-6, Window.currentRow),
    "range to the end": lambda: ordered().rangeBetween(Window.currentRow, Window.unboundedFollowing),
    "peers": lambda: by("p").orderBy("byte"),
}


def test_whole_partitions_of_each_type(rows: DataFrame) -> None:
    few = rows.where("id < 60")
    whole = FRAMES["whole"]()
    check(few.select("id", *(text(column).over(whole).alias(column) for column in TYPES)))
    check(few.select("id", *(mean(column).over(by("p")).alias(column) for column in ("id", "double", "int"))))


@pytest.mark.parametrize("frame", FRAMES)
def test_frames(rows: DataFrame, frame: str) -> None:
    few = rows.where("id < 80").select("id", "p", "byte", "int", "double")
    check(
        few.select(
            "*", mean("id").over(FRAMES[frame]()).alias("m"), mean("int").over(FRAMES[frame]()).alias("n")
        )
    )


def test_frames_of_each_type(rows: DataFrame) -> None:
    few = rows.where("id < 40")
    check(few.select("id", *(text(column).over(FRAMES["sliding"]()).alias(column) for column in TYPES)))


def test_order_by_keys_with_nulls_and_ties(rows: DataFrame) -> None:
    few = rows.where("id < 60").select("id", "p", "double", "int", "date")
    for key in ("double", "int", "date"):
        for order in (F.col(key).asc(), F.col(key).desc_nulls_first()):
            check(few.select("id", mean("id").over(by("p").orderBy(order)).alias("m")))
    near = by("p").orderBy(F.col("int").cast("long").desc_nulls_last()).rangeBetween(-8_000_000, 5_000_000)
    check(few.select("id", mean("id").over(near).alias("m")))


def test_several_functions_and_frames(rows: DataFrame) -> None:
    few = rows.where("id < 80").select("id", "p", "byte", "double")
    sliding, rest = FRAMES["sliding"](), FRAMES["rest"]()
    check(
        few.select(
            "*",
            mean("id").over(sliding).alias("a"),
            weighted("id", "byte").over(FRAMES["whole"]()).alias("b"),
            (weighted("byte", "id").over(sliding) + mean("double").over(rest)).alias("c"),
            mean(F.col("id") * 2).over(FRAMES["running"]()).alias("d"),
        )
    )
    check(few.select("id", mean("id").over(sliding).alias("a"), F.sum("id").over(sliding).alias("s"), mean("id").over(Window.partitionBy("byte")).alias("b")))  # fmt: skip


@with_names
def test_named_arguments(rows: DataFrame) -> None:
    few = rows.where("id < 60").select("id", "p", "byte")
    for window in (FRAMES["sliding"](), FRAMES["whole"]()):
        check(few.select("id", weighted(weight=F.col("id"), x=F.col("byte")).over(window).alias("m")))
        check(few.select("id", weighted("byte", weight=F.col("id")).over(window).alias("m")))


@with_arrow_udf
def test_arrow_functions(rows: DataFrame) -> None:
    def described(x: pa.Array) -> str:
        return f"{x.type} {x.null_count} {list(map(repr, x.to_pylist()))}"

    few = rows.where("id < 40")
    for frame in ("sliding", "whole", "running", "ahead"):
        window = FRAMES[frame]()
        check(few.select("id", arrow_udf(total, "bigint")("int").over(window).alias("t")))
        check(few.select("id", *(arrow_udf(described, "string")(c).over(window).alias(c) for c in TYPES)))


def test_every_place(rows: DataFrame) -> None:
    few = rows.select("id", "p", "byte")
    windowed = few.withColumn("m", mean("id").over(Window.partitionBy("byte")))
    check(windowed.where("m > 600").groupBy("p").agg(F.sum("id"), F.max("m")))
    check(windowed.select("m").distinct())
    check(windowed.where("byte = 3"))
    check(
        few.groupBy("p", "byte")
        .agg(F.sum("id").alias("s"))
        .select("byte", mean("s").over(by("p")).alias("m"))
    )
    check(windowed.join(few.withColumnRenamed("p", "q"), "id").groupBy("q").agg(F.max("m")))
    check(windowed.orderBy(F.desc("m"), "id").limit(5))
    check(few.where("id < 0").select("id", mean("id").over(by("p"))))
    check(windowed.select("id", mean("m").over(Window.partitionBy("byte").orderBy("id").rowsBetween(-1, 1)).alias("mm")))  # fmt: skip


def test_errors_are_spark_s_own(rows: DataFrame) -> None:
    def broken(x: pd.Series) -> float:
        raise LookupError("seventy-seven")

    query = rows.select("id", pandas_udf(broken, "double")("id").over(by("p")).alias("m"))
    with pytest.raises(PythonException, match=r"(?s)LookupError: seventy-seven"):
        query.transform(kquery_plan, when="always").collect()


def test_what_stays_with_spark(rows: DataFrame) -> None:
    frame = rows.select("p", text(F.expr("make_ym_interval(byte, 1)")).over(by("p")).alias("v"))
    explained = kq.explain(frame.groupBy().agg(F.max("v")))
    assert any("interval year to month" in reason for _, reason in explained.reasons), explained.reasons
