"""The jobs of ``examples/`` give Spark's rows, and the engine runs them; each where its library is (``make examples``: all)."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

import kquery_spark as kq
from tests.conftest import ROOT, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DIRECTORY = ROOT / "examples"
FARES = "SELECT passenger_count, count(*) AS trips, max(fare_amount) AS highest FROM {} WHERE fare_amount > 0 GROUP BY ALL"


def example(name: str) -> ModuleType:
    """A script of the directory as a module; skips the test where a library that it imports is missing."""
    path = DIRECTORY / name
    for module in re.findall(r"^(?:from|import) (\w+)", path.read_text(), re.MULTILINE):
        pytest.importorskip(module)
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def trips(spark: SparkSession, taxi_dir: Path) -> str:
    return str(taxi_dir / "parquet")


@pytest.fixture
def expected(spark: SparkSession, trips: str) -> list[tuple[Any, ...]]:
    """Spark's own rows, NULL first."""
    return sorted(map(tuple, spark.sql(FARES.format(f"parquet.`{trips}`")).collect()), key=_key)


@pytest.fixture
def in_engine(spark: SparkSession) -> Iterator[list[kq.QueryEvent]]:
    """With ``kq.enable``: the actions that the engine ran to their end. What the libraries set in the session is undone."""
    events: list[kq.QueryEvent] = []
    remove = kq.on_query(lambda event: events.append(event) if _ran(event) else None)
    kq.enable(spark, when="always")
    set_by_ibis = {"spark.sql.session.timeZone": "UTC", "spark.sql.mapKeyDedupPolicy": "EXCEPTION"}
    try:
        with settings(spark, set_by_ibis):
            yield events
    finally:
        kq.disable(spark)
        remove()


def _ran(event: kq.QueryEvent) -> bool:
    return event.kind == "finished" and event.place != "spark" and event.failure is None


def _key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((value is not None, value) for value in row)


def test_arrow_readers(expected: list[tuple[Any, ...]], trips: str) -> None:
    for library, rows in example("arrow_readers.py").readers(trips).items():
        # pandas has NaN where a column of integers has NULL
        assert [tuple(None if v != v else v for v in row) for row in rows] == expected, library


def test_ibis(
    spark: SparkSession, expected: list[tuple[Any, ...]], trips: str, in_engine: list[kq.QueryEvent]
) -> None:
    table = example("ibis_job.py").report(spark, trips)
    assert sorted((tuple(row.values()) for row in table.to_pylist()), key=_key) == expected
    assert [event.action for event in in_engine] == ["toPandas"]


def test_sqlframe(expected: list[tuple[Any, ...]], trips: str, in_engine: list[kq.QueryEvent]) -> None:
    rows = example("sqlframe_job.py").report(trips)
    assert sorted(map(tuple, rows), key=_key) == expected
    assert [event.action for event in in_engine] == ["collect"]


def test_dbt(
    spark: SparkSession,
    expected: list[tuple[Any, ...]],
    trips: str,
    in_engine: list[kq.QueryEvent],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("dbt.adapters.spark")
    monkeypatch.chdir(tmp_path)
    try:
        assert example("dbt/run.py").build(trips, target=str(tmp_path / "target"))
        assert [event.action for event in in_engine].count("write") == 1
        rows = spark.table("kquery_example.fares").collect()
        assert sorted(map(tuple, rows), key=_key) == expected
    finally:
        spark.sql("DROP DATABASE IF EXISTS kquery_example CASCADE")
