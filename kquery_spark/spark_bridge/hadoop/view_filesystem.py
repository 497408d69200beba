"""``viewfs://``: Hadoop's tables of the places where other filesystems are mounted.

Hadoop's guide to ViewFs says what each setting of a mount table means.
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
    """The mount tables that the paths of one plan name. configuration: returns Hadoop's, of the session."""

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
    """Paths of filesystems by the places where they are mounted, longer places first; neither ends in a slash.

    table: its name. entries: its settings, by what follows its name in theirs. Unsupported for entries of other kinds,
    like copies on several clusters (``linkNfly``) and patterns (``linkRegex``).
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
    """The path of an address, in which nothing is escaped; without a scheme where it is of the default filesystem."""
    parts = urlsplit(address)
    root = f"{parts.scheme}://{parts.netloc}" if parts.scheme else ""
    return root + unquote(parts.path).rstrip("/")
