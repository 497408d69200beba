"""Python functions that take and return arrays, maps, structs and intervals: what they see, and what Spark makes of results."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.functions import PandasUDFType, pandas_udf
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

import kquery_spark as kq
from tests.accelerate.python.python_functions import (
    NESTED,
    WITHOUT_MAPS,
    arrow,
    arrow_udf,
    check,
    check_answers,
    plain,
    with_arrow_udf,
    with_tables,
)
from tests.conftest import SPARK_VERSION, exhaustive, settings

SCHEMA = ", ".join(f"{name} {dtype}" for name, dtype in NESTED.items())
STRUCT = "struct<a:int,b:string>"


def each(frame: DataFrame, function: Callable[[str], Any], names: Any = NESTED) -> DataFrame:
    return frame.select("id", *(function(name).alias(name) for name in names))


def described(x: Any) -> str:
    return f"{type(x).__name__} {x!r}"


def test_pickled_functions(nested: DataFrame) -> None:
    text = plain(lambda *x: repr([*map(described, x)]), "string")
    check(each(nested, text, WITHOUT_MAPS))
    check(each(nested, lambda name: plain(lambda x: x, NESTED[name])(name), WITHOUT_MAPS))
    check(
        nested.where("id % 3 = 1")
        .select("id", text(*WITHOUT_MAPS).alias("v"))
        .orderBy(F.desc("id"))
        .limit(20)
    )
    deep = "array<array<struct<i:bigint,d:array<date>>>>"
    day = datetime.date(2020, 1, 1)
    made = plain(lambda x: [[(x, [day, None])], None, []] if x % 5 else [], deep)
    check(nested.select("id", made("id").alias("v"), text(made("id"))))


def test_arrow_optimized_functions(nested: DataFrame) -> None:
    check(each(nested, arrow(described, "string")))
    check(each(nested, lambda name: arrow(lambda x: x, NESTED[name])(name)))


def test_pandas_functions(nested: DataFrame) -> None:
    def typed(name: str, function: Callable[..., Any], returns: str) -> Any:
        given = pd.DataFrame if NESTED[name].startswith("struct") else pd.Series
        function.__annotations__ = {"x": given, "return": given if returns != "string" else pd.Series}
        return pandas_udf(function, returns)(name)

    def text(x):
        return pd.Series([described(v) for v in (x.itertuples(index=False) if x.ndim == 2 else x)])

    # 3.5 returns no structs inside of structs
    names = [name for name in NESTED if name != "mixed" or SPARK_VERSION >= (4, 0)]
    check(each(nested, lambda name: typed(name, text, "string")))
    check(each(nested, lambda name: typed(name, lambda x: x, NESTED[name]), names))


@with_arrow_udf
def test_arrow_functions(nested: DataFrame) -> None:
    def same(x: pa.Array) -> pa.Array:
        return x

    def text(x: pa.Array) -> pa.Array:
        values = len(x.values) if pa.types.is_list(x.type) else 0
        return pa.array([f"{x.type} {values} {v!r}" for v in x.to_pylist()])

    check(each(nested, arrow_udf(text, "string")))
    check(each(nested, lambda name: arrow_udf(same, NESTED[name])(name)))


def text_of(x: Any) -> str:
    return str(sorted(map(repr, x.itertuples(index=False, name=None) if x.ndim == 2 else x)))


def test_aggregates_and_windows(nested: DataFrame) -> None:
    text = pandas_udf(text_of, "string", PandasUDFType.GROUPED_AGG)
    few = nested.where("id < 30")
    check(few.groupBy("p").agg(*(text(name).alias(name) for name in NESTED)))
    window = Window.partitionBy("p").orderBy("id").rowsBetween(-1, 1)
    check(each(few, lambda name: text(name).over(window)))
    first = pandas_udf(lambda x: x.iloc[0], "array<double>", PandasUDFType.GROUPED_AGG)
    check(few.groupBy("p").agg(first("doubles").alias("v")))


@with_arrow_udf
def test_arrow_aggregates(nested: DataFrame) -> None:
    def text(x: pa.Array) -> str:
        return f"{x.type} {sorted(map(repr, x.to_pylist()))}"

    check(nested.groupBy("p").agg(*(arrow_udf(text, "string")(name).alias(name) for name in NESTED)))


def test_tables_of_pandas(nested: DataFrame) -> None:
    few = nested.where("id < 40").select("p", *NESTED)

    def describe(*frames: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"c": [f"{frame.dtypes.to_dict()} {text_of(frame)}" for frame in frames]})

    names = [name for name in NESTED if name != "mixed" or SPARK_VERSION >= (4, 0)]
    schema = ", ".join(f"{name} {NESTED[name]}" for name in names)
    check(few.select("p", *names).groupBy("p").applyInPandas(lambda f: f, f"p string, {schema}"))
    check(few.select(*names).mapInPandas(lambda frames: frames, schema))
    check(few.groupBy("p").applyInPandas(lambda f: describe(f), "c string"))
    check(few.groupBy("p").cogroup(few.groupBy("p")).applyInPandas(lambda x, y: describe(x, y), "c string"))


def describe(*tables: pa.Table) -> pa.Table:
    return pa.table({"c": [t.schema.to_string() + str(sorted(map(repr, t.to_pylist()))) for t in tables]})


def test_tables_of_arrow(nested: DataFrame) -> None:
    few = nested.select(*NESTED)
    check(few.mapInArrow(lambda batches: batches, SCHEMA))
    rows = few.mapInArrow(lambda bs: (pa.RecordBatch.from_pydict({"c": [b.schema.to_string(), *map(repr, b.to_pylist())]}) for b in bs), "c string")  # fmt: skip
    check(rows.distinct())


@with_tables
def test_groups_of_arrow(nested: DataFrame) -> None:
    groups = nested.where("id < 40").select("p", *NESTED).groupBy("p")
    check(groups.applyInArrow(lambda table: table, f"p string, {SCHEMA}"))
    check(groups.applyInArrow(lambda table: describe(table), "c string"))
    check(groups.cogroup(groups).applyInArrow(lambda x, y: describe(x, y), "c string"))


COMPUTED = (
    "array(id, id + 1)", "struct(id, p)", "map(p, id)", "split(p, ',')", "sequence(1, id)", "named_struct('t', times, 'm', counts)",
    "transform(ints, x -> x + 1)", "filter(structs, s -> s IS NOT NULL)", "one.b", "counts['y']", "array(span)", "coalesce(ints, array(5))",
)  # fmt: skip


def test_computed_arguments(nested: DataFrame) -> None:
    """Functions see Spark's types, also where the engine's say less of what cannot be NULL."""
    text = arrow(lambda x: repr(x), "string")
    # the compiled code of 4.2 makes 1 of NULL + 1 in lambdas below Arrow-optimized functions, and NULL if it is interpreted
    computed = [e for e in COMPUTED if SPARK_VERSION != (4, 2) or "->" not in e]
    check(nested.select("id", *(text(F.expr(e)).alias(f"v{i}") for i, e in enumerate(computed))))
    columns = [F.expr(e).alias(f"c{i}") for i, e in enumerate(COMPUTED)]
    check(nested.select(*columns).mapInArrow(lambda bs: (pa.RecordBatch.from_pydict({"c": [b.schema.to_string()]}) for b in bs), "c string").distinct())  # fmt: skip


def test_results_at_every_place(nested: DataFrame) -> None:
    lists = plain(lambda x: [x, None, x + 1] if x % 4 else None, "array<bigint>")("id")
    structs = plain(lambda x: (x % 5, str(x % 3)) if x % 4 else None, "struct<a:bigint,b:string>")("id")
    maps = arrow(lambda x: {"a": x, str(x): None}, "map<string,bigint>")("id")
    made = nested.select("id", "p", lists.alias("l"), structs.alias("s"), maps.alias("m"))
    check(made.select("id", F.expr("l[0]"), "s.a", F.expr("m['a']"), F.size("l"), F.map_keys("m")))
    check(made.select("p", F.explode("l").alias("e")).groupBy("p").agg(F.sum("e")))
    check(made.groupBy("s").agg(F.count("*"), F.max("id")))
    check(made.orderBy("s", "id").limit(9))
    check(made.select("id", plain(lambda *x: repr(x), "string")("l", "s").alias("v")))
    check(made.select("id", arrow(lambda *x: repr(x), "string")("l", "s", "m").alias("v")))


def test_the_time_zone_of_a_session(nested: DataFrame, spark: SparkSession) -> None:
    with settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        for kind in (plain, arrow):
            text = kind(lambda *x: repr(x), "string")("times", "structs", "kinds")
            same = (kind(lambda x: x, NESTED[name])(name).alias(name) for name in ("times", "structs"))
            check(nested.select("id", text.alias("v"), *same))
        returns = f"times {NESTED['times']}, structs {NESTED['structs']}"
        check(nested.select("times", "structs").mapInPandas(lambda frames: frames, returns))
        check(nested.select("times", "structs").mapInArrow(lambda batches: batches, returns))


def test_binary_values_as_bytearrays(nested: DataFrame, spark: SparkSession) -> None:
    with settings(spark, {"spark.sql.execution.pyspark.binaryAsBytes": "false"}):
        for kind in (plain, arrow):
            text = kind(described, "string")
            check(nested.select("id", text("kinds").alias("v"), text("bytes").alias("w")))


def test_maps_of_pickled_functions_fall_back(nested: DataFrame) -> None:
    """Maps pass through Java's HashMap on their way to pickled functions and back, which shows in their order."""
    text = plain(lambda x: repr(list(x.items()) if isinstance(x, dict) else x), "string")
    made = plain(lambda x: {f"k{x % 3}": x, "b": None, "a": 1} if x % 4 else None, "map<string,bigint>")
    for value in (text("counts"), text("lists"), text("mixed"), made("id")):
        query = nested.select("id", value.alias("v"))
        explained = kq.explain(query)
        assert any("map<" in reason for _, reason in explained.reasons), explained.reasons
        check(query, whole=False)


