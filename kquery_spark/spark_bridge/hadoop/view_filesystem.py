"""Resolves ``viewfs://`` paths with Hadoop's mount tables, which map directories to other filesystems.

Hadoop's guide to ViewFs describes each setting of a mount table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from kquery_spark.spark_bridge.hadoop.hdfs_features import OTHER_MOUNTS, UNMOUNTED
from kquery_spark.spark_bridge.hadoop.object_store_features import HARMFUL_SETTING
from kquery_spark.spark_bridge.jvm.calls import Jvm

SCHEME = "viewfs"
_IMPLEMENTATION = "org.apache.hadoop.fs.viewfs.ViewFileSystem"
_PATH = "org.apache.hadoop.fs.Path"
_TABLES = "fs.viewfs.mounttable"
_DEFAULT_NAME = f"{_TABLES}.default.name.key"
_LINK, _FALLBACK, _HOME = "link.", "linkFallback", "homedir"
_VIEW = re.compile(r"viewfs:(?://([^/]*))?(/.*)", re.DOTALL)


class MountTables:
    """The mount tables of the paths in one plan. configuration: returns the session's Hadoop configuration."""

    def __init__(self, configuration: Callable[[], Any], jvm: Jvm) -> None:
        self._configuration = configuration
        self._jvm = jvm
        self._mounts: dict[str, dict[str, str]] = {}

    def target(self, path: str) -> str:
        """Return the target of a path, like ``hdfs://cluster/a b``; raises Unsupported if it is not certain.

        path: like ``viewfs://table/a b``, in which nothing is escaped; one without a table is of the default table.
        """
        match = _VIEW.fullmatch(path)
        if match is None:
            raise UNMOUNTED.declined(path=path)
        table, inner = match[1] or "", match[2]
        if table not in self._mounts:
            self._mounts[table] = self._read(table, path)
        for place, mounted in self._mounts[table].items():
            if inner == place or inner.startswith(f"{place}/"):
                return mounted + inner.removeprefix(place)
        raise UNMOUNTED.declined(path=path)

    def _read(self, table: str, path: str) -> dict[str, str]:
        configuration = self._configuration()
        implementation = self._jvm.class_name(self._jvm.new(_PATH, path).getFileSystem(configuration))
        if implementation != _IMPLEMENTATION:
            raise HARMFUL_SETTING.declined(scheme=SCHEME, setting="fs.viewfs.impl", value=implementation)
        name = table or configuration.getTrimmed(_DEFAULT_NAME) or "default"
        return mounts(name, self._jvm.entries(configuration.getPropsWithPrefix(f"{_TABLES}.{name}.")))


def mounts(table: str, entries: Mapping[str, str]) -> dict[str, str]:
    """Map mount points to target paths, longer mount points first; none of the paths ends in a slash.

    table: the name of the mount table. entries: its settings, by the part of their names after the table's name. Raises
    Unsupported for other kinds of links, such as copies on several clusters (``linkNfly``) and patterns (``linkRegex``).
    """
    found = {}
    for entry, address in entries.items():
        if entry.startswith(_LINK):
            found[entry.removeprefix(_LINK).rstrip("/")] = _plain_path(address)
        elif entry == _FALLBACK:
            found[""] = _plain_path(address)
        elif entry != _HOME:
            raise OTHER_MOUNTS.declined(table=table, entry=entry)
    return dict(sorted(found.items(), key=lambda mount: -len(mount[0])))


def _plain_path(address: str) -> str:
    """Convert a URI to a path without escapes; it has no scheme if it belongs to the default filesystem."""
    parts = urlsplit(address)
    root = f"{parts.scheme}://{parts.netloc}" if parts.scheme else ""
    return root + unquote(parts.path).rstrip("/")
