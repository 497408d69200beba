"""Python table functions in the engine: of rows, of one row, of the partitions of a table; each type, errors, what stays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udtf
from pyspark.sql.types import IntegerType, LongType, StructType

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.errors import FallbackWarning
from tests.accelerate.python.python_functions import NESTED, TYPES, check, check_answers, shown
from tests.conftest import SPARK_VERSION, settings

with_partitions = pytest.mark.skipif(SPARK_VERSION < (4, 0), reason="partitions of tables are of 4.0")
with_batches = pytest.mark.skipif(SPARK_VERSION < (4, 1), reason="arrow_udtf is of 4.1")
KINDS = {"pickled": False, "arrow": True}


class Repeat:
    """Numbers below the first argument, beside the second one's text."""

    prefix = "v"

    def eval(self, n: int, x: object = 2) -> Iterator[tuple[int, str]]:
        for i in range(n or 0):
            yield i, self.shown(x)

    def shown(self, x: object) -> str:
        return f"{self.prefix}{x!r}"


class Count:
    """The rows of a partition, their number and their keys, in the end."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def eval(self, row: Any, added: int = 0) -> None:
        self.rows.append(f"{row!r} {added}")

    def terminate(self) -> Iterator[tuple[int, str]]:
        yield len(self.rows), " ".join(self.rows)


class Number:
    """The place of each row in its partition."""

    def __init__(self) -> None:
        self.count = 0

    def eval(self, row: Any) -> Iterator[tuple[int, str]]:
        self.count += 1
        yield self.count, str(row["id"])


@pytest.fixture(params=KINDS)
def register(request: pytest.FixtureRequest, spark: SparkSession) -> Callable[..., None]:
    """Registers a class as the table function ``f``."""

    def registered(handler: type, returns: str) -> None:
        spark.udtf.register("f", udtf(handler, returnType=returns, useArrow=KINDS[request.param]))

    return registered


@pytest.fixture(scope="module")
def few(rows: DataFrame) -> str:
    rows.where("id < 60").createOrReplaceTempView("few")
    return "few"


def test_rows_beside_their_results(register: Callable[..., None], spark: SparkSession, few: str) -> None:
    register(Repeat, "i int, s string")
    for query in (
        "SELECT id, i, s FROM few, LATERAL f(byte % 4, string)",
        "SELECT id, p, double, i FROM few, LATERAL f(CAST(id % 3 AS int)) WHERE i > 0 AND id > 7",
        "SELECT p, count(*), max(s) FROM few, LATERAL f(byte % 4, id + 1) GROUP BY p",
        "SELECT few.id, i FROM few LEFT JOIN LATERAL f(byte % 4) ON i > 1",
        "SELECT s FROM few, LATERAL f(byte % 4)",
        "SELECT a.i, b.s FROM few, LATERAL f(byte % 3) a, LATERAL f(a.i + 1, p) b",
        "SELECT i FROM few, LATERAL f(0, id)",
        "SELECT id, i FROM (SELECT * FROM few WHERE id < 0), LATERAL f(byte)",
    ):
        check(spark.sql(query))


def test_one_row(register: Callable[..., None], spark: SparkSession) -> None:
    register(Repeat, "i int, s string")
    check(spark.sql("SELECT i, s FROM f(3, 'x')"))
    check(spark.sql("SELECT s, count(*) FROM f(3) GROUP BY s"))
    if SPARK_VERSION >= (4, 0):
        check(spark.sql("SELECT * FROM f(x => 'x', n => 2)"))
    register(Count, "n int, s string")
    check(spark.sql("SELECT * FROM f('x')"))


@with_partitions
def test_partitions_of_a_table(register: Callable[..., None], spark: SparkSession, few: str) -> None:
    rows = "TABLE(SELECT id, p, int FROM few)"
    queries = [
        f"SELECT * FROM f({rows} PARTITION BY p ORDER BY id)",
        f"SELECT * FROM f({rows} PARTITION BY (p, id % 2) ORDER BY (int DESC, id))",
        f"SELECT n, count(*) FROM f({rows} PARTITION BY id % 7 ORDER BY id) GROUP BY n",
        f"SELECT * FROM f({rows} WITH SINGLE PARTITION ORDER BY id)",
        "SELECT * FROM f(TABLE(SELECT id FROM few WHERE id < 0) PARTITION BY id)",
    ]
    for handler in (Count, Number):
        register(handler, "n int, s string")
        for query in queries:
            check(spark.sql(query))
    register(Count, "n int, s string")
    check_answers(spark.sql("SELECT * FROM f(TABLE(SELECT id FROM few WHERE id < 0) WITH SINGLE PARTITION)"))


@with_partitions
def test_skipped_rows(register: Callable[..., None], spark: SparkSession, few: str) -> None:
    from pyspark.sql.functions import SkipRestOfInputTableException

    class First:
        def eval(self, row: Any) -> Iterator[tuple[int]]:
            yield (row["id"],)
            if row["id"] > 20:
                raise SkipRestOfInputTableException("enough")

    register(First, "id bigint")
    table = "TABLE(SELECT id, p FROM few)"
    check(spark.sql(f"SELECT * FROM f({table} PARTITION BY p ORDER BY id)"))
    check(spark.sql(f"SELECT * FROM f({table} WITH SINGLE PARTITION ORDER BY id)"))
    query = spark.sql(f"SELECT * FROM f({table})")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        assert shown(query.transform(kquery_plan, when="always").collect()) == shown(query.collect())


@with_partitions
def test_what_analyze_says(spark: SparkSession, few: str) -> None:
    from pyspark.sql.functions import AnalyzeArgument, AnalyzeResult, OrderingColumn, PartitioningColumn

    class Analyzed:
        @staticmethod
        def analyze(row: AnalyzeArgument) -> AnalyzeResult:
            return AnalyzeResult(
                StructType().add("first", LongType()).add("n", IntegerType()),
                partitionBy=[PartitioningColumn("p")],
                orderBy=[OrderingColumn("id", ascending=False)],
            )

        def __init__(self, result: AnalyzeResult) -> None:
            self.n, self.first, self.names = 0, 0, result.schema.names

        def eval(self, row: Any) -> None:
            self.n += 1
            self.first = self.first or row["id"]

        def terminate(self) -> Iterator[tuple[int, int]]:
            yield self.first, self.n + len(self.names)

    for arrow in KINDS.values():
        spark.udtf.register("g", udtf(Analyzed, useArrow=arrow))
        check(spark.sql("SELECT * FROM g(TABLE(SELECT id, p FROM few))"))


@with_batches
def test_batches_of_rows(spark: SparkSession, few: str) -> None:
    from pyspark.sql.functions import arrow_udtf

    class Batches:
        def eval(self, rows: Any) -> Iterator[pa.Table]:
            yield pa.table({"n": pa.array([len(rows)], pa.int64()), "s": [str(rows)]})

    spark.udtf.register("g", arrow_udtf(Batches, returnType="n bigint, s string"))
    check(spark.sql("SELECT * FROM g(5)"))
    with settings(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": "25"}):
        check(
            spark.sql(
                "SELECT * FROM g(TABLE(SELECT id, p, double FROM few) WITH SINGLE PARTITION ORDER BY id)"
            )
        )


def test_values_of_each_type(register: Callable[..., None], spark: SparkSession, few: str) -> None:
    class Same:
        def eval(self, *values: object) -> Iterator[tuple[object, ...]]:
            yield (*values, " ".join(f"{type(v).__name__} {v!r}" for v in values))
            yield (None,) * (len(values) + 1)

    types = dict(TYPES)
    register(Same, ", ".join(f"{name}_ {dtype}" for name, dtype in types.items()) + ", text string")
    check(spark.sql(f"SELECT id, t.* FROM few, LATERAL f({', '.join(types)}) t"))


def test_nested_values(register: Callable[..., None], nested: DataFrame, spark: SparkSession) -> None:
    class Same:
        def eval(self, *values: object) -> Iterator[tuple[object, ...]]:
            yield (*values, repr(values))

    nested.where("id < 30").createOrReplaceTempView("few_nested")
    register(Same, ", ".join(f"{name}_ {dtype}" for name, dtype in NESTED.items()) + ", text string")
    check_answers(spark.sql(f"SELECT id, t.* FROM few_nested, LATERAL f({', '.join(NESTED)}) t"))


GIVEN: dict[str, tuple[str, Any]] = {
    "nothing": ("a int", None),
    "no rows": ("a int", []),
    "a row of None": ("a int", [None]),
    "lists": ("a int, b int", [[1, 2]]),
    "rows of one value": ("a int", [3]),
    "too many": ("a int", [(1, 2)]),
    "too few": ("a int, b int", [(1,)]),
    "no iterable": ("a int", 5),
    "strings": ("a int", [("x",)]),
    "numbers": ("a string", [(5,)]),
    "NULL that is not to be": ("a int NOT NULL", [(None,)]),
    "dictionaries": ("a int", [{"a": 1}]),
    "large": ("a tinyint", [(300,)]),
}


@pytest.mark.parametrize("case", GIVEN)
def test_what_a_function_gives(
    register: Callable[..., None], spark: SparkSession, few: str, case: str
) -> None:
    returns, value = GIVEN[case]

    class Give:
        def eval(self, x: int) -> Any:
            return value

    try:
        register(Give, returns)
        query = spark.sql("SELECT id, t.* FROM few, LATERAL f(id) t WHERE id < 3")
    except Exception:
        pytest.skip("Spark does not take this return type")
    check_answers(query)


def test_errors_are_spark_s_own(register: Callable[..., None], spark: SparkSession, few: str) -> None:
    class Broken:
        def eval(self, x: int) -> Iterator[tuple[int]]:
            if x == 7:
                raise LookupError("seven")
            yield (x,)

    register(Broken, "a bigint")
    for query in ("SELECT id, a FROM few, LATERAL f(id)", "SELECT * FROM f(7)"):
        with pytest.raises(PythonException, match=r"(?s)seven") as ours:
            spark.sql(query).transform(kquery_plan, when="always").collect()
        assert "TaskError" not in str(ours.value)
        assert "LookupError" in str(ours.value)
    if SPARK_VERSION >= (4, 0):
        check_answers(spark.sql("SELECT a FROM few, LATERAL f(id, 5)"))


class Setting:
    def eval(self, x: int) -> Iterator[tuple[int]]:
        self.last = x
        yield (x,)


class RemembersRows:
    seen: list[int] = []  # noqa: RUF012

    def eval(self, x: int) -> Iterator[tuple[int]]:
        self.seen.append(x)
        yield (len(self.seen),)


class HandedOn:
    def eval(self, x: int) -> Iterator[tuple[int]]:
        setattr(self, "n", getattr(self, "n", 0) + 1)  # noqa: B010
        yield (self.n,)


class Above(Repeat):
    def eval(self, n: int) -> Iterator[tuple[int]]:  # type: ignore[override]
        yield from ((i,) for i, _ in super().eval(n))


class Ended:
    def eval(self, x: int) -> None:
        return None

    def terminate(self) -> Iterator[tuple[int]]:
        yield (1,)


DECLINED: dict[str, tuple[type, str]] = {
    "attributes": (Setting, "may keep state"),
    "members": (RemembersRows, "may keep state"),
    "handed on": (HandedOn, "may keep state"),
    "inherited": (Above, "may keep state"),
    "constructed": (Number, "may keep state"),
    "terminate": (Ended, "method terminate"),
}


def test_what_stays_with_spark(spark: SparkSession, few: str) -> None:
    for handler, reason in DECLINED.values():
        spark.udtf.register("g", udtf(handler, returnType="a int", useArrow=False))
        query = spark.sql("SELECT p, count(*) FROM few, LATERAL g(byte) GROUP BY p")
        explained = kq.explain(query)
        assert any(reason in said for _, said in explained.reasons), (handler, explained.reasons)
    if SPARK_VERSION >= (4, 0):
        spark.udtf.register("g", udtf(Count, returnType="n int, s string", useArrow=False))
        with settings(spark, {"spark.sql.adaptive.enabled": "false"}):
            query = spark.sql("SELECT count(*) FROM g(TABLE(few) PARTITION BY p)")
            assert any("without rows" in said for _, said in kq.explain(query).reasons)
        query = spark.sql("SELECT count(*) FROM g(TABLE(few) PARTITION BY double)")
        assert any("fractions" in said for _, said in kq.explain(query).reasons)