class Thing:
    def __init__(self) -> None:
        self.a = 1
        self.b = "x"


# What pickled functions may give for what is announced, without Spark running the query again.
GIVEN: dict[str, list[Any]] = {
    "array<int>": [["1"], [1.5], [1, "a", None, True, 2.5], (1, 2), (), "ab", 5, [1 << 40, 1 << 70], None],
    "array<double>": [[1, 1.5, float("nan"), -0.0, Decimal(1)], 1.5, []],
    "array<binary>": [[b"a\xff", bytearray(b"a\xff"), "ä", 5, None]],
    "array<decimal(9,2)>": [[Decimal("1.005"), Decimal("-12.344"), 5, None, "x"]],
    "array<string>": [["a", 1, True, None]],
    STRUCT: [Row(a=1, b="x"), (1, "x"), [1, "x"], {"b": "x", "a": 1}, {"a": 1}, {"a": 1, "c": 3}, Thing(), Row(b="x", a=1), (None, None), ("x", 1), None],
    f"array<{STRUCT}>": [[Row(a=1, b="x"), None, (1, "x"), {"a": 1}], []],
    "struct<d:date,t:array<timestamp>>": [(datetime.date(2020, 1, 1), [datetime.datetime(1970, 1, 1, 0, 0, 1), None]), (None, None)],
    "timestamp": [datetime.datetime(1970, 1, 1, 0, 0, 5), datetime.datetime(2020, 7, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=5))), None],
    "timestamp_ntz": [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)],
}  # fmt: skip


