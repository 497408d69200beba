"""What lies between Arrow and the client of HDFS, with a scripted client; real ones are in tests/table_formats."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

import kquery_spark as kq
from kquery_spark.errors import KQueryError, SourceError
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.files import check_remote, stamp_of
from kquery_spark.sources.hadoop import hdfs
from kquery_spark.sources.hadoop.hdfs import (
    HdfsCluster,
    authority_of,
    cluster_of,
    cluster_of_options,
    clusters_named_in,
    connect_clusters,
    hadoop_user,
)
from kquery_spark.sources.hadoop.hdfs_filesystem import HdfsHandler


@dataclass
class Client:
    """A client with files in memory, each with its bytes and time; errors: what the next reads raise."""

    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    errors: list[BaseException] = field(default_factory=list)

    def get_file_info(self, path: str) -> Any:
        if path not in self.files:
            raise FileNotFoundError(f"File does not exist: {path}\n\tat org.apache.hadoop")
        data, time = self.files[path]
        return SimpleNamespace(path=path, isdir=False, length=len(data), modification_time=time)

    def list_status(self, base: str, recursive: bool) -> list[Any]:
        found = [self.get_file_info(path) for path in self.files if path.startswith(f"{base}/")]
        if not found:
            raise FileNotFoundError(base)
        return found

    def read(self, path: str) -> Reader:
        return Reader(self, self.files[path][0])


@dataclass
class Reader:
    client: Client
    data: bytes

    def __len__(self) -> int:
        return len(self.data)

    def read_range(self, offset: int, length: int) -> bytes:
        assert offset + length <= len(self.data), "the client ends the thread"
        if self.client.errors:
            raise self.client.errors.pop(0)
        return self.data[offset : offset + length]


class PanicException(BaseException):
    """What the real client raises where its Rust code panics."""


@pytest.fixture
def client() -> Client:
    return Client({"/a b/x": (b"0123456789", 1_700_000_000_123), "/a b/c/y": (b"", 5)})


@pytest.fixture
def filesystem(client: Client) -> pafs.FileSystem:
    return pafs.PyFileSystem(HdfsHandler(client))


def test_files_and_their_facts(filesystem):
    info = filesystem.get_file_info("/a b/x")
    assert (info.type, info.size, info.mtime_ns) == (pafs.FileType.File, 10, 1_700_000_000_123_000_000)
    assert filesystem.get_file_info("/no").type == pafs.FileType.NotFound
    listed = filesystem.get_file_info(pafs.FileSelector("/a b/", recursive=True))
    assert [i.path for i in listed] == ["/a b/x", "/a b/c/y"]
    with pytest.raises(FileNotFoundError, match=r"^/no does not exist$"):
        filesystem.get_file_info(pafs.FileSelector("/no"))
    assert filesystem.get_file_info(pafs.FileSelector("/no", allow_not_found=True)) == []
    with pytest.raises(NotImplementedError, match="files of HDFS are only read"):
        filesystem.delete_file("/a b/x")


def test_reads_end_where_the_file_does(filesystem):
    with filesystem.open_input_file("/a b/x") as file:
        assert file.size() == 10
        assert file.read_at(4, 3) == b"3456"
        assert file.read_at(100, 8) == b"89"
        assert file.read_at(3, 10) == b""
        file.seek(2)
        assert file.read() == b"23456789"


def test_a_read_is_tried_again_with_the_blocks_places_of_now(client, filesystem):
    with filesystem.open_input_file("/a b/x") as file:
        client.errors = [RuntimeError("All DataNodes failed")]
        assert file.read_at(2, 0) == b"01"
        client.errors = [RuntimeError("All DataNodes failed"), PanicException("no such block\nat")]
        with pytest.raises(OSError, match=r"the HDFS client failed: no such block$"):
            file.read_at(2, 0)
        client.errors = [RuntimeError("All DataNodes failed")]
        client.files["/a b/x"] = (b"9876543210", 1_700_000_000_124)
        with pytest.raises(OSError, match="All DataNodes failed"):
            file.read_at(2, 0)
        client.errors = [KeyboardInterrupt()]
        with pytest.raises(KeyboardInterrupt):
            file.read_at(2, 0)


def test_errors_are_of_one_line(client, filesystem):
    client.get_file_info = lambda path: (_ for _ in ()).throw(RuntimeError('RPCError("Denied: x\\n\\tat")'))
    with pytest.raises(OSError, match=r'^RPCError\("Denied: x$'):
        filesystem.get_file_info("/a b/x")


def test_a_change_within_a_second_is_noticed(client, filesystem):
    file = DataFile("hdfs://ns/a b/x", 10, 1_700_000_000_123)
    check_remote(file, filesystem, "/a b/x")
    client.files["/a b/x"] = (b"9876543210", 1_700_000_000_124)
    with pytest.raises(SourceError, match="has changed since the query was planned"):
        check_remote(file, filesystem, "/a b/x")


@pytest.mark.parametrize(
    ("path", "authority"),
    [
        ("hdfs://ns/a b?c#d", "ns"),
        ("hdfs://h:8020/x", "h:8020"),
        ("hdfs:///x", ""),
        ("hdfs://ns", "ns"),
        ("hdfs://user@ns/x", None),
        ("webhdfs://h/x", None),
        ("/hdfs://h/x", None),
    ],
)
def test_the_cluster_of_a_path(path, authority):
    assert authority_of(path) == authority


def test_clusters_are_reached_as_the_driver_says(monkeypatch):
    monkeypatch.setattr(hdfs, "_clusters", {})
    node = "dfs.namenode.rpc-address.ns.a"
    cluster = HdfsCluster("ns", (("dfs.ha.namenodes.ns", "a"), (node, "h:1")), hadoop_user(), complete=True)
    assert cluster_of("hdfs://ns/x") == HdfsCluster("ns")
    before = stamp_of("hdfs://ns/x")
    connect_clusters([cluster])
    assert cluster_of("hdfs://ns/x") == cluster and stamp_of("hdfs://ns/x") != before
    assert clusters_named_in(b"...hdfs://ns/a...") == (cluster,)
    assert clusters_named_in(b"...hdfs://ns2/a...hdfs://n/s") == ()
    given = cluster_of_options("hdfs://ns/x", {"dfs.ha.namenodes.ns": "a", node: "h:1"})
    assert given == HdfsCluster("ns", cluster.settings)
    assert given.stamp == cluster.stamp != cluster_of_options("hdfs://ns/x", {node: "h:2"}).stamp
    assert cluster_of_options("s3://b/x", {}) is None


def test_a_name_that_is_no_service_is_a_host(monkeypatch):
    made = []

    def client(url: str, settings: dict[str, str], directory: str | None) -> Client:
        made.append((url, settings.get("dfs.client.failover.max.attempts"), directory))
        if url == "hdfs://host":
            raise RuntimeError('InvalidArgument("No NameNode hosts found")')
        return Client()

    monkeypatch.setitem(sys.modules, "hdfs_native", SimpleNamespace(Client=client))
    monkeypatch.setattr(hdfs, "_filesystem", cache(hdfs._filesystem.__wrapped__))
    for cluster in (
        HdfsCluster("host", complete=True),
        HdfsCluster("ns", (("dfs.client.failover.max.attempts", "9"),)),
        HdfsCluster("h:1"),
    ):
        assert cluster.filesystem() is cluster.filesystem()
    assert made == [
        ("hdfs://host", None, os.devnull),
        ("hdfs://host:8020", "3", os.devnull),
        ("hdfs://ns", "9", None),
        ("hdfs://h:1", "3", None),
    ]


def test_a_worker_reads_as_the_drivers_user(monkeypatch):
    monkeypatch.setattr(hdfs, "_clusters", {})
    monkeypatch.delenv("HADOOP_USER_NAME", raising=False)
    connect_clusters([HdfsCluster("ns", user=hadoop_user())])
    assert "HADOOP_USER_NAME" not in os.environ
    monkeypatch.setenv("HADOOP_USER_NAME", "")
    connect_clusters([HdfsCluster("ns", user="another")])
    assert os.environ["HADOOP_USER_NAME"] == hadoop_user() == "another"


def test_without_the_client_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("kquery_spark.sources.hadoop.hdfs.has_client", lambda: False)

    def refuse(path: str) -> None:
        raise pa.ArrowException("no libhdfs")

    monkeypatch.setattr("kquery_spark.sources.files.pafs.FileSystem", SimpleNamespace(from_uri=refuse))
    with pytest.raises(KQueryError, match=r"no libhdfs; pip install 'kquery-spark\[hdfs\]'"):
        kq.ExecutionContext().register_parquet("t", "hdfs://127.0.0.1:1/x")
