"""Python functions of pairs of groups between the engine's operators: keys, types, sides without rows, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.accelerate.python.python_functions import BATCHES_OF_50, TYPES, check, with_tables
from tests.conftest import settings

RETURNS = "key string, l string, r string"


def text_of(frame: pd.DataFrame) -> str:
    return f"{frame.dtypes.to_dict()} {sorted(map(repr, frame.itertuples(index=False, name=None)))}"


def describe_group(key: tuple[Any, ...], left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"key": [repr(key)], "l": [text_of(left)], "r": [text_of(right)]})


def seen_tables(key: tuple[Any, ...], left: pa.Table, right: pa.Table) -> pa.Table:
    strings = (f"{t.schema.to_string()} {sorted(map(repr, t.to_pylist()))}" for t in (left, right))
    return pa.table([[repr(key)], *([text] for text in strings)], names=["key", "l", "r"])


def lengths(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"l": [len(left)], "r": [len(right)]})


def cogrouped(left: DataFrame, right: DataFrame, *keys: Any) -> Any:
    return left.groupBy(*keys).cogroup(right.groupBy(*keys))


def test_each_type(rows: DataFrame) -> None:
    left = rows.where("id < 40").select("p", *TYPES)
    right = rows.where("id < 60").select("p", *reversed(TYPES))
    check(cogrouped(left, right, "p").applyInPandas(describe_group, RETURNS))


@with_tables
def test_each_arrow_type(rows: DataFrame) -> None:
    left = rows.where("id < 40").select("p", *TYPES)
    right = rows.where("id < 60").select("p", *reversed(TYPES))
    check(cogrouped(left, right, "p").applyInArrow(seen_tables, RETURNS))


@pytest.mark.parametrize("key", ["string", "double", "timestamp", "decimal", "bool"])
def test_keys_with_nulls_and_sides_without_rows(rows: DataFrame, key: str) -> None:
    left = rows.where("id < 90 AND id % 3 <> 0").select("id", key)
    right = rows.where("id > 60 AND id < 130").select(key, F.col("id").alias("other"), "byte")
    check(cogrouped(left, right, key).applyInPandas(describe_group, RETURNS))


def test_keys_of_every_form(rows: DataFrame) -> None:
    left = rows.where("id < 30").select("id", "p", "byte")
    right = rows.where("id < 45").select("byte", "p", F.col("id").alias("id2"))
    check(cogrouped(left, right, "p", "byte").applyInPandas(describe_group, RETURNS))
    check(cogrouped(left, right, F.expr("byte % 7").alias("k")).applyInPandas(describe_group, RETURNS))
    check(cogrouped(left, right).applyInPandas(lengths, "l long, r long"))
    check(left.groupBy("id").cogroup(right.groupBy("id2")).applyInPandas(describe_group, RETURNS))
    check(cogrouped(left.where("id < 0"), right, "p").applyInPandas(describe_group, RETURNS))
    check(cogrouped(left.where("id < 0"), right.where("id2 < 0")).applyInPandas(lengths, "l long, r long"))
    check(cogrouped(left, left, "p").applyInPandas(describe_group, RETURNS))


@with_tables
def test_tables_with_keys(rows: DataFrame) -> None:
    left = rows.where("id < 30").select("id", "p", "byte")
    right = rows.where("id < 45").select("byte", "p", F.col("id").alias("id2"))
    check(cogrouped(left, right, "p", "byte").applyInArrow(seen_tables, RETURNS))
    check(cogrouped(left.where("p = '1'"), right, "p").applyInArrow(seen_tables, RETURNS))


def test_every_place(rows: DataFrame) -> None:
    def merged(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
        return left.merge(right, on="k").groupby("k", as_index=False).agg({"s": "max", "id": "sum"})

    sums = rows.groupBy(F.col("byte").alias("k")).agg(F.sum("id").alias("s"))
    few = rows.where("id % 2 = 0").select(F.col("byte").alias("k"), "id")
    query = cogrouped(sums, few, "k").applyInPandas(merged, "k tinyint, s long, id long")
    check(query)
    check(query.where("k > 3").groupBy(F.expr("k % 5").alias("m")).agg(F.sum("id")).orderBy("m"))
    check(cogrouped(query, few.join(sums, "k"), "k").applyInPandas(lengths, "l long, r long"))
    check(query.join(few, "k").groupBy("s").count())


def test_batches_of_a_setting(rows: DataFrame, spark: SparkSession) -> None:
    left, right = rows.select("p", "id"), rows.select("p", "int")
    with settings(spark, BATCHES_OF_50):
        check(cogrouped(left, right, "p").applyInPandas(lengths, "l long, r long"))


def test_errors_are_spark_s_own(rows: DataFrame) -> None:
    def broken(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
        raise LookupError("seventy-seven")

    query = cogrouped(rows.select("p", "id"), rows.select("p", "int"), "p").applyInPandas(broken, "l long")
    with pytest.raises(PythonException, match=r"(?s)LookupError: seventy-seven"):
        query.transform(kquery_plan, when="always").collect()


DECLINED: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "types": (
        lambda r: r.groupBy("id").cogroup(r.groupBy("int")).applyInPandas(lengths, "l long, r long"),
        "keys of different types",
    ),
    "months": (
        lambda r: cogrouped(
            r.select("p", F.expr("make_ym_interval(byte, 1)").alias("a")), r.select("p"), "p"
        ).applyInPandas(lengths, "l long, r long"),
        "interval year to month",
    ),
}


@pytest.mark.parametrize("case", DECLINED)
def test_what_stays_with_spark(rows: DataFrame, case: str) -> None:
    make, reason = DECLINED[case]
    explained = kq.explain(make(rows).groupBy().agg(F.sum("l")))
    assert any(reason in said for _, said in explained.reasons), explained.reasons
