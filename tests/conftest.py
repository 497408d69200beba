"""What every test may ask for: one Spark session for the whole run, TPC-H and taxi data."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from benchmarks import taxi, tpch
from kquery_spark.config.spark_settings import configure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
#: Spark answers some expressions otherwise then; the engine gives the answers of 4.3.
SPARK_BEFORE_4_3 = tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 3)


def worker_environment() -> dict[str, str]:
    """Environment for a JVM whose Python workers must find this interpreter and this source tree."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(paths),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # thousands of queries run once each: the second compiler would take more time than it saves
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of the run: local[2], two shuffle partitions, the engine's settings, UTC."""
    from pyspark.sql import SparkSession

    os.environ.update(worker_environment())
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = (
        configure(SparkSession.builder)
        .master("local[2]")
        .appName("kquery_spark tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        # small as their data is, queries are to run in workers; what the driver does has tests of its own
        .config("spark.kquery.driverBytes", "0")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@contextlib.contextmanager
def settings(session: SparkSession, given: dict[str, str]) -> Iterator[None]:
    """A session with other settings for a while."""
    before = {name: session.conf.get(name, None) for name in given}
    for name, value in given.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            session.conf.unset(name) if old is None else session.conf.set(name, old)


@contextlib.contextmanager
def uncompiled(session: SparkSession) -> Iterator[None]:
    """Spark interprets its expressions: the same answers, without compiling classes that run over a few rows."""
    with settings(
        session, {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    ):
        yield


@pytest.fixture(scope="session")
def tpch_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TPC-H data of scale factor 0.01: ``<dir>/<table>.parquet`` for the eight tables."""
    return tpch.generate(tmp_path_factory.mktemp("tpch"), scale=0.01)


@pytest.fixture(scope="session")
def taxi_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Taxi data, 24,000 trips: ``<dir>/parquet/year=2019/month=N/`` and ``<dir>/csv/year=2019/month=N/``."""
    return taxi.generate(tmp_path_factory.mktemp("taxi"), rows=24_000)
