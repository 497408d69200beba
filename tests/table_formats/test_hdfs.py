"""Files on HDFS: the engine reads what Spark reads, whole, from a real cluster on this machine."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.errors import KQueryError
from kquery_spark.spark_bridge.hadoop.paths import HadoopPaths
from kquery_spark.spark_bridge.session.bridge import get_bridge
from tests.accelerate.checks import check
from tests.conftest import SPARK_VERSION
from tests.support.hdfs import Cluster, hdfs_cluster
from tests.table_formats.queries import GROUPED, ROWS, check_appends

pytest.importorskip("hdfs_native", reason="hdfs-native is not installed")
FORMATS = ("parquet", "orc", "csv", "json")
_numbers = itertools.count()


@pytest.fixture(scope="module")
def directory(spark: Any, cluster: Cluster) -> str:
    """A directory with the same rows in each format, those of Parquet in partitions; its name needs care."""
    path = f"{cluster.root}/a b%20c"
    rows = spark.sql(ROWS)
    rows.repartition(3).write.partitionBy("k").parquet(f"{path}/partitioned")
    for name in FORMATS:
        rows.repartition(2).write.format(name).save(f"{path}/{name}")
    return path


@pytest.fixture
def table(spark: Any, directory: str) -> str:
    spark.read.parquet(f"{directory}/partitioned").createOrReplaceTempView("on_hdfs")
    return "on_hdfs"


def read(spark: Any, path: str, name: str) -> Any:
    return spark.read.schema("id bigint, k bigint, s string, d double").format(name).load(path)


def declined(frame: Any) -> list[str]:
    explained = kq.explain(frame)
    assert explained.coverage < 1
    return [reason for _, reason in explained.reasons]


def test_parquet_with_partitions(spark, directory, table):
    check(spark.sql(GROUPED.format(t=table)), coverage=1.0)
    check(spark.sql(f"SELECT count(*), sum(d) FROM {table} WHERE k > 3 AND id < 900"), coverage=1.0)
    check(spark.sql(f"SELECT k, s FROM {table} WHERE k = 5 AND id > 1900"), coverage=1.0)
    frame = spark.read.parquet(f"{directory}/partitioned")
    check(frame.groupBy("_metadata.file_path", "_metadata.file_size").agg({"id": "max"}), coverage=1.0)
    check(
        spark.sql(f"SELECT a.k, count(*) FROM {table} a JOIN {table} b ON a.id = b.id + 1 GROUP BY a.k"),
        coverage=1.0,
    )


@pytest.mark.parametrize("name", FORMATS)
def test_every_format(spark, cluster, directory, name):
    for root in (directory, directory.replace(cluster.root, cluster.host)):
        frame = read(spark, f"{root}/{name}", name)
        check(frame.groupBy("k").count(), coverage=1.0)
        # before Spark 4.0 strings of JSON are Spark's
        whole = name != "json" or SPARK_VERSION >= (4, 0)
        check(frame.where("s = 's3'").select("id", "d"), coverage=1.0 if whole else 0.0)


def test_files_of_several_blocks(spark, cluster):
    path = f"{cluster.root}/blocks"
    spark.conf.set("dfs.blocksize", str(1 << 20))
    try:
        rows = spark.range(400_000).selectExpr("id", "id % 100 AS k", "cast(hash(id) AS string) AS s")
        for name in ("parquet", "csv"):
            rows.coalesce(1).write.format(name).save(f"{path}/{name}")
    finally:
        spark.conf.unset("dfs.blocksize")
    for name in ("parquet", "csv"):
        frame = spark.read.schema("id bigint, k bigint, s string").format(name).load(f"{path}/{name}")
        check(frame.groupBy("k").agg({"s": "max", "id": "sum"}), coverage=1.0)


def test_a_table_that_is_appended_to(spark, cluster):
    path = f"{cluster.root}/growing"
    spark.sql(ROWS).write.parquet(path)
    check_appends(
        lambda: spark.read.parquet(path),
        lambda: spark.sql(ROWS).where("id < 100").write.mode("append").parquet(path),
    )


def test_replaced_and_vanished_files_are_noticed(spark, cluster):
    """As Spark does it: an error that names the file, or the rows of now; never those of a file that is half of each."""
    path = f"{cluster.root}/replaced"
    for name in ("parquet", "json"):
        spark.sql(ROWS).coalesce(1).write.format(name).save(f"{path}/{name}")
        frame = read(spark, f"{path}/{name}", name).groupBy("k").count()
        fast = frame.transform(kquery_plan, when="always")
        assert sum(row[1] for row in fast.collect()) == 2000
        spark.sql(ROWS).where("id < 100").coalesce(1).write.mode("overwrite").format(name).save(
            f"{path}/{name}"
        )
        with (
            pytest.warns(kq.FallbackWarning, match="does not exist any more"),
            pytest.raises(Exception, match=r"FILE_NOT_EXIST|FileNotFound|does not exist"),
        ):
            fast.collect()
        again = read(spark, f"{path}/{name}", name).groupBy("k").count()
        assert sum(row[1] for row in again.transform(kquery_plan, when="always").collect()) == 100


def test_contexts(spark, cluster, directory):
    """On Spark with its settings, without Spark with given ones and by a name node's address."""
    ways = [
        (kq.ExecutionContext(spark), directory, None),
        (kq.ExecutionContext(), directory, cluster.settings),
        (kq.ExecutionContext(), directory.replace(cluster.root, cluster.host), None),
    ]
    for ctx, root, options in ways:
        for name in FORMATS:
            given = {"header": False} if name == "csv" else {}
            register = getattr(ctx, f"register_{name}")
            register(name, f"{root}/{name}/*[0-9a-z]", storage_options=options, **given)
            assert ctx.sql(f"SELECT count(*) AS n FROM {name}").to_arrow().to_pylist() == [{"n": 2000}]
        ctx.register_parquet("t", f"{root}/partitioned/", storage_options=options)
        answer = ctx.sql("SELECT k, count(*) AS n, max(id) AS m FROM t WHERE k < 3 GROUP BY k ORDER BY k")
        expected = spark.read.parquet(f"{directory}/partitioned").where("k < 3").groupBy("k")
        rows = expected.agg({"*": "count", "id": "max"}).orderBy("k").collect()
        assert [tuple(row.values()) for row in answer.to_arrow().to_pylist()] == [
            (row[0], row["count(1)"], row["max(id)"]) for row in rows
        ]


