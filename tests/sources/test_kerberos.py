"""Delegation tokens as Hadoop's clients find them, without a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kquery_spark.sources.hadoop.hdfs import HdfsCluster
from kquery_spark.sources.hadoop.kerberos import TOKEN_FILE, DelegationToken, logged_in_by

TOKENS = [
    DelegationToken(b"\x00" * 3, b"\xff", "HDFS_DELEGATION_TOKEN", "ha-hdfs:one"),
    DelegationToken(bytes(range(256)) * 300, b"p" * 127, "HDFS_DELEGATION_TOKEN", "10.0.0.1:8020"),
    DelegationToken(b"i" * 128, b"p" * 255, "HDFS_DELEGATION_TOKEN", "s" * 256),
]


def test_hadoop_reads_what_was_written(spark):
    jvm = spark.sparkContext._jvm
    hadoop = jvm.org.apache.hadoop
    with logged_in_by(TOKENS):
        read = hadoop.security.Credentials.readTokenStorageFile(
            jvm.java.io.File(os.environ[TOKEN_FILE]), hadoop.conf.Configuration(False)
        )
    assert read.numberOfTokens() == len(TOKENS)
    assert read.numberOfSecretKeys() == 0
    for token in TOKENS:
        found = read.getToken(hadoop.io.Text(token.service))
        assert bytes(found.getIdentifier()) == token.identifier
        assert bytes(found.getPassword()) == token.password
        assert (str(found.getKind()), str(found.getService())) == (token.kind, token.service)


@pytest.mark.parametrize("before", [None, "/a/file"])
def test_a_block_leaves_nothing_behind(monkeypatch, before):
    if before is None:
        monkeypatch.delenv(TOKEN_FILE, raising=False)
    else:
        monkeypatch.setenv(TOKEN_FILE, before)
    with logged_in_by([]):
        assert os.environ.get(TOKEN_FILE) == before
    with pytest.raises(ZeroDivisionError), logged_in_by(TOKENS[:1]):
        path = os.environ[TOKEN_FILE]
        code = f"import os, pathlib; print(len(pathlib.Path(os.environ[{TOKEN_FILE!r}]).read_bytes()))"
        child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert int(child.stdout) == os.stat(path).st_size > 0
        raise ZeroDivisionError
    assert os.environ.get(TOKEN_FILE) == before
    with logged_in_by(TOKENS[1:]):
        assert os.path.getsize(os.environ[TOKEN_FILE]) > 70_000
        with logged_in_by(TOKENS[1:]):
            pass
        assert TOKEN_FILE in os.environ
    assert os.environ.get(TOKEN_FILE) == before


def test_blocks_of_several_threads(monkeypatch):
    monkeypatch.delenv(TOKEN_FILE, raising=False)
    inside = threading.Barrier(8)

    def ask(number):
        with logged_in_by(TOKENS[: 1 + number % 2]):
            inside.wait()
            content = Path(os.environ[TOKEN_FILE]).read_bytes()
            inside.wait()
        return len(content)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1
    assert TOKEN_FILE not in os.environ


def test_tokens_are_not_shown_and_do_not_tell_clusters_apart():
    cluster, renewed = (HdfsCluster("one", (), token=token) for token in TOKENS[:2])
    assert cluster == renewed
    assert hash(cluster) == hash(renewed)
    assert "\\xff" not in repr(cluster)
