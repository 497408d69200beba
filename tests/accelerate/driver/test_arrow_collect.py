"""All rows collected to the driver as Arrow: for queries that only pass them on, too, where they are many and strings short."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.context import on_spark as spark_context
from kquery_spark.spark_bridge.session.bridge import get_bridge
from tests.conftest import settings

ROWS = 600_000


@pytest.fixture(scope="module")
def large(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    directory: Path = tmp_path_factory.mktemp("large")
    random = np.random.default_rng(29)
    columns = {f"c{i}": random.integers(0, 2**62, ROWS) for i in range(8)}
    pq.write_table(
        pa.table({"n": np.arange(ROWS), **columns}), directory / "numbers.parquet", row_group_size=40_000
    )
    strings = [
        f"{i} " + "words of a long remark that goes on and on " * 4 for i in random.permutation(ROWS // 4)
    ]
    pq.write_table(
        pa.table({"t": strings, "n": np.arange(ROWS // 4)}), directory / "strings.parquet", compression="none"
    )
    for name in ("numbers", "strings"):
        spark.read.parquet(str(directory / f"{name}.parquet")).createOrReplaceTempView(f"large_{name}")
    return spark


@pytest.fixture(autouse=True)
def with_workers(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test begin as if a query had run in the session's Python workers."""
    monkeypatch.setattr(get_bridge(spark), "has_workers", True)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM large_numbers",
        "SELECT n, c1, c2 % 7 AS c, c3, c4, c5, c6, c7 FROM large_numbers",
        "SELECT * FROM large_numbers WHERE c1 % 1000 = 7",  # Spark decodes all columns
        "SELECT n, c1 FROM large_numbers",
    ],
)
def test_rows_are_collected_in_the_order_of_the_file(large: SparkSession, query: str) -> None:
    frame = large.sql(query)
    fast: Any = kquery_plan(frame)
    assert fast is not frame
    explained = kq.explain(frame)
    assert explained.accelerated and "receives them as Arrow" in str(explained)
    table = fast.toArrow()
    assert table.equals(frame.toArrow().sort_by("n"))
    assert (np.diff(table["n"].to_numpy()) > 0).all()
    assert fast.count() == table.num_rows
    assert fast.take(3) == frame.take(3)


def test_workers_are_not_started_only_to_collect_rows_as_arrow(
    large: SparkSession,
) -> None:
    frame = large.table("large_numbers")
    bridge = get_bridge(large)
    bridge.has_workers = False
    assert kquery_plan(frame) is frame
    assert "as Arrow" not in str(kq.explain(frame))
    with settings(large, {"spark.kquery.cost.workerStartSeconds": "0.001"}):
        fast: Any = kquery_plan(frame)
    assert fast is not frame
    assert not bridge.has_workers
    fast.toPandas()
    assert bridge.has_workers
    assert kquery_plan(frame) is not frame


def test_what_is_made_of_them_is_sparks(large: SparkSession, tmp_path: Path) -> None:
    frame = large.sql("SELECT * FROM large_numbers WHERE n < 1000 OR c1 < 0")
    fast: Any = kquery_plan(large.table("large_numbers"))
    fast.where("n < 1000 OR c1 < 0").write.parquet(str(tmp_path / "out"))
    assert large.read.parquet(str(tmp_path / "out")).orderBy("n").collect() == frame.orderBy("n").collect()
    assert "MapInArrow" not in str(fast.where("n < 5")._jdf.queryExecution().optimizedPlan())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM large_strings",
        "SELECT * FROM large_numbers LIMIT 300000",
        "SELECT n FROM large_numbers",
        "SELECT * FROM large_numbers WHERE n = 17",
        "SELECT * FROM large_strings WHERE n % 100 = 7",
    ],
)
def test_long_strings_and_few_values_fall_back_to_spark(large: SparkSession, query: str) -> None:
    frame = large.sql(query)
    assert kquery_plan(frame) is frame
    assert not kq.explain(frame).accelerated


