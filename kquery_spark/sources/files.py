"""Finds the filesystems of paths, and detects files that have changed since a query was planned."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.fs as pafs

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.hadoop.hdfs import INSTALL, authority_of, cluster_of, reach_hdfs
from kquery_spark.sources.object_stores.connections import reach, store_of
from kquery_spark.sources.object_stores.google import RETRY_SECONDS

# Matches ``s3://a`` and ``dbfs:/a``, but not a file name with a colon (``a:b``) or a drive letter (``c:/a``).
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
# Matches ``file:/a`` and ``file:///a``, but not ``file:a`` or ``file://host/a``.
_ABSOLUTE = re.compile(r"file:(?:/|/{3,})(?!/)(.*)", re.DOTALL)


@contextmanager
def naming_file(path: str) -> Iterator[None]:
    """Add a file's path to the reason if the engine declines what the file contains."""
    try:
        yield
    except Unsupported as error:
        raise Unsupported(f"{error.reason} (in {path})") from None


def local_path(path: str) -> str | None:
    """Return the path on the local filesystem; None for a path on another filesystem."""
    if path.startswith("file:"):
        return unquote(urlparse(path).path)
    return None if _SCHEME.match(path) else path


def literal_local_path(path: str) -> str | None:
    """Return the local path that Spark reads for a path that a user passes; None for a path on another filesystem.

    ``local_path`` decodes URIs that Java has encoded. A user's path has no escapes, query or fragment: ``file:/a%20b#1`` is
    the file ``/a%20b#1``. Raises SourceError for a ``file:`` path that is not absolute or names a host.
    """
    if not path.startswith("file:"):
        return local_path(path)
    absolute = _ABSOLUTE.fullmatch(path)
    if absolute is None:
        raise SourceError(f"cannot read {path}: after file: there must be an absolute path, as in file:/data")
    return f"/{absolute[1]}"


def filesystem(path: str) -> tuple[pafs.FileSystem, str]:
    """Return the Arrow filesystem of a path or URI, and the path within that filesystem."""
    local = local_path(path)
    if local is not None:
        return pafs.LocalFileSystem(), local
    reached = reach(path) or reach_hdfs(path)
    if reached is not None:
        return reached
    if path.startswith(("gs://", "gcs://")):
        path = f"{path}{'&' if '?' in path else '?'}retry_limit_seconds={RETRY_SECONDS}"
    try:
        resolved = pafs.FileSystem.from_uri(path)
    except (pa.ArrowException, OSError) as error:
        advice = "" if authority_of(path) is None else f"; {INSTALL}"
        raise SourceError(f"cannot reach {path}: {error}{advice}") from None
    return resolved[0], resolved[1]


def stamp_of(path: str) -> int:
    """Return a number that identifies the file at a path, in addition to its size and time.

    For a local file it is a hash of the inode and its change time, so it changes even if the modification time is set back.
    For a file in a bucket or on HDFS it changes with the bucket's endpoint or the cluster's addresses.
    """
    local = local_path(path)
    if local is None:
        store = store_of(path) or cluster_of(path)
        return 0 if store is None else store.stamp
    try:
        status = os.stat(local)
    except OSError:  # the file may exist on another machine only
        return 0
    return hash((status.st_ino, status.st_ctime_ns))


def modified_ms(path: str) -> int:
    """Return the modification time of a local file in milliseconds; 0 on other filesystems.

    Raises SourceError if the file does not exist.
    """
    local = local_path(path)
    if local is None:
        return 0
    try:
        return os.stat(local).st_mtime_ns // 1_000_000
    except OSError as error:
        raise SourceError(f"cannot read {local}: {error.strerror}") from None


def check_unchanged(file: DataFile) -> None:
    """Raise SourceError if a local file was removed or changed since the query was planned."""
    path = local_path(file.path)
    if path is None:
        return
    try:
        status = os.stat(path)
    except OSError:
        raise missing_error(path) from None
    if is_changed(file, status):
        raise changed_error(path)


def check_remote(file: DataFile, fs: pafs.FileSystem, inner: str) -> None:
    """Raise SourceError if a file on another filesystem was removed or changed since the query was planned.

    inner: the path within ``fs``. Files of table formats have no known time and are never overwritten. For them, only the
    stamp is checked, because the path may lead to another bucket now.
    """
    if file.stamp and stamp_of(file.path) != file.stamp:
        raise changed_error(file.path)
    if not file.modified_ms:
        return
    info = fs.get_file_info(inner)
    if info.type == pafs.FileType.NotFound:
        raise missing_error(file.path)
    # Object stores return seconds or milliseconds, depending on the kind of request; HDFS always returns milliseconds.
    unit = 1000 if authority_of(file.path) is None else 1
    same_time = info_modified_ms(info) // unit == file.modified_ms // unit
    if info.size != file.size or not same_time:
        raise changed_error(file.path)


def missing_error(path: str) -> SourceError:
    """Return the error for a file that does not exist any more."""
    return SourceError(f"{path} does not exist any more; it did when the query was planned")


def changed_error(path: str) -> SourceError:
    """Return the error for a file that has changed."""
    return SourceError(f"{path} has changed since the query was planned; plan the query again")


def is_changed(file: DataFile, status: os.stat_result) -> bool:
    """Return whether a local file has another size or time than when the query was planned."""
    return status.st_size != file.size or status.st_mtime_ns // 1_000_000 != file.modified_ms


def check_distinct_names(names: Sequence[str], case_sensitive: bool) -> None:
    """Raise Unsupported if files that are read by path have two columns with the same name for the session."""
    if len({name if case_sensitive else name.lower() for name in names}) < len(names):
        raise Unsupported("columns whose names are equal or differ only in case are not supported")


def check_no_case_difference(column: str, names: Collection[str], path: str) -> None:
    """Raise SourceError if a file lacks a column but has one that differs only in case, which Spark might read."""
    if column.lower() in {n.lower() for n in names}:
        raise SourceError(f"{path} has a column that differs from {column} only in case")


def info_modified_ms(info: pafs.FileInfo) -> int:
    """Return the modification time of a file on any filesystem; 0 if it is not known."""
    return 0 if info.mtime_ns is None else int(info.mtime_ns // 1_000_000)
