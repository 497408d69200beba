"""Tables of Delta and Iceberg and files in object stores and on HDFS, in a Spark session with their JARs, in a process of its own.

``tests/accelerate/tables/test_table_formats.py`` starts it; ``pytest tests/table_formats --table-format=delta`` does so by hand. A JVM takes JARs when it starts, so the session of the other tests cannot run them.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyspark
import pytest

from kquery_spark.config.spark_settings import configure
from kquery_spark.fuzz.settings import UNCOMPILED
from tests.conftest import SPARK_VERSION, worker_environment
from tests.support.azure_storage import HOST as AZURE_HOST
from tests.support.azure_storage import KEY as AZURE_KEY
from tests.support.azure_storage import azure_server
from tests.support.google_storage import GoogleServer, google_server, key_file
from tests.support.https_proxy import HttpsProxy, https_proxy
from tests.support.maven import Unreachable, artifact

#: Object stores, whose tests look for secrets in the event log.
_STORES = ("s3", "gs", "abfs")
#: Test files start with ``test_`` and one of these names; the others run with every format.
_FORMATS = ("delta", "iceberg", "s3", "gs", "hadoop_gs", "abfs", "hdfs", "kerberos")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the tests of other formats, and all tests without ``--table-format``."""
    chosen = config.getoption("--table-format")
    others = [f"test_{name}" for name in _FORMATS if name != chosen]
    if collection_path.is_file() and collection_path.name.startswith("test_"):
        return chosen is None or collection_path.name.startswith(tuple(others)) or None
    return None


@pytest.fixture(scope="session")
def table_format(request: pytest.FixtureRequest) -> str:
    """The name of the format whose JARs the session has."""
    return str(request.config.getoption("--table-format"))


@dataclass(frozen=True)
class Library:
    """A table format's JARs (``group:artifact:version``, or with a classifier) and settings for one release of Spark."""

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


GS = {
    "spark.hadoop.fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
    "spark.hadoop.fs.gs.project.id": "a-project",
    "spark.hadoop.fs.gs.http.max.retry": "2",
}
# Release 2 of the connector has no fs.gs.auth.type.
_GS_WITHOUT_USER = {
    "2": {
        "spark.hadoop.fs.gs.auth.service.account.enable": "false",
        "spark.hadoop.fs.gs.auth.null.enable": "true",
    },
    "4": {"spark.hadoop.fs.gs.auth.type": "UNAUTHENTICATED"},
}
# Hadoop 3.5 has defaults with units, which the connector that Maven has does not read.
_GS_SIZES = {
    "spark.hadoop.fs.gs.block.size": str(64 << 20),
    "spark.hadoop.fs.gs.rewrite.max.chunk.size": str(512 << 20),
    "spark.hadoop.fs.gs.outputstream.buffer.size": str(8 << 20),
    "spark.hadoop.fs.gs.inputstream.inplace.seek.limit": str(8 << 20),
    "spark.hadoop.fs.gs.inputstream.min.range.request.size": str(2 << 20),
}
ABFS = {
    "spark.hadoop.fs.azure.always.use.https": "false",
    f"spark.hadoop.fs.azure.account.key.{AZURE_HOST}": AZURE_KEY,
    "spark.hadoop.fs.azure.account.hns.enabled": "false",
    # Azurite has the service of blobs only
    f"spark.hadoop.fs.azure.fns.account.service.type.{AZURE_HOST}": "BLOB",
    f"spark.hadoop.fs.azure.ingress.service.type.{AZURE_HOST}": "BLOB",
    "spark.hadoop.fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
    "spark.hadoop.fs.azure.io.retry.max.retries": "2",
}


def _gs(version: str, release: str, sizes: dict[str, str] | None = None) -> Library:
    jars = (f"com.google.cloud.bigdataoss:gcs-connector:{version}:shaded",)
    return Library(jars, {**GS, **_GS_WITHOUT_USER[release], **(sizes or {})})


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
    "gs": {
        (3, 5): _gs("hadoop3-2.2.26", "2"),
        (4, 1): _gs("4.0.3", "4"),
        (4, 3): _gs("4.0.3", "4", _GS_SIZES),
    },
    "hadoop_gs": {
        (4, 3): Library(
            ("org.apache.hadoop:hadoop-gcp:3.5.0",),
            # without credentials this connector fails with a NullPointerException
            {
                "spark.hadoop.fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
                "spark.hadoop.fs.gs.project.id": "a-project",
            },
        )
    },
    "abfs": {
        (4, 3): Library(
            ("org.apache.hadoop:hadoop-azure:3.5.0", "org.wildfly.openssl:wildfly-openssl:2.2.5.Final"), ABFS
        )
    },
    "s3": {(4, 3): _s3("3.5.0", "2.35.4", "1.3.1")},
    # the JAR of the cluster is none of Spark's
    "hdfs": {(3, 5): Library((), {}), (4, 1): _tables_on_hdfs(), (4, 3): Library((), {})},
    # each task logs in anew
    "kerberos": {
        release: Library((), {"spark.python.worker.reuse": "false"}) for release in ((3, 5), (4, 1), (4, 3))
    },
    "iceberg": {
        (3, 5): _iceberg("3.5_2.12", "1.12.0"),
        (4, 0): _iceberg("4.0_2.13", "1.11.0"),
        (4, 1): _iceberg("4.1_2.13", "1.12.0"),
    },
}


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The address of an S3 server on this machine."""
    from tests.support.s3 import s3_server

    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def google() -> Iterator[GoogleServer]:
    """A server of Google Cloud Storage on this machine."""
    with google_server() as server:
        yield server


@pytest.fixture(scope="session")
def google_proxy(google: GoogleServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsProxy]:
    """A proxy by which this server is Google's, to Java; Arrow asks it without one."""
    address = urlsplit(google.endpoint)
    assert address.hostname is not None and address.port is not None
    os.environ["CLOUD_STORAGE_EMULATOR_ENDPOINT"] = google.endpoint
    directory = tmp_path_factory.mktemp("proxy")
    hosts = ("storage.googleapis.com", "oauth2.googleapis.com")
    with https_proxy(hosts, (address.hostname, address.port), directory) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def azure_endpoint() -> Iterator[str]:
    """The address of Azurite on this machine; the tests are skipped where it is not installed."""
    with azure_server() as endpoint:
        yield endpoint


