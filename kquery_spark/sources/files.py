"""Files: listing paths, globs and partition directories, opening, and noticing that a file has changed."""

from __future__ import annotations

import fnmatch
import glob
import itertools
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.fs as pafs

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.sources.base import ColumnRange, DataFile
from kquery_spark.sources.hadoop.hdfs import INSTALL, authority_of, cluster_of, reach_hdfs
from kquery_spark.sources.object_stores.connections import error_text, reach, store_of
from kquery_spark.sources.object_stores.google import RETRY_SECONDS
from kquery_spark.sources.partitions import infer_partitions
from kquery_spark.sources.request_limit import within_limit
from kquery_spark.types import names as t

# ``dbfs:/a`` too; a name with a colon is no scheme, and neither is the letter of a drive
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@contextmanager
def naming_file(path: str) -> Iterator[None]:
    """Add a file's path to the reason if the engine declines what the file contains."""
    try:
        yield
    except Unsupported as error:
        raise Unsupported(f"{error.reason} (in {path})") from None


def local_path(path: str) -> str | None:
    """The path on this machine's filesystem, or None for another filesystem."""
    if path.startswith("file:"):
        return unquote(urlparse(path).path)
    return None if _SCHEME.match(path) else path


def filesystem(path: str) -> tuple[pafs.FileSystem, str]:
    """The Arrow filesystem of a path or URI, and the path inside it."""
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
    """A number that changes with a local file whatever is done to its time: of its inode and of when that changed last.

    Of a file in a bucket or on HDFS it changes with the bucket's endpoint or the cluster's addresses.
    """
    local = local_path(path)
    if local is None:
        store = store_of(path) or cluster_of(path)
        return 0 if store is None else store.stamp
    try:
        status = os.stat(local)
    except OSError:  # of another machine
        return 0
    return hash((status.st_ino, status.st_ctime_ns))


def modified_ms(path: str) -> int:
    """When a local file was last changed, in milliseconds; SourceError if there is none. 0 on other filesystems."""
    local = local_path(path)
    if local is None:
        return 0
    try:
        return os.stat(local).st_mtime_ns // 1_000_000
    except OSError as error:
        raise SourceError(f"cannot read {local}: {error.strerror}") from None


def check_unchanged(file: DataFile) -> None:
    """Raise SourceError when a local file is gone or not what it was when the query was planned."""
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
    """Raise SourceError when a file of another filesystem is gone or not what it was when the query was planned.

    A table format's files, whose times are not known, are never written to: only their bucket may be another by now.
    """
    if file.stamp and stamp_of(file.path) != file.stamp:
        raise changed_error(file.path)
    if not file.modified_ms:
        return
    info = fs.get_file_info(inner)
    if info.type == pafs.FileType.NotFound:
        raise missing_error(file.path)
    # object stores answer in seconds or in milliseconds, depending on how they are asked; HDFS always in milliseconds
    unit = 1000 if authority_of(file.path) is None else 1
    same_time = _milliseconds(info) // unit == file.modified_ms // unit
    if info.size != file.size or not same_time:
        raise changed_error(file.path)


def missing_error(path: str) -> SourceError:
    """The error for a file that is gone."""
    return SourceError(f"{path} does not exist any more; it did when the query was planned")


def changed_error(path: str) -> SourceError:
    """The error for a file that was written to."""
    return SourceError(f"{path} has changed since the query was planned; plan the query again")


def is_changed(file: DataFile, status: os.stat_result) -> bool:
    """Whether a local file has another size or time than when the query was planned."""
    return status.st_size != file.size or status.st_mtime_ns // 1_000_000 != file.modified_ms


