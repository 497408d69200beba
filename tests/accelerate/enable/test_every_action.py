"""Every action, at every place where a query can run: the rows that PySpark gives, in the types in which it gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.spark_bridge.frames.pyspark_names import arrow_table
from tests.conftest import exhaustive, settings

#: Settings with which the query runs in the driver, or in tasks of Spark.
PLACES = {
    "driver": {"spark.kquery.driverBytes": "8m"},
    "tasks": {
        "spark.kquery.driverBytes": "0",
        "spark.kquery.smallBytes": "0",
        "spark.kquery.splitBytes": "1",
        "spark.kquery.broadcastBytes": "0",
        "spark.kquery.shufflePartitions": "3",
    },
}
ROWS = """
SELECT id, IF(id % 5 = 0, NULL, id % 4) AS k, CAST(id * 1.25 AS DECIMAL(9, 2)) AS m, id / 3D AS d, CAST(id / 8 AS FLOAT) AS f,
  concat('s', id % 9) AS s, date_add(DATE'2020-01-30', CAST(id AS INT)) AS day, CAST(concat('b', id) AS BINARY) AS b,
  TIMESTAMP'2020-01-01 00:00:00' + make_dt_interval(CAST(id AS INT), 5, 6, 7.5) AS ts,
  CAST(TIMESTAMP'2020-01-01 00:00:00' + make_dt_interval(CAST(id AS INT), 5, 6, 7.5) AS TIMESTAMP_NTZ) AS ntz,
  IF(id % 6 = 0, NULL, array(CAST(id AS INT), NULL)) AS a, named_struct('x', id, 'y', concat('y', id % 3)) AS st
FROM RANGE(40)
"""
QUERIES = {
    "flat": "SELECT id, k, m, d, f, s, day, ts FROM actions WHERE id < 20 ORDER BY id",
    "nested": "SELECT id, b, ntz, a, st FROM actions WHERE id < 20 ORDER BY id",
    "grouped": "SELECT k, sum(m) AS m, max(ts) AS ts, count(*) AS n FROM actions GROUP BY k ORDER BY k",
    "empty": "SELECT id, k, s FROM actions WHERE id < 0 ORDER BY id",
}


def _to_pandas(frame: Any) -> Any:
    table = frame.toPandas()
    return [str(d) for d in table.dtypes], table.astype(str).values.tolist()


def _to_arrow(frame: Any) -> Any:
    table: pa.Table = arrow_table(frame)
    return table.schema, table.to_pylist()


ACTIONS: dict[str, Callable[[Any], Any]] = {
    "collect": lambda frame: frame.collect(),
    "take": lambda frame: frame.take(3),
    "head": lambda frame: frame.head(2),
    "first": lambda frame: frame.first(),
    "tail": lambda frame: frame.tail(2),
    "count": lambda frame: frame.count(),
    "isEmpty": lambda frame: frame.isEmpty(),
    "toPandas": _to_pandas,
    "toArrow": _to_arrow,
    "toLocalIterator": lambda frame: list(frame.toLocalIterator()),
    "foreach": lambda frame: _counted(frame, lambda seen: frame.foreach(lambda _: seen.add(1))),
    "foreachPartition": lambda frame: _counted(
        frame, lambda seen: frame.foreachPartition(lambda rows: seen.add(len(list(rows))))
    ),
    "further": lambda frame: frame.limit(5).selectExpr("*").collect(),
    "schema": lambda frame: (frame.schema, frame.columns, frame.dtypes),
}


def _counted(frame: Any, run: Callable[[Any], None]) -> int:
    seen = frame.sparkSession.sparkContext.accumulator(0)
    run(seen)
    return int(seen.value)


@pytest.fixture(scope="module", autouse=True)
def rows(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A view of four Parquet files."""
    path = str(tmp_path_factory.mktemp("actions") / "rows")
    spark.sql(ROWS).repartition(4).write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("actions")
    yield
    spark.catalog.dropTempView("actions")


@pytest.mark.parametrize(
    ("query", "place"),
    [
        *((query, "driver") for query in QUERIES),
        *((query, "tasks") for query in ("nested", "empty")),
        *(pytest.param(query, "tasks", marks=exhaustive) for query in ("flat", "grouped")),
    ],
)
def test_an_action_gives_what_pyspark_gives(
    spark: Any, query: str, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with settings(spark, PLACES[place]):
        frame = spark.sql(QUERIES[query])
        fast = kq.kquery_plan(frame, when="always", fallback="error")
        for name, action in ACTIONS.items():
            assert action(fast) == action(frame), name
        for arguments in ((), (3, False), (2, True, True)):
            fast.show(*arguments)
            shown = capsys.readouterr().out
            frame.show(*arguments)
            assert shown == capsys.readouterr().out


@pytest.mark.parametrize("place", PLACES)
def test_writes(spark: Any, tmp_path: Path, place: str) -> None:
    with settings(spark, PLACES[place]):
        frame = spark.sql(QUERIES["flat"])
        fast = kq.kquery_plan(frame, when="always", fallback="error")
        for name in ("parquet", "orc", "json"):
            path = str(tmp_path / name)
            fast.write.mode("overwrite").format(name).save(path)
            written = spark.read.schema(frame.schema).format(name).load(path).orderBy("id")
            assert written.collect() == frame.collect()


def test_actions_of_an_enabled_session(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = {name: action(spark.sql(QUERIES["grouped"])) for name, action in ACTIONS.items()}
    kq.enable(spark, when="always", fallback="error")
    try:
        for name, action in ACTIONS.items():
            assert action(spark.sql(QUERIES["grouped"])) == expected[name], name
        spark.sql(QUERIES["grouped"]).show()
        assert "|" in capsys.readouterr().out
        spark.sql(QUERIES["grouped"]).write.parquet(str(tmp_path / "written"))
        assert spark.read.parquet(str(tmp_path / "written")).count() == expected["count"]
    finally:
        kq.disable(spark)
