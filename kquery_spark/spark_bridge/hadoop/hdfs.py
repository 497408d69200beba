"""Translates Hadoop's settings for clusters of HDFS to options of the client ``hdfs-native``.

Hadoop's ``hdfs-default.xml`` says what each setting means.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kquery_spark.sources.hadoop.hdfs import HdfsCluster, connect_clusters, has_client
from kquery_spark.spark_bridge.hadoop.hdfs_features import (
    ENCRYPTED_FILES,
    NO_CLIENT,
    OTHER_SETTING,
    UNREACHABLE,
)
from kquery_spark.spark_bridge.hadoop.login import login_for
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS

_IMPLEMENTATION = "org.apache.hadoop.hdfs.DistributedFileSystem"
_PATH = "org.apache.hadoop.fs.Path"
_WILDCARD = re.compile(r"[*?\[{]")
_HA = "org.apache.hadoop.hdfs.server.namenode.ha."
# Settings under which the client might connect to another cluster than Hadoop, each with its harmless values.
_PROVIDER = "dfs.client.failover.proxy.provider"
_PROVIDERS = (
    f"{_HA}ConfiguredFailoverProxyProvider",
    f"{_HA}ObserverReadProxyProvider",
    f"{_HA}RouterObserverReadConfiguredFailoverProxyProvider",
)
_SOCKETS = ("", "org.apache.hadoop.net.StandardSocketFactory")
_HARMLESS = {
    "hadoop.rpc.socket.factory.class.default": _SOCKETS,
    "hadoop.rpc.socket.factory.class.ClientProtocol": _SOCKETS,
}
# _CLUSTER_SETTINGS: settings of all clusters. _FAILOVER: settings that all clusters with several name nodes
# share. _SERVICE: settings of one such cluster; the name of its name service is appended.
_CLUSTER_SETTINGS = ("dfs.client.use.datanode.hostname",)
_FAILOVER = tuple(
    f"dfs.client.failover.{name}" for name in ("max.attempts", "sleep.base.millis", "sleep.max.millis")
)
_SERVICE = (
    _PROVIDER,
    *(f"dfs.client.failover.{name}" for name in ("resolve-needed", "resolver.useFQDN", "random.order")),
)


class HdfsClusters:
    """The clusters of the files of one plan.

    configuration: returns the session's Hadoop configuration. workers_have_client: returns True if Spark's Python workers
    have hdfs-native.
    """

    def __init__(
        self, configuration: Callable[[], Any], jvm: Jvm, workers_have_client: Callable[[], bool]
    ) -> None:
        self._configuration = configuration
        self._jvm = jvm
        self._workers_have_client = workers_have_client
        # By authority; None for those without encryption zones.
        self._systems: dict[str, Any] = {}
        self._plain_directories: set[str] = set()

    def connect(self, path: str, authority: str) -> None:
        """Make this process connect to the cluster of a file as Spark does; raises Unsupported if it cannot.

        path: the path of a file, or a glob.
        """
        if authority not in self._systems:
            if not has_client():
                raise NO_CLIENT.declined(where="the driver's Python")
            if not self._workers_have_client():
                raise NO_CLIENT.declined(where="the Python of Spark's workers")
            configuration = self._configuration()
            try:
                system = self._jvm.new(_PATH, path).getFileSystem(configuration)
                cluster = self._cluster(configuration, system, authority)
                has_keys = bool(system.getServerDefaults(self._jvm.new(_PATH, path)).getKeyProviderUri())
            except SPARK_ERRORS as error:
                raise UNREACHABLE.declined(authority=authority, error=_cause(error)) from None
            connect_clusters([cluster])
            self._systems[authority] = system if has_keys else None
        fixed = _WILDCARD.split(path, maxsplit=1)[0]
        self._check_zone(self._systems[authority], fixed.rpartition("/")[0])

    def _cluster(self, configuration: Any, system: Any, authority: str) -> HdfsCluster:
        implementation = str(system.getClass().getName())
        if implementation != _IMPLEMENTATION:
            raise OTHER_SETTING.declined(setting="fs.hdfs.impl", value=implementation)
        for name, harmless in _HARMLESS.items():
            value = configuration.getTrimmed(name) or ""
            if value not in harmless:
                raise OTHER_SETTING.declined(setting=name, value=value)
        spark = login_for(self._jvm, configuration, system, authority)
        settings = _settings(configuration, authority) + spark.settings
        return HdfsCluster(authority, settings, spark.user, complete=True, token=spark.token)

    def _check_zone(self, system: Any, directory: str) -> None:
        """Raise Unsupported if the files of a directory are in an encryption zone."""
        if system is None or directory in self._plain_directories:
            return
        try:
            is_encrypted = system.getFileStatus(self._jvm.new(_PATH, f"{directory}/")).isEncrypted()
        except SPARK_ERRORS as error:
            raise UNREACHABLE.declined(authority=directory, error=_cause(error)) from None
        if is_encrypted:
            raise ENCRYPTED_FILES.declined(directory=directory)
        self._plain_directories.add(directory)


def _settings(configuration: Any, authority: str) -> tuple[tuple[str, str], ...]:
    """Hadoop's settings of a cluster that are set, by name."""
    names = list(_CLUSTER_SETTINGS)
    nodes = "" if ":" in authority else configuration.getTrimmed(f"dfs.ha.namenodes.{authority}")
    if nodes:
        names += [*_FAILOVER, f"dfs.ha.namenodes.{authority}", *(f"{name}.{authority}" for name in _SERVICE)]
        names += [f"dfs.namenode.rpc-address.{authority}.{node.strip()}" for node in nodes.split(",")]
    settings = {name: configuration.getTrimmed(name) for name in names}
    provider = settings.get(f"{_PROVIDER}.{authority}")
    if provider and provider not in _PROVIDERS:
        raise OTHER_SETTING.declined(setting=f"{_PROVIDER}.{authority}", value=provider)
    if nodes:
        settings[f"dfs.ha.namenodes.{authority}"] = ",".join(node.strip() for node in nodes.split(","))
    return tuple(sorted((name, str(value)) for name, value in settings.items() if value))


def _cause(error: BaseException) -> str:
    """Return the most specific line of Hadoop's error."""
    lines = [line for line in str(error).splitlines() if line.startswith(("Caused by: ", "java.", "org."))]
    return (lines or [str(error).partition("\n")[0]])[0][:300]