def list_files(paths: Sequence[str]) -> tuple[list[DataFile], dict[str, list[str | None]]]:
    """Data files under paths, directories and globs, and the raw Hive partition values by column name.

    What Spark would list: no hidden files (leading ``_`` or ``.``), and below a directory its own files or
    those of its partition directories. Files are in path order.
    """
    files: list[DataFile] = []
    raw: list[dict[str, str | None]] = []
    roots: set[str] = set()
    for path in paths:
        for file, relative, values in _data_files(path):
            files.append(file)
            raw.append(values)
            if values:
                roots.add(file.path.removesuffix(relative))
    keys = list(raw[0]) if raw else []
    if any(list(values) != keys for values in raw):
        raise SourceError(f"the files under {', '.join(paths)} have different partition columns")
    if len(roots) > 1:
        raise SourceError(
            f"[CONFLICTING_DIRECTORY_STRUCTURES] there are partition directories below {' and '.join(sorted(roots))}"
        )
    return files, {key: [values[key] for values in raw] for key in keys}


def _data_files(path: str) -> list[tuple[DataFile, str, dict[str, str | None]]]:
    """Each data file under a path, with its path below the listed root and its raw partition values."""
    listed = _local(path) if local_path(path) is not None else _remote(path)
    if not listed:
        raise SourceError(f"no such file or directory: {path}")
    files = [(file, relative, _hive_values(relative, file.path)) for file, relative in listed]
    if any(values for _, _, values in files):
        return files
    # Without partition columns Spark does not look into directories.
    return [(file, relative, values) for file, relative, values in files if "/" not in relative]


def partitioned_files(
    paths: Sequence[str], tz: str = "UTC", infer: bool = True
) -> tuple[list[DataFile], list[pa.Field]]:
    """Data files with their typed partition values, and the partition columns (string without ``infer``)."""
    files, raw = list_files(paths)
    if not files:
        raise SourceError(f"no data files under {', '.join(paths)}")
    fields, values = infer_partitions(raw, tz, infer)
    if fields:
        files = [replace(f, partition=v) for f, v in zip(files, values, strict=True)]
    return files, fields


def with_partitions(columns: Sequence[pa.Field], partitions: Sequence[pa.Field]) -> list[pa.Field]:
    """A table's columns: those of its files, then those of its paths.

    A column that is in both keeps its position and takes its type and values from the paths, as in Spark.
    """
    typed = {f.name: f for f in partitions}
    names = {c.name for c in columns}
    return [*(typed.get(c.name, c) for c in columns), *(f for f in partitions if f.name not in names)]


def partition_range(file: DataFile, partitions: Sequence[str], column: str, rows: int) -> ColumnRange | None:
    """The range of a partition column in a file: its one value; None for other columns."""
    if column not in partitions:
        return None
    value = file.partition[list(partitions).index(column)]
    return ColumnRange(value, value, rows if value is None else 0)


def differs_in_case(column: str, names: Collection[str], path: str) -> None:
    """Raise SourceError when a file lacks a column but has it in other letters (Spark may read that)."""
    if column.lower() in {n.lower() for n in names}:
        raise SourceError(f"{path} has a column that differs from {column} in upper and lower case only")