def test_wrong_places_are_errors_soon(cluster):
    ctx, started = kq.ExecutionContext(), time.monotonic()
    for path, message in [
        ("hdfs://127.0.0.1:1/x", "hdfs://127.0.0.1:1/x.*refused"),
        ("hdfs://no-such-host.invalid/x", r"hdfs://no-such-host\.invalid"),
        (f"{cluster.host}/no/such/file", "no such file or directory"),
    ]:
        with pytest.raises(KQueryError, match=message):
            ctx.register_parquet("t", path)
    assert time.monotonic() - started < 60


def test_nodes_that_go_and_come_back(spark, cluster, table):
    """The other name node takes over, and the data node has another port, while files are open."""
    frame = spark.sql(GROUPED.format(t=table))
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    rows = sorted(fast.collect())
    for change in (cluster.fail_over, cluster.restart_data_node, cluster.fail_over):
        change()
        assert sorted(fast.collect()) == rows
        check(spark.sql(f"SELECT s, count(*) FROM {table} GROUP BY s"), coverage=1.0)


def test_frames_are_written_while_enabled(spark, cluster):
    path, lost = f"{cluster.root}/kept", f"{cluster.root}/overwritten"
    for directory in (path, lost):
        spark.sql(ROWS).write.parquet(directory)
    kq.enable(spark, when="always")
    try:
        spark.read.parquet(path).where("k < 3").write.mode("overwrite").parquet(f"{cluster.root}/copy")
        # Spark deletes what it is about to read
        with pytest.raises(Exception, match=r"FILE_NOT_EXIST|does not exist"):
            spark.read.parquet(lost).write.mode("overwrite").parquet(lost)
    finally:
        kq.disable(spark)
    copied = spark.read.parquet(f"{cluster.root}/copy")
    assert sorted(copied.collect(), key=str) == sorted(
        spark.read.parquet(path).where("k < 3").collect(), key=str
    )


