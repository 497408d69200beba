"""What every test may ask for: one Spark session for the whole run, TPC-H and taxi data."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import hypothesis
import pyspark
import pytest

from benchmarks import taxi, tpch
from kquery_spark.config.spark_settings import configure
from kquery_spark.fuzz.settings import UNCOMPILED
from kquery_spark.fuzz.settings import applied as settings
from kquery_spark.kernels.compiled import AGGREGATE_LOOPS, FILE_LOOPS, JSON_LOOPS, VARIANT_LOOPS
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.plan.plan_facts import Facts
from tests.sampling import mark_cases_beyond_sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A busy machine can pause a test for any length of time, so the examples of Hypothesis have no time limit.
hypothesis.settings.register_profile("kquery_spark", deadline=None)
hypothesis.settings.load_profile("kquery_spark")

ROOT = Path(__file__).parents[1]
#: Cases beyond the sample that ``make check`` runs; ``make test-all`` runs them, too.
exhaustive = pytest.mark.exhaustive

SPARK_VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))
#: Spark answers some expressions otherwise then; the engine gives the answers of 4.3.
SPARK_BEFORE_4_3 = SPARK_VERSION < (4, 3)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--table-format", help="Run tests/table_formats in a session with this format's JARs.")
    parser.addoption("--write-fixtures", action="store_true", help="Write the plans of tests/optimizer anew.")


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.option.keyword:  # -k may ask for cases beyond the sample
        mark_cases_beyond_sample(items)


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


@pytest.fixture(scope="session")
def loops() -> None:
    """Compiles the loops unless they are cached, so that functions that need them do not fall back to Spark."""
    JSON_LOOPS.compile_now()
    AGGREGATE_LOOPS.compile_now()
    VARIANT_LOOPS.compile_now()


@pytest.fixture(scope="session")
def kernels() -> ModuleType:
    """The compiled loops that read files."""
    compiled = FILE_LOOPS.compile_now()
    assert compiled is not None
    return compiled


@pytest.fixture(scope="session")
def jvm(spark: SparkSession) -> Jvm:
    """The session's JVM, as the bridge sees it."""
    return Jvm(spark.sparkContext._gateway)


@pytest.fixture(scope="session")
def fetch(spark: SparkSession, jvm: Jvm) -> Callable[[Any], Facts]:
    """Facts of the optimized plan of a query or a DataFrame."""

    def facts(query: Any) -> Facts:
        frame = spark.sql(query) if isinstance(query, str) else query
        return Facts(jvm, frame._jdf.queryExecution().optimizedPlan())

    return facts


@pytest.fixture(scope="session")
def rows_of_numbers(spark: SparkSession) -> DataFrame:
    """A column of each common type, in rows that the optimizer cannot know."""
    frame = spark.range(100).selectExpr(
        "id",
        "cast(id as int) i",
        "cast(id as double) d",
        "cast(id as decimal(7,2)) m",
        "cast(id as string) s",
        "date_add(date'2020-01-01', cast(id as int)) day",
        "array(id) ids",
    )
    return frame.localCheckpoint()


@pytest.fixture
def numbers(rows_of_numbers: DataFrame) -> Iterator[str]:
    """The view of ``rows_of_numbers``."""
    rows_of_numbers.createOrReplaceTempView("numbers")
    yield "numbers"
    rows_of_numbers.sparkSession.catalog.dropTempView("numbers")


def uncompiled(session: SparkSession) -> contextlib.AbstractContextManager[None]:
    """Spark interprets its expressions: the same answers, without compiling classes that run over a few rows."""
    return settings(session, UNCOMPILED)


@pytest.fixture(scope="session")
def tpch_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TPC-H data of scale factor 0.01: ``<dir>/<table>.parquet`` for the eight tables."""
    return tpch.generate(tmp_path_factory.mktemp("tpch"), scale=0.01)


@pytest.fixture(scope="session")
def taxi_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Taxi data, 24,000 trips: ``<dir>/parquet/year=2019/month=N/`` and ``<dir>/csv/year=2019/month=N/``."""
    return taxi.generate(tmp_path_factory.mktemp("taxi"), rows=24_000)