def test_pieces_of_many_sizes(large: SparkSession) -> None:
    """Dictionaries that grow with the rows, batches of few rows, and none."""
    for query in (
        "SELECT n, concat('customer ', n % 50000) AS s, t FROM large_strings",
        "SELECT n, row_number() OVER (PARTITION BY n % 1000 ORDER BY n) AS r, t FROM large_strings",
        "SELECT n, t FROM large_strings WHERE n < 0",
    ):
        frame = large.sql(query)
        fast: Any = kquery_plan(frame, when="always", fallback="error")
        assert fast._kquery.placement.spark._payloads is not None
        actual, expected = fast.toArrow(), frame.toArrow()
        assert actual.schema == expected.schema
        assert actual.sort_by("n").equals(expected.sort_by("n"))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM numbers ORDER BY c0",
        "SELECT n % 10 AS k, count(*) AS n, min(c1) AS least FROM numbers GROUP BY n % 10 ORDER BY k",
        "SELECT n, n, c2 FROM numbers WHERE n < 0",
        "SELECT n, concat('customer ', n % 50000) AS s, t FROM strings ORDER BY s, n LIMIT 1000",
    ],
)
def test_a_context_on_spark_collects_its_rows_as_arrow(
    large: SparkSession, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = kq.ExecutionContext(large)
    for name in ("numbers", "strings"):
        context.register_parquet(name, large.table(f"large_{name}").inputFiles()[0].removeprefix("file:"))
    own = context.sql(query).to_arrow()
    monkeypatch.setattr(spark_context, "payload_frame", None)  # which no query of rows in the driver asks for
    with pytest.raises(TypeError):
        context.sql(query).to_arrow()
    large.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        by_spark = context.sql(query).to_arrow()
    finally:
        large.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    assert by_spark.cast(own.schema).equals(own)
    expected = large.sql(query.replace("FROM ", "FROM large_")).toArrow()
    assert own.schema == expected.schema and own.equals(expected)


def test_more_than_spark_lets_the_driver_have_comes_by_rows_or_not_at_all(large: SparkSession) -> None:
    context = kq.ExecutionContext(large)
    directory = large.table("large_numbers").inputFiles()[0].removeprefix("file:")
    context.register_parquet("numbers", directory)
    query = context.sql("SELECT * FROM numbers")
    limit = large.conf.get("spark.driver.maxResultSize", "1g")
    large.sparkContext._jsc.sc().conf().set("spark.driver.maxResultSize", "1m")
    try:
        with pytest.raises(Exception, match=r"spark\.driver\.maxResultSize"):
            query.to_arrow()
    finally:
        large.sparkContext._jsc.sc().conf().set("spark.driver.maxResultSize", limit)


def test_a_user_can_interrupt_it(large: SparkSession) -> None:
    """The query belongs to a copy of the session, whose jobs the session would not know."""
    pairs = "large_numbers AS a JOIN large_numbers AS b ON a.c0 % 100 = b.c0 % 100"
    frame = large.sql(f"SELECT max(a.c1 % 1000 + b.c2 % 1000) AS m FROM {pairs}")
    fast = frame.transform(lambda f: kquery_plan(f, when="always"))
    failures: list[BaseException] = []

    def run() -> None:
        try:
            fast.collect()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    interrupted: list[str] = []
    give_up = time.monotonic() + 60
    while not interrupted and time.monotonic() < give_up:
        time.sleep(0.2)
        interrupted = large.interruptAll()
    thread.join(60)
    assert interrupted and not thread.is_alive()
    assert "cancelled" in str(failures[0])


@pytest.mark.parametrize("large_types", ["false", "true"])
@pytest.mark.parametrize("rows", ["0", "-1"])
def test_batches_without_a_limit(large: SparkSession, rows: str, large_types: str) -> None:
    """PySpark's ``createDataFrame`` fails without a limit, but actions on nested values and ``show`` need it."""
    frame = large.sql(
        "SELECT n % 5 AS k, max(struct(n, 'a')) AS last, max(timestamp_seconds(n)) AS at, collect_set(n % 5) AS of_5 "
        "FROM large_numbers WHERE n < 100 GROUP BY n % 5 ORDER BY k"
    )
    limits = {"spark.sql.execution.arrow.maxRecordsPerBatch": rows}
    with settings(large, {**limits, "spark.sql.execution.arrow.useLargeVarTypes": large_types}):
        fast = frame.transform(kquery_plan, when="always")
        assert fast.collect() == frame.collect()
        assert fast.tail(2) == frame.tail(2)
        assert fast._show_string(3) == frame._show_string(3)  # type: ignore[attr-defined]
        none = frame.where("k > 5")
        assert none.transform(kquery_plan, when="always").collect() == []
        context = kq.ExecutionContext(large)
        context.register_arrow("words", pa.table({"word": ["a", "b", "a"]}))
        assert context.sql("SELECT word, count(*) AS n FROM words GROUP BY word ORDER BY word").collect() == [
            {"word": "a", "n": 2},
            {"word": "b", "n": 1},
        ]