def _hidden(name: str) -> bool:
    return (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_")


def _local(path: str) -> list[tuple[DataFile, str]]:
    """Files with their paths below the listed root (no slash: directly in it)."""
    local = local_path(path) or path
    exists = os.path.exists(local)
    roots = [local] if exists else sorted(r for r in glob.glob(local) if not _hidden(os.path.basename(r)))
    return [file for root in roots for file in _local_files(root)]


def _local_files(root: str) -> Iterator[tuple[DataFile, str]]:
    if os.path.isfile(root):
        yield _stat(root), os.path.basename(root)
        return
    for directory, directories, names in os.walk(root):
        directories[:] = sorted(f for f in directories if not _hidden(f))
        for name in sorted(n for n in names if not _hidden(n)):
            full = os.path.join(directory, name)
            yield _stat(full), os.path.relpath(full, root).replace(os.sep, "/")


def _stat(path: str) -> DataFile:
    status = os.stat(path)
    whole = os.path.abspath(path)
    return DataFile(whole, status.st_size, status.st_mtime_ns // 1_000_000, stamp=stamp_of(whole))


def _remote(path: str) -> list[tuple[DataFile, str]]:
    """The same on another filesystem; ``*``, ``?`` and ``[...]`` are a glob within each directory."""
    fs, inner = filesystem(path)
    if "?" in path:
        raise SourceError(f"cannot list {path}: give what stands behind the question mark as storage_options")
    # ``abfss://container@account/a`` is ``container/a`` for Arrow
    pairs = zip(reversed(path), reversed(inner), strict=False)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    prefix, inner_prefix = path[: len(path) - same], inner[: len(inner) - same]
    try:
        listed = within_limit(
            path, lambda: [pair for root in _remote_roots(fs, inner) for pair in _remote_files(fs, root)]
        )
        return [
            (
                DataFile(
                    prefix + info.path.removeprefix(inner_prefix),
                    info.size,
                    _milliseconds(info),
                    stamp=stamp_of(path),
                ),
                relative,
            )
            for info, relative in listed
        ]
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"cannot list {path}: {error_text(error, path)}") from None


def _remote_roots(fs: pafs.FileSystem, inner: str) -> list[pafs.FileInfo]:
    wildcard = re.search(r"[*?\[]", inner)
    if wildcard is None:
        info = fs.get_file_info(inner)
        return [] if info.type == pafs.FileType.NotFound else [info]
    fixed = inner[: wildcard.start()].rpartition("/")[0]
    infos = fs.get_file_info(pafs.FileSelector(fixed or "/", recursive=True))
    matches = [i for i in infos if _matches_glob(i.path, inner) and not _hidden(i.base_name)]
    return sorted(matches, key=lambda i: i.path)


def _matches_glob(path: str, pattern: str) -> bool:
    """Whether each directory of a path matches the one of the pattern at its depth."""
    parts, patterns = path.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatch.fnmatchcase, parts, patterns))


def _remote_files(fs: pafs.FileSystem, root: pafs.FileInfo) -> list[tuple[pafs.FileInfo, str]]:
    """The files below a root, or the root if it is one.

    Hadoop marks directories of Azure by objects without content, which Arrow takes for files.
    """
    if root.type == pafs.FileType.File and root.size:
        return [(root, root.base_name)]
    infos = fs.get_file_info(pafs.FileSelector(root.path, recursive=True, allow_not_found=True))
    directories = {str(directory) for info in infos for directory in PurePosixPath(info.path).parents}
    files = []
    for info in infos:
        relative = info.path[len(root.path) :].lstrip("/")
        is_marker = not info.size and info.path in directories
        if info.type == pafs.FileType.File and not is_marker and not any(map(_hidden, relative.split("/"))):
            files.append((info, relative))
    if root.type == pafs.FileType.File and not files:
        return [(root, root.base_name)]
    return sorted(files, key=lambda pair: pair[0].path)


def _milliseconds(info: pafs.FileInfo) -> int:
    return 0 if info.mtime_ns is None else int(info.mtime_ns // 1_000_000)


def _hive_values(relative: str, path: str) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    directories = relative.split("/")[:-1]
    named = [part for part in directories if "=" in part]
    if named and len(named) < len(directories):
        raise SourceError(f"{path} is below directories of which only some are partitions")
    for part in named:
        key, value = part.split("=", 1)
        values[_unescaped(key)] = None if value == _HIVE_NULL else _unescaped(value)
    return values


def _unescaped(name: str) -> str:
    """A name of a partition directory as Spark's ``unescapePathName`` reads it: ``%E9`` is the character U+00E9."""
    return unquote(name, encoding="latin-1")


def constant(value: Any, dtype: pa.DataType, length: int) -> pa.Array:
    """A partition column: one value for every row of a file (strings as a one-entry dictionary)."""
    if value is None:
        return pa.nulls(length, dtype)
    if dtype == t.STRING:
        indices = pa.repeat(pa.scalar(0, pa.int32()), length)
        return pa.DictionaryArray.from_arrays(indices, pa.array([value], t.STRING))
    storage = pa.int32() if dtype == t.DATE else pa.int64()
    if pa.types.is_temporal(dtype) and isinstance(value, int):
        return pa.repeat(pa.scalar(value, storage), length).view(dtype)
    return pa.repeat(pa.scalar(value, dtype), length)
