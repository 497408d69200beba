"""HDFS with Kerberos: the engine logs in as Spark does, by tickets and by delegation tokens, to a real cluster."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import kquery_spark as kq
from kquery_spark.sources.hadoop import hdfs
from kquery_spark.sources.hadoop.kerberos import TOKEN_FILE, default_principal
from kquery_spark.spark_bridge.session.bridge import get_bridge
from tests.accelerate.checks import check
from tests.support import kerberos
from tests.support.hdfs import SERVICE, Cluster
from tests.table_formats.queries import GROUPED, ROWS

pytest.importorskip("hdfs_native", reason="hdfs-native is not installed")


@pytest.fixture(scope="module")
def table(spark: Any, logged_in: Cluster) -> str:
    path = f"{logged_in.root}/rows"
    spark.sql(ROWS).repartition(3).write.partitionBy("k").parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("with_kerberos")
    return "with_kerberos"


def check_queries(spark: Any, table: str) -> None:
    check(spark.sql(GROUPED.format(t=table)), coverage=1.0)
    check(spark.sql(f"SELECT id, s FROM {table} WHERE k = 5 AND id > 1900"), coverage=1.0)


def declined(spark: Any, table: str) -> list[str]:
    explained = kq.explain(spark.table(table).groupBy("k").count())
    assert explained.coverage < 1
    return [reason for _, reason in explained.reasons]


def test_tickets(spark, logged_in, table):
    assert default_principal() == kerberos.USER
    check_queries(spark, table)
    by_address = spark.read.parquet(f"{logged_in.host}/rows")
    check(by_address.groupBy("k").count(), coverage=1.0)
    assert hdfs.cluster_of(logged_in.root).token is None


def test_contexts(spark, logged_in, table):
    for ctx, options in [
        (kq.ExecutionContext(spark), None),
        (kq.ExecutionContext(), logged_in.settings),
        (kq.ExecutionContext(), None),
    ]:
        ctx.register_parquet("t", f"{logged_in.root}/rows/", storage_options=options)
        assert ctx.sql("SELECT count(*) AS n FROM t").to_arrow().to_pylist() == [{"n": 2000}]


def test_other_logins_stay_with_spark(spark, logged_in, table, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        patch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/none")
        assert any(f"{kerberos.USER} has no tickets" in reason for reason in declined(spark, table))
    logged_in.realm.log_in(kerberos.SERVICE, tmp_path / "other")
    with monkeypatch.context() as patch:
        patch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/other")
        sentence = f"reads them as {kerberos.USER}, and the engine would read them as {kerberos.SERVICE}"
        assert any(sentence in reason for reason in declined(spark, table))
    with monkeypatch.context() as patch:
        patch.setattr("kquery_spark.spark_bridge.jvm.calls.Jvm.is_local", lambda _: False)
        assert any(f"without a delegation token for {SERVICE}" in reason for reason in declined(spark, table))
    check_queries(spark, table)


def test_delegation_tokens(spark, logged_in, table, monkeypatch, tmp_path):
    """As on YARN: Spark's login has tokens but no tickets, as if the driver had logged in by a keytab."""
    bridge = get_bridge(spark)
    hadoop = spark.sparkContext._jvm.org.apache.hadoop
    user = hadoop.security.UserGroupInformation.getCurrentUser()
    tokens = hadoop.security.Credentials()
    for root in (logged_in.root, logged_in.host):
        path = hadoop.fs.Path(root)
        path.getFileSystem(bridge.hadoop_configuration()).addDelegationTokens("renewer", tokens)
    tokens.writeTokenStorageFile(hadoop.fs.Path(f"file://{tmp_path}/tokens"), bridge.hadoop_configuration())
    tickets = Path(os.environ["KRB5CCNAME"].removeprefix("FILE:"))
    shutil.move(tickets, tmp_path / "tickets")
    hdfs._filesystem.cache_clear()  # its connections have logged in by tickets
    try:
        with monkeypatch.context() as patch:
            patch.setenv(TOKEN_FILE, str(tmp_path / "tokens"))
            assert any("tokens that Spark's JVM does not have" in reason for reason in declined(spark, table))
        user.addCredentials(tokens)
        check_queries(spark, table)
        cluster = hdfs.cluster_of(logged_in.root)
        assert cluster.token is not None
        assert cluster.token.service == f"ha-hdfs:{SERVICE}"
        shown = f"{cluster} {kq.explain(spark.table(table).groupBy('k').count())}"
        assert repr(cluster.token.password)[2:-1] not in shown
        # of a name node by its address, for which Hadoop names the service otherwise
        check(spark.read.parquet(f"{logged_in.host}/rows").groupBy("k").count(), coverage=1.0)
        assert TOKEN_FILE not in os.environ
    finally:
        shutil.move(tmp_path / "tickets", tickets)
