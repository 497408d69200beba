"""Tables of Delta and Iceberg and files on S3 and HDFS, in a Spark session with their JARs: a process of its own runs these tests.

``tests/accelerate/test_table_formats.py`` starts it; ``KQUERY_TABLE_FORMAT=delta python -m pytest tests/table_formats`` does so by
hand. A JVM takes JARs when it starts, so the session of the other tests cannot run them.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyspark
import pytest

from kquery_spark.config.spark_settings import configure
from kquery_spark.fuzz.settings import UNCOMPILED
from tests.conftest import SPARK_VERSION, worker_environment
from tests.maven import Unreachable, artifact

FORMAT = os.environ.get("KQUERY_TABLE_FORMAT")
collect_ignore_glob = [] if FORMAT else ["test_*.py"]
if FORMAT:
    collect_ignore_glob = [
        f"test_{name}*.py" for name in ("delta", "iceberg", "s3", "hdfs") if name != FORMAT
    ]


@dataclass(frozen=True)
class Library:
    """A table format's JARs and settings for one release of Spark."""

    jars: tuple[str, ...]
    settings: dict[str, str]


DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # of tables of a few files; the default of 50 tasks takes seconds a statement
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "1000",
}
ICEBERG = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.ice.type": "hadoop",
}


S3 = {
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.access.key": "someone",
    "spark.hadoop.fs.s3a.secret.key": "a-secret-that-nothing-shows",
    "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
}


def _s3(hadoop: str, sdk: str, accelerator: str) -> Library:
    jars = (
        f"org.apache.hadoop:hadoop-aws:{hadoop}",
        f"software.amazon.awssdk:bundle:{sdk}",
        f"software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:{accelerator}",
    )
    return Library(jars, S3)


def _delta(scala: str, version: str) -> Library:
    jars = (f"io.delta:delta-spark_{scala}:{version}", f"io.delta:delta-storage:{version}")
    return Library(jars, DELTA)


def _iceberg(scala: str, version: str) -> Library:
    return Library((f"org.apache.iceberg:iceberg-spark-runtime-{scala}:{version}",), ICEBERG)


def _tables_on_hdfs() -> Library:
    delta, iceberg = _delta("4.1_2.13", "4.4.0"), _iceberg("4.1_2.13", "1.12.0")
    settings = DELTA | {
        "spark.sql.extensions": ",".join(library["spark.sql.extensions"] for library in (DELTA, ICEBERG)),
        "spark.sql.catalog.on_hdfs": ICEBERG["spark.sql.catalog.ice"],
        "spark.sql.catalog.on_hdfs.type": "hadoop",
        "spark.sql.catalog.on_hdfs.warehouse": "hdfs://minidfs-ns/iceberg",
    }
    return Library((*delta.jars, *iceberg.jars), settings)


# By format and release of Spark; releases for which there is no JAR yet have no entry.
LIBRARIES: dict[str, dict[tuple[int, ...], Library]] = {
    "delta": {
        (3, 5): _delta("2.12", "3.3.3"),
        (4, 0): _delta("2.13", "4.0.0"),
        (4, 1): _delta("4.1_2.13", "4.4.0"),
        (4, 2): _delta("4.2_2.13", "4.4.0"),
    },
    "s3": {(4, 3): _s3("3.5.0", "2.35.4", "1.3.1")},
    # the JAR of the cluster is none of Spark's
    "hdfs": {(3, 5): Library((), {}), (4, 1): _tables_on_hdfs(), (4, 3): Library((), {})},
    "iceberg": {
        (3, 5): _iceberg("3.5_2.12", "1.12.0"),
        (4, 0): _iceberg("4.0_2.13", "1.11.0"),
        (4, 1): _iceberg("4.1_2.13", "1.12.0"),
    },
}


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The address of an S3 server on this machine."""
    from tests.s3 import s3_server

    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A cluster of HDFS on this machine."""
    from tests.hdfs import hdfs_cluster

    try:
        with hdfs_cluster(tmp_path_factory.mktemp("hdfs")) as cluster:
            yield cluster
    except Unreachable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A session with the format's JARs; the tests are skipped where there are none for this Spark."""
    from pyspark.sql import SparkSession

    assert FORMAT is not None
    library = LIBRARIES[FORMAT].get(SPARK_VERSION)
    if library is None:
        pytest.skip(f"there is no JAR of {FORMAT} for Spark {pyspark.__version__}")
    try:
        jars = [artifact(coordinates) for coordinates in library.jars]
    except Unreachable as error:
        pytest.skip(str(error))
    assert all(jars), library.jars
    os.environ.update(worker_environment())
    builder = (
        configure(SparkSession.builder)
        .master("local[2]")
        .config("spark.jars", ",".join(map(str, jars)))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.catalog.ice.warehouse", str(tmp_path_factory.mktemp("ice")))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.kquery.driverBytes", "0")
    )
    for name, value in {**library.settings, **UNCOMPILED}.items():
        builder = builder.config(name, value)
    if FORMAT == "s3":
        endpoint = request.getfixturevalue("s3_endpoint")
        builder = builder.config("spark.hadoop.fs.s3a.endpoint", endpoint)
        builder = builder.config("spark.eventLog.enabled", "true").config(
            "spark.eventLog.dir", str(tmp_path_factory.mktemp("events"))
        )
    if FORMAT == "hdfs":
        for name, value in request.getfixturevalue("cluster").settings.items():
            builder = builder.config(f"spark.hadoop.{name}", value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


#: What the names of tables start with.
_NAMESPACES = {"delta": "", "iceberg": "ice.db."}
_numbers = itertools.count()


@pytest.fixture
def table(spark: Any) -> Iterator[Callable[..., str]]:
    """Makes tables of the format: a query of their rows, their properties and partitioning; gives the name."""
    assert FORMAT is not None
    made = []

    def make(query: str, *properties: str, partitioned: str = "", files: int = 2) -> str:
        name = f"{_NAMESPACES[FORMAT]}t{next(_numbers)}"
        made.append(name)
        clause = f"TBLPROPERTIES ({', '.join(properties)})" if properties else ""
        spark.sql(query).repartition(files).createOrReplaceTempView("rows_of_table")
        spark.sql(f"CREATE TABLE {name} USING {FORMAT} {partitioned} {clause} AS SELECT * FROM rows_of_table")
        return name

    yield make
    for name in made:
        spark.sql(f"DROP TABLE IF EXISTS {name}")