def _server_settings(request: pytest.FixtureRequest, table_format: str) -> dict[str, str]:
    """Return the settings with the address of the format's server, if it needs one."""
    if table_format == "hdfs":
        settings = request.getfixturevalue("cluster").settings
        return {f"spark.hadoop.{name}": value for name, value in settings.items()}
    if table_format == "kerberos":
        cluster = request.getfixturevalue("logged_in")
        return {"spark.driver.extraJavaOptions": f"-Djava.security.krb5.conf={cluster.realm.configuration}"}
    if table_format == "s3":
        return {"spark.hadoop.fs.s3a.endpoint": request.getfixturevalue("s3_endpoint")}
    if table_format == "gs":
        return {"spark.hadoop.fs.gs.storage.root.url": request.getfixturevalue("google").endpoint}
    if table_format == "hadoop_gs":
        return {
            "spark.driver.extraJavaOptions": request.getfixturevalue("google_proxy").java_options,
            "spark.hadoop.fs.gs.auth.service.account.json.keyfile": key_file(
                request.getfixturevalue("tmp_path_factory").mktemp("key")
            ),
        }
    if table_format == "abfs":
        endpoint = request.getfixturevalue("azure_endpoint")
        return {"spark.hadoop.fs.azure.abfs.endpoint": endpoint.removeprefix("http://")}
    return {}


@pytest.fixture(scope="session")
def cluster(table_format: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A cluster of HDFS on this machine."""
    from tests.support.hdfs import hdfs_cluster

    try:
        with hdfs_cluster(tmp_path_factory.mktemp("hdfs"), is_secure=table_format == "kerberos") as cluster:
            yield cluster
    except Unreachable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def logged_in(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The cluster with Kerberos, whose tickets this process and those that it starts have, as after ``kinit``."""
    from tests.support import kerberos

    tickets = tmp_path_factory.mktemp("tickets") / "cache"
    cluster.realm.log_in(kerberos.USER, tickets)
    os.environ |= {"KRB5CCNAME": f"FILE:{tickets}", "KRB5_CONFIG": str(cluster.realm.configuration)}
    # a JVM logs in before it reads Spark's settings
    os.environ["HADOOP_CONF_DIR"] = str(cluster.write_settings(tmp_path_factory.mktemp("conf")))
    cluster.open_to_everybody()
    return cluster


@pytest.fixture(scope="session")
def spark(
    table_format: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Any]:
    """A session with the format's JARs; the tests are skipped where there are none for this Spark."""
    from pyspark.sql import SparkSession

    library = LIBRARIES[table_format].get(SPARK_VERSION)
    if library is None:
        pytest.skip(f"{table_format} has no JAR for Spark {pyspark.__version__}")
    try:
        jars = [_jar(coordinates) for coordinates in library.jars]
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
    for name, value in _server_settings(request, table_format).items():
        builder = builder.config(name, value)
    if table_format in _STORES:
        builder = builder.config("spark.eventLog.enabled", "true")
        builder = builder.config("spark.eventLog.dir", str(tmp_path_factory.mktemp("events")))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def _jar(coordinates: str) -> Path | None:
    group, name, version, *classifier = coordinates.split(":")
    return artifact(f"{group}:{name}:{version}", *classifier)


#: What the names of tables start with.
_NAMESPACES = {"delta": "", "iceberg": "ice.db."}
_numbers = itertools.count()


@pytest.fixture
def table(spark: Any, table_format: str) -> Iterator[Callable[..., str]]:
    """Makes tables of the format: a query of their rows, their properties and partitioning; gives the name."""
    made = []

    def make(query: str, *properties: str, partitioned: str = "", files: int = 2) -> str:
        name = f"{_NAMESPACES[table_format]}t{next(_numbers)}"
        made.append(name)
        clause = f"TBLPROPERTIES ({', '.join(properties)})" if properties else ""
        spark.sql(query).repartition(files).createOrReplaceTempView("rows_of_table")
        spark.sql(
            f"CREATE TABLE {name} USING {table_format} {partitioned} {clause} AS SELECT * FROM rows_of_table"
        )
        return name

    yield make
    for name in made:
        spark.sql(f"DROP TABLE IF EXISTS {name}")