@pytest.mark.parametrize("returns", GIVEN)
def test_values_of_other_types_than_announced(nested: DataFrame, returns: str) -> None:
    values = GIVEN[returns]
    give = plain(lambda i: values[i % len(values)], returns)
    check(nested.where("id < 30").select("id", give("id").alias("v")))


STRICT = StructType([StructField("a", IntegerType(), False)])
# Functions whose results only Spark can convert: it runs the query again.
UNSURE: dict[str, tuple[Any, Any]] = {
    "struct of too few": (STRUCT, (1,)),
    "struct of too many": (STRUCT, (1, "x", 2)),
    "struct of a number": (STRUCT, 5),
    "NULL element": (ArrayType(IntegerType(), False), [1, None]),
    "NULL field": (STRICT, (None,)),
    "array of numpy": ("array<int>", np.array([1, 2])),
    "numbers of numpy": ("array<int>", [np.int64(3)]),
    "row as an array": ("array<int>", Row(a=1)),
    "set": ("array<int>", {1}),
    "dictionary as an array": ("array<int>", {"a": 1}),
    "bytes as an array": ("array<tinyint>", b"ab"),
    "list as a string": ("string", ["a", 1]),
    "bytes as a string": ("string", b"ab"),
}


@pytest.mark.parametrize("case", UNSURE)
@pytest.mark.parametrize("kind", [plain, pytest.param(arrow, marks=exhaustive)])
def test_values_of_which_only_spark_knows(nested: DataFrame, case: str, kind: Any) -> None:
    returns, value = UNSURE[case]
    give = kind(lambda x: value if x % 3 else None, returns)
    check_answers(nested.where("id < 6").select("id", give("id").alias("v")))