def test_a_path_without_a_scheme_is_of_the_default_filesystem(spark, cluster):
    bridge = get_bridge(spark)
    assert HadoopPaths(bridge.hadoop_configuration, bridge.jvm, lambda: True).engine_path("/x") == "/x"
    spark.conf.set("fs.defaultFS", f"{cluster.root}/")
    try:
        paths = HadoopPaths(bridge.hadoop_configuration, bridge.jvm, lambda: True)
        assert paths.engine_path("/x") == f"{cluster.root}/x"
    finally:
        spark.conf.unset("fs.defaultFS")


def _mounted(spark: Any, entries: dict[str, str]) -> Any:
    """A new session with a mount table of its own, whose name no cached filesystem has."""
    session, table = spark.newSession(), f"view{next(_numbers)}"
    for entry, address in entries.items():
        session.conf.set(f"fs.viewfs.mounttable.{table}.{entry}", address)
    return session, f"viewfs://{table}"


def test_mounted_filesystems(spark, cluster, directory, tmp_path):
    """Through links, one of them inside of a directory of links, and a fallback; to a cluster and to local files."""
    session, view = _mounted(
        spark,
        {
            "link./tables": directory.replace(" ", "%20").replace("%20c", "%2520c"),
            "link./inner/parts": f"{cluster.root}/a%20b%2520c/partitioned/",
            "link./local": f"file://{tmp_path}",
            "linkFallback": f"{cluster.root}/",
            "homedir": "/user",
        },
    )
    spark.sql(ROWS).write.parquet(f"{tmp_path}/parquet")
    for frames, path in [
        (session, f"{view}/tables/partitioned"),
        (session, f"{view}/inner/parts"),
        (session, f"{view}/a b%20c/partitioned"),
        (session, f"{view}/local/parquet"),
    ]:
        frame = frames.read.parquet(path)
        assert frame.inputFiles()[0].startswith("viewfs://")
        check(frame.groupBy("k").agg({"id": "sum", "s": "max"}), coverage=1.0)
        check(frame.groupBy("_metadata.file_path", "_metadata.file_name").agg({"id": "max"}), coverage=1.0)
        check(frame.selectExpr("input_file_name() AS file", "id").where("id < 70"), coverage=1.0)


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ({"linkRegex./odd/(?<rest>.*)": "{root}/$rest"}, r"has the entry linkRegex./odd/(?<rest>.*)"),
        (
            {"linkNfly.minReplication=1./twice": "{root}/x,{root}/y"},
            "has the entry linkNfly.minReplication=1./twice",
        ),
    ],
)
def test_mounts_of_other_kinds_stay_with_spark(spark, cluster, directory, entries, sentence):
    given = {entry: address.format(root=cluster.root) for entry, address in entries.items()}
    session, view = _mounted(spark, given | {"link./tables": f"{cluster.root}/a%20b%2520c"})
    frame = session.read.parquet(f"{view}/tables/parquet").groupBy("k").count()
    assert any(sentence in reason for reason in declined(frame))
    check(frame)


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("hadoop.security.authentication", "kerberos", "hadoop.security.authentication is kerberos"),
        (
            "dfs.client.failover.proxy.provider.minidfs-ns",
            "org.apache.hadoop.hdfs.server.namenode.ha.RequestHedgingProxyProvider",
            "while dfs.client.failover.proxy.provider.minidfs-ns is org.apache",
        ),
        (
            "hadoop.rpc.socket.factory.class.default",
            "org.apache.hadoop.net.SocksSocketFactory",
            "while hadoop.rpc.socket.factory.class.default is org.apache.hadoop.net.SocksSocketFactory",
        ),
    ],
)
def test_what_the_client_cannot_follow_stays_with_spark(spark, directory, setting, value, sentence):
    frame = spark.read.parquet(f"{directory}/parquet").groupBy("k").count()
    spark.conf.set(setting, value)
    try:
        assert any(sentence in reason for reason in declined(frame))
    finally:
        spark.conf.unset(setting)


