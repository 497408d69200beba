"""Connects this process to HDFS clusters with the package ``hdfs-native``, an HDFS client that needs no JVM.

A path names a cluster (``hdfs://nameservice/path`` or ``hdfs://host:port/path``). Hadoop's settings of it are passed to this
process once, by the driver's planner or by ``storage_options``, and travel to workers with the function that they run, not
with the plan.
"""

from __future__ import annotations

import importlib.util
import os
import re
import threading
import zlib
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import pyarrow.fs as pafs

from kquery_spark.errors import SourceError
from kquery_spark.sources.hadoop.kerberos import DelegationToken, logged_in_by

CLIENT = "hdfs_native"
"""The module of the client."""
INSTALL = "pip install 'kquery-spark[hdfs]'"
_PATH = re.compile(r"hdfs://([^/@?#]*)(/.*)?$", re.DOTALL)
DEFAULT_PORT = 8020
_USER = "HADOOP_USER_NAME"
_NO_FILES = os.devnull  # passed as the configuration directory to make the client read no files
# A single host is retried about as long as in Hadoop, some seconds. For a name service the cluster's own setting applies.
_NAME_NODES = "dfs.namenode.rpc-address"
_ATTEMPTS = "dfs.client.failover.max.attempts"
_ATTEMPTS_OF_ONE_HOST = "3"


@dataclass(frozen=True)
class HdfsCluster:
    """How to reach one cluster.

    authority: a name service, or a host with or without a port; empty for ``fs.defaultFS``. settings: Hadoop's settings by
    name. user: the user name for a cluster without Kerberos; None for the name that the environment defines. complete:
    whether ``settings`` has all settings, so that files in ``HADOOP_CONF_DIR`` are not read. token: the delegation token for
    a cluster with Kerberos; None to use the machine's tickets, or a file of tokens that the environment names.
    """

    authority: str
    settings: tuple[tuple[str, str], ...] = ()
    user: str | None = None
    complete: bool = False
    token: DelegationToken | None = field(default=None, compare=False)

    @property
    def stamp(self) -> int:
        """A number that distinguishes the cluster from one with the same name and other name nodes."""
        nodes = [setting for setting in self.settings if setting[0].startswith(_NAME_NODES)]
        return zlib.crc32(repr((self.authority, nodes)).encode())

    def filesystem(self) -> pafs.FileSystem:
        """Return the process's filesystem object for the cluster; raises SourceError if it cannot be created."""
        return _filesystem(self)


@lru_cache(maxsize=16)
def _filesystem(cluster: HdfsCluster) -> pafs.FileSystem:
    from kquery_spark.sources.hadoop.hdfs_filesystem import HdfsHandler

    return pafs.PyFileSystem(HdfsHandler(_client(cluster), _logged_in))


def _client(cluster: HdfsCluster) -> Any:
    from hdfs_native import Client

    settings, directory = dict(cluster.settings), _NO_FILES if cluster.complete else None

    def client_of(authority: str) -> Any:
        if ":" in authority:
            settings.setdefault(_ATTEMPTS, _ATTEMPTS_OF_ONE_HOST)
        return Client(f"hdfs://{authority}", settings, directory)

    try:
        try:
            return client_of(cluster.authority)
        except RuntimeError:
            if not cluster.authority or ":" in cluster.authority:
                raise
            # the settings do not define a name service of this name, so it is a host
            return client_of(f"{cluster.authority}:{DEFAULT_PORT}")
    except (OSError, RuntimeError, ValueError) as error:
        raise SourceError(f"cannot reach hdfs://{cluster.authority}: {error}") from None


@cache
def has_client() -> bool:
    """True if the package ``hdfs-native`` is installed."""
    return importlib.util.find_spec(CLIENT) is not None


_lock = threading.Lock()
_clusters: dict[str, HdfsCluster] = {}


def connect_clusters(clusters: Iterable[HdfsCluster]) -> None:
    """Register how this process connects to clusters, and as which user; replaces earlier registrations."""
    for cluster in clusters:
        if cluster.user is not None and cluster.user != hadoop_user():
            os.environ[_USER] = cluster.user
        with _lock:
            _clusters[cluster.authority] = cluster


def hadoop_user() -> str | None:
    """The user name of this process for clusters without Kerberos; None if the system does not define it."""
    named = os.environ.get(_USER)
    if named:
        return named
    try:
        import pwd

        return pwd.getpwuid(os.geteuid()).pw_name
    except (ImportError, KeyError):
        return None


def _logged_in() -> AbstractContextManager[None]:
    """A block in which clients log in with the delegation tokens of this process's clusters."""
    with _lock:
        return logged_in_by([cluster.token for cluster in _clusters.values() if cluster.token is not None])


def clusters_named_in(data: bytes) -> tuple[HdfsCluster, ...]:
    """The registered clusters whose paths occur in serialized plans."""
    with _lock:
        return tuple(c for c in _clusters.values() if f"hdfs://{c.authority}/".encode() in data)


def authority_of(path: str) -> str | None:
    """The authority of an HDFS path, which is empty for the default cluster; None for other paths."""
    match = _PATH.match(path)
    return None if match is None else match[1]


def cluster_of(path: str) -> HdfsCluster | None:
    """The cluster of an HDFS path; if it is not registered, one that Hadoop's files configure. None for other paths."""
    authority = authority_of(path)
    if authority is None:
        return None
    with _lock:
        return _clusters.get(authority, HdfsCluster(authority))


def reach_hdfs(path: str) -> tuple[pafs.FileSystem, str] | None:
    """The filesystem of an HDFS path, and the path within it; None for other paths, and without the client."""
    cluster = cluster_of(path)
    if cluster is None or not has_client():
        return None
    return cluster.filesystem(), path.removeprefix(f"hdfs://{cluster.authority}") or "/"


def cluster_of_options(path: str, options: Mapping[str, Any]) -> HdfsCluster | None:
    """The cluster of an HDFS path, with Hadoop settings that override those of the files; None for other paths."""
    authority = authority_of(path)
    if authority is None:
        return None
    return HdfsCluster(authority, tuple(sorted((name, str(value)) for name, value in options.items())))