ARRAYS: dict[str, tuple[pa.Array, str]] = {
    "elements of another name": (pa.array([[1, None]]), "array<bigint>"),
    "fields of another name": (pa.array([{"x": 1}]), "struct<a:bigint>"),
    "fields in another order": (pa.array([{"b": 1, "a": 2}]), "struct<a:bigint,b:bigint>"),
    "no NULLs": (pa.array([[1]], pa.list_(pa.field("element", pa.int64(), False))), "array<bigint>"),
    "a key twice": (pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())), "map<string,bigint>"),
    "narrow elements": (pa.array([[1]], pa.list_(pa.int32())), "array<bigint>"),
    "large lists": (pa.array([["a"]], pa.large_list(pa.large_string())), "array<string>"),
    "another zone": (pa.array([[1]], pa.list_(pa.timestamp("us", "Asia/Tokyo"))), "array<timestamp>"),
    "no zone": (pa.array([[1]], pa.list_(pa.timestamp("us"))), "array<timestamp>"),
    "nanoseconds": (pa.array([[1]], pa.list_(pa.timestamp("ns", "UTC"))), "array<timestamp>"),
    "milliseconds": (pa.array([1], pa.duration("ms")), "interval day to second"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_arrow_results_of_other_types_than_announced(nested: DataFrame, case: str) -> None:
    array, returns = ARRAYS[case]
    given = pa.RecordBatch.from_arrays([array], ["v"])
    check_answers(nested.select("id").mapInArrow(lambda batches: (given for _ in batches), f"v {returns}"))


DECLINED: dict[str, tuple[Callable[[DataFrame], Any], str]] = {
    "maps": (lambda rows: plain(lambda x: {"a": x}, "map<string,bigint>")("id"), "map<string,bigint>"),
    "intervals": (lambda rows: plain(str, "string")(F.expr("make_ym_interval(CAST(id AS int), 1)")), "interval year to month"),
    "months": (lambda rows: plain(lambda x: None, "array<interval year to month>")("id"), "inside of arrays"),
    "units": (lambda rows: arrow(lambda x: None, "array<interval hour to minute>")("id"), "other units"),
    "names": (lambda rows: arrow(str, "string")(F.expr("struct(id AS a, p AS a)")), "struct<a:bigint,a:string>"),
}  # fmt: skip


@pytest.mark.parametrize("case", DECLINED)
def test_what_stays_with_spark(nested: DataFrame, case: str) -> None:
    call, reason = DECLINED[case]
    query = nested.select("p", call(nested).alias("v"))
    explained = kq.explain(query.groupBy("p").count().join(query, "p"))
    assert any(reason in said for _, said in explained.reasons), explained.reasons