def test_no_client_or_another_user(spark, directory, monkeypatch):
    frame = spark.read.parquet(f"{directory}/parquet").groupBy("k").count()
    with monkeypatch.context() as patch:
        patch.setattr("kquery_spark.spark_bridge.hadoop.hdfs.has_client", lambda: False)
        (reason,) = declined(frame)
        assert "the driver's Python has no package hdfs-native; pip install 'kquery-spark[hdfs]'" in reason
    with monkeypatch.context() as patch:
        patch.setattr("kquery_spark.accelerate.planning.pipeline.workers_have_hdfs_client", lambda _: False)
        (reason,) = declined(frame)
        assert "the Python of Spark's workers has no package hdfs-native" in reason
    with monkeypatch.context() as patch:
        patch.setenv("HADOOP_USER_NAME", "another")
        (reason,) = declined(frame)
        assert "and the engine would read them as another" in reason
    check(frame, coverage=1.0)


def test_encrypted_files_stay_with_spark(spark, cluster):
    cluster.make_encrypted("/zone")
    spark.sql(ROWS).write.json(f"{cluster.root}/zone/json")
    frame = read(spark, f"{cluster.root}/zone/json", "json").groupBy("k").count()
    (reason,) = declined(frame)
    assert f"{cluster.root}/zone/json is in an encryption zone" in reason
    check(frame)


def test_encrypted_transfer(tmp_path):
    encrypted = {"dfs_encrypt_data_transfer": "true", "dfs_block_access_token_enable": "true"}
    with hdfs_cluster(tmp_path, **encrypted) as cluster:
        pq.write_table(pa.table({"id": range(300_000)}), tmp_path / "x.parquet")
        cluster.filesystem().copyFromLocalFile(
            cluster.path(f"file://{tmp_path}/x.parquet"), cluster.path("/x")
        )
        ctx = kq.ExecutionContext()
        ctx.register_parquet("t", f"{cluster.host}/x")
        rows = ctx.sql("SELECT count(*) AS n, sum(id) AS s, max(id) AS m FROM t").to_arrow().to_pylist()
    assert rows == [{"n": 300_000, "s": 44_999_850_000, "m": 299_999}]


def test_more_files_than_the_driver_can_look_at_are_sparks(spark, cluster, directory, table, monkeypatch):
    monkeypatch.setattr("kquery_spark.frontends.catalyst.plans.many_files._ALWAYS_INSPECTED_FILES", 5)
    session, view = _mounted(spark, {"linkFallback": f"{cluster.root}/"})
    mounted = session.read.parquet(f"{view}/a b%20c/partitioned").groupBy("k").count()
    for frame in (spark.sql(GROUPED.format(t=table)), mounted):
        assert any("the driver would take too long" in reason for reason in declined(frame))


@pytest.mark.parametrize("name", ["delta.`hdfs://minidfs-ns/delta/t`", "on_hdfs.db.t"])
def test_tables_of_table_formats(spark, name):
    if spark.conf.get("spark.sql.catalog.on_hdfs", None) is None:
        pytest.skip("this release's session has no table formats")
    using = "delta" if name.startswith("delta") else "iceberg"
    spark.sql(f"CREATE TABLE {name} USING {using} PARTITIONED BY (k) AS {ROWS}")
    check(spark.sql(GROUPED.format(t=name)), coverage=1.0)
    spark.sql(f"DELETE FROM {name} WHERE id < 300")
    spark.sql(f"INSERT INTO {name} {ROWS} LIMIT 50")
    check(spark.sql(GROUPED.format(t=name)), coverage=1.0)
    check(spark.sql(f"SELECT id, s FROM {name} WHERE k = 3 AND id > 1500"), coverage=1.0)
