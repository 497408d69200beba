"""A cluster of HDFS on this machine, of two name nodes and a data node, in a Java process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from tests.support import kerberos
from tests.support.maven import artifact

JARS = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"
SERVICE = "minidfs-ns"
"""The name service of the cluster's two name nodes."""
_SERVERS = ("namenode", "datanode")
_OF_SERVERS = {"dfs.block.access.token.enable": "true", "ignore.secure.ports.for.testing": "true"}
_SECURE = {
    "hadoop.security.authentication": "kerberos",
    "hadoop.security.authorization": "true",
    "dfs.data.transfer.protection": "authentication",
    **{f"dfs.{server}.kerberos.principal": kerberos.SERVICE for server in _SERVERS},
    **_OF_SERVERS,
}


@dataclass(frozen=True)
class Cluster:
    """A running cluster. settings: Hadoop's, by which clients find its name service. jvm: py4j's view of its process.

    realm: of Kerberos, for a cluster that asks for it.
    """

    settings: dict[str, str]
    jvm: Any
    realm: kerberos.Realm | None
    _cluster: Any

    @property
    def root(self) -> str:
        """The address of the name service."""
        return f"hdfs://{SERVICE}"

    @property
    def host(self) -> str:
        """The address of the name node that is active."""
        active = 0 if self._cluster.getNameNode(0).isActiveState() else 1
        return f"hdfs://127.0.0.1:{self._cluster.getNameNodePort(active)}"

    def fail_over(self) -> None:
        """Make the other name node the active one."""
        active = 0 if self._cluster.getNameNode(0).isActiveState() else 1
        self._cluster.transitionToStandby(active)
        self._cluster.transitionToActive(1 - active)

    def restart_data_node(self) -> None:
        """Have the data node come back at another port."""
        self._cluster.restartDataNode(0)
        self._cluster.waitActive()

    def filesystem(self) -> Any:
        """Hadoop's client of the active name node, a JVM object."""
        active = 0 if self._cluster.getNameNode(0).isActiveState() else 1
        return self._cluster.getFileSystem(active)

    def path(self, path: str) -> Any:
        """Hadoop's Path."""
        return self.jvm.org.apache.hadoop.fs.Path(path)

    def write_settings(self, directory: Path) -> Path:
        """Write the settings of clients to a directory, as ``HADOOP_CONF_DIR`` names one; gives the directory."""
        entries = (
            f"<property><name>{name}</name><value>{value}</value></property>"
            for name, value in self.settings.items()
        )
        (directory / "core-site.xml").write_text(f"<configuration>{''.join(entries)}</configuration>")
        return directory

    def open_to_everybody(self) -> None:
        """Let everybody write into the root."""
        everything = self.jvm.org.apache.hadoop.fs.permission.FsPermission("777")
        self.filesystem().setPermission(self.path("/"), everything)

    def make_encrypted(self, directory: str) -> None:
        """Make a new directory whose files are encrypted."""
        hdfs = self.jvm.org.apache.hadoop.hdfs
        key = f"key-of{directory.replace('/', '-')}"
        hdfs.DFSTestUtil.createKey(key, self._cluster, 0, self._cluster.getConfiguration(0))
        hdfs.DFSTestUtil.createKey(key, self._cluster, 1, self._cluster.getConfiguration(0))
        self.filesystem().mkdirs(self.path(directory))
        self.filesystem().createEncryptionZone(self.path(directory), key)


def hadoop_version() -> str:
    """The version of Hadoop that this Spark comes with."""
    (jar,) = JARS.glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


@contextmanager
def hdfs_cluster(directory: Path, is_secure: bool = False, **settings: str) -> Iterator[Cluster]:
    """The cluster as long as the block runs; maven.Unreachable where its JARs cannot be had.

    is_secure: whether it asks for Kerberos. settings: Hadoop's, of the servers, with ``_`` for dots.
    """
    mini = artifact(f"org.apache.hadoop:hadoop-client-minicluster:{hadoop_version()}")
    others = kerberos.jars() if is_secure else []
    (py4j,) = JARS.glob("py4j-*.jar")
    java = str(Path(os.environ["JAVA_HOME"], "bin", "java")) if os.environ.get("JAVA_HOME") else "java"
    port, token = launch_gateway(
        jarpath=str(py4j),
        classpath=os.pathsep.join(map(str, [mini, *others, f"{JARS}/*"])),
        javaopts=["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
        java_path=java,
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        realm = kerberos.start_realm(gateway.jvm, directory / "realm") if is_secure else None
        yield _started(gateway.jvm, directory, settings, realm)
    finally:
        gateway.shutdown()


def _started(jvm: Any, directory: Path, given: dict[str, str], realm: kerberos.Realm | None) -> Cluster:
    hadoop = jvm.org.apache.hadoop
    configuration = hadoop.conf.Configuration()
    configuration.set("hadoop.security.key.provider.path", f"jceks://file{directory}/keys.jceks")
    secure = (
        {}
        if realm is None
        else _SECURE | {f"dfs.{server}.keytab.file": str(realm.keytab) for server in _SERVERS}
    )
    for name, value in {**secure, **{name.replace("_", "."): value for name, value in given.items()}}.items():
        configuration.set(name, value)
    if realm is not None:
        users = hadoop.security.UserGroupInformation
        users.setConfiguration(configuration)
        users.loginUserFromKeytab(kerberos.SERVICE, str(realm.keytab))
    builder = hadoop.hdfs.MiniDFSCluster.Builder(configuration, jvm.java.io.File(str(directory / "dfs")))
    topology = hadoop.hdfs.MiniDFSNNTopology.simpleHATopology()
    cluster = builder.nnTopology(topology).numDataNodes(1).build()
    cluster.waitActive()
    cluster.transitionToActive(0)
    provider = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
    settings = {
        "dfs.nameservices": SERVICE,
        f"dfs.ha.namenodes.{SERVICE}": "nn1,nn2",
        f"dfs.client.failover.proxy.provider.{SERVICE}": provider,
    } | {
        f"dfs.namenode.rpc-address.{SERVICE}.nn{i + 1}": f"127.0.0.1:{cluster.getNameNodePort(i)}"
        for i in (0, 1)
    }
    if realm is not None:
        settings |= {name: value for name, value in _SECURE.items() if name not in _OF_SERVERS}
    return Cluster(settings, jvm, realm, cluster)
