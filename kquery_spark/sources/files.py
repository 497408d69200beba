"""Lists files of paths, globs and partition directories, finds their filesystems, and detects changed files."""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, NoReturn
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
from kquery_spark.types.vector import fill

# Matches ``s3://a`` and ``dbfs:/a``, but not a file name with a colon (``a:b``) or a drive letter (``c:/a``).
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_WILDCARD = re.compile(r"[*?\[{]")
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


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
    same_time = _milliseconds(info) // unit == file.modified_ms // unit
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


def list_files(paths: Sequence[str]) -> tuple[list[DataFile], dict[str, list[str | None]]]:
    """List the data files of paths, directories and globs, and their raw Hive partition values by column name.

    The list is the same as in Spark: it has no hidden files (leading ``_`` or ``.``), and for a directory it has either the
    files directly in it or those of its partition directories. Files are in path order.
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
    """List the data files of a path, with their paths relative to the listed root and their raw partition values."""
    listed = _list_local(path) if local_path(path) is not None else _list_remote(path)
    if not listed:
        raise SourceError(f"no such file or directory: {path}")
    files = [(file, relative, _hive_values(relative, file.path)) for file, relative in listed]
    if any(values for _, _, values in files):
        return files
    # Without partition columns, Spark does not read subdirectories.
    return [(file, relative, values) for file, relative, values in files if "/" not in relative]


def partitioned_files(paths: Sequence[str], tz: str = "UTC") -> tuple[list[DataFile], list[pa.Field]]:
    """List data files with typed partition values, and return the partition columns."""
    files, raw = list_files(paths)
    if not files:
        raise SourceError(f"no data files under {', '.join(paths)}")
    fields, values = infer_partitions(raw, tz)
    if fields:
        files = [replace(f, partition=v) for f, v in zip(files, values, strict=True)]
    return files, fields


def with_partitions(columns: Sequence[pa.Field], partitions: Sequence[pa.Field]) -> list[pa.Field]:
    """Return a table's columns: the columns of its files, then the partition columns.

    A column that is both keeps its position in the files, but has the type and the values of the partition column, as in
    Spark.
    """
    typed = {f.name: f for f in partitions}
    names = {c.name for c in columns}
    return [*(typed.get(c.name, c) for c in columns), *(f for f in partitions if f.name not in names)]


def partition_range(file: DataFile, partitions: Sequence[str], column: str, rows: int) -> ColumnRange | None:
    """Return the range of a partition column in a file, which is its only value; None for other columns."""
    if column not in partitions:
        return None
    value = file.partition[list(partitions).index(column)]
    return ColumnRange(value, value, rows if value is None else 0)


def check_no_case_difference(column: str, names: Collection[str], path: str) -> None:
    """Raise SourceError if a file lacks a column but has one that differs only in case, which Spark might read."""
    if column.lower() in {n.lower() for n in names}:
        raise SourceError(f"{path} has a column that differs from {column} only in case")


def _hidden(name: str) -> bool:
    return (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_")


def _list_local(path: str) -> list[tuple[DataFile, str]]:
    """List local files with their paths relative to the listed root; a relative path without a slash is directly in it."""
    local = local_path(path) or path
    if os.path.exists(local):
        if _hidden(os.path.basename(local)) and not os.path.isdir(local):
            raise SourceError(f"{path} is a hidden file, which Spark does not read")
        return _local_files(local)
    roots = {root for pattern in _expand_glob(local) for root in _matches_of_glob(pattern)}
    # As in Spark, a glob can match hidden directories, but not hidden files.
    visible = sorted(root for root in roots if os.path.isdir(root) or not _hidden(os.path.basename(root)))
    return [file for root in visible for file in _local_files(root)]


def _matches_of_glob(pattern: str) -> list[str]:
    """Return the local paths that match a glob. Unlike in Python's ``glob``, wildcards also match a leading dot."""
    # Start at the root, or for a relative pattern at "", the current directory, and match one directory level at a time.
    matches = [pattern[: len(pattern) - len(pattern.lstrip("/"))]]
    for part in pattern.strip("/").split("/"):
        paths = []
        for directory in matches:
            names = [part] if _WILDCARD.search(part) is None else fnmatch.filter(_names_in(directory), part)
            paths += [path for name in names if os.path.lexists(path := os.path.join(directory, name))]
        matches = paths
    return matches


def _names_in(directory: str) -> list[str]:
    try:
        return os.listdir(directory or ".")
    except (NotADirectoryError, FileNotFoundError):
        # A file, a link without a target, or a directory that was removed in the meantime.
        return []
    except OSError as error:
        _raise_unlisted(error)


def _expand_glob(pattern: str) -> list[str]:
    """Rewrite a Hadoop glob as a list of Python globs: ``{a,b}[^c]`` becomes ``a[!c]`` and ``b[!c]``.

    Raises SourceError for a backslash, which escapes the next character in Hadoop's globs, but not in Python's.
    """
    if "\\" in pattern:
        raise SourceError(f"cannot list {pattern}: globs with a backslash are not supported")
    braces = re.search(r"\{([^{}]*)\}", pattern)
    if braces is None:
        return [pattern.replace("[^", "[!")]
    before, after = pattern[: braces.start()], pattern[braces.end() :]
    return [each for part in braces[1].split(",") for each in _expand_glob(before + part + after)]


def _local_files(root: str) -> list[tuple[DataFile, str]]:
    """List the files below a directory in path order, following symbolic links. For a file, list the file itself."""
    if not os.path.isdir(root):  # a file, or a symbolic link without a target that matched a glob
        file = _stat(root)
        return [] if file is None else [(file, os.path.basename(root))]
    files = []
    # By directory: the directories on the way to it, without symbolic links. Links can lead back to one of them.
    ancestors = {root: frozenset({os.path.realpath(root)})}
    for directory, directories, names in os.walk(root, onerror=_raise_unlisted, followlinks=True):
        directories[:] = [f for f in directories if not _hidden(f)]
        for full in (os.path.join(directory, name) for name in directories):
            real = os.path.realpath(full)
            if real in ancestors[directory]:
                raise SourceError(f"cannot list {full}: it is a link to a directory that contains it")
            ancestors[full] = ancestors[directory] | {real}
        for name in names:
            full = os.path.join(directory, name)
            file = None if _hidden(name) else _stat(full)
            if file is not None:
                files.append((file, os.path.relpath(full, root).replace(os.sep, "/")))
    return sorted(files, key=lambda pair: pair[0].path)


def _raise_unlisted(error: OSError) -> NoReturn:
    raise SourceError(f"cannot list {error.filename}: {error.strerror}") from None


def _stat(path: str) -> DataFile | None:
    """Return the size and time of a file; None if it does not exist, for example if a link has no target."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
    absolute = os.path.abspath(path)
    return DataFile(absolute, status.st_size, status.st_mtime_ns // 1_000_000, stamp=stamp_of(absolute))


def _list_remote(path: str) -> list[tuple[DataFile, str]]:
    """List files on another filesystem like ``_list_local``; the wildcards of a glob match within one directory level."""
    fs, inner = filesystem(path)
    if "?" in path:
        raise SourceError(
            f"cannot list {path}: pass the parameters after the question mark as storage_options"
        )
    # Arrow lists paths within the filesystem, but files need full URIs, so the prefix in which the two differ must be
    # exchanged. It is found from the common end. Example: the URI abfss://c@account/t/2024 has the inner path c/t/2024. Both
    # end with "/t/2024", so the prefixes are "abfss://c@account" and "c", and Arrow's c/t/2024/a.csv becomes
    # abfss://c@account/t/2024/a.csv.
    pairs = zip(reversed(path), reversed(inner), strict=False)
    common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    prefix, inner_prefix = path[: len(path) - common], inner[: len(inner) - common]
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
    wildcard = _WILDCARD.search(inner)
    if wildcard is None:
        info = fs.get_file_info(inner)
        # An empty object may be the marker of a directory, see _remote_files.
        if _hidden(info.base_name) and info.type == pafs.FileType.File and info.size:
            raise SourceError(f"{inner} is a hidden file, which Spark does not read")
        return [] if info.type == pafs.FileType.NotFound else [info]
    patterns = _expand_glob(inner)  # raises SourceError for some globs, so it comes before the requests
    fixed = inner[: wildcard.start()].rpartition("/")[0]
    infos = fs.get_file_info(pafs.FileSelector(fixed or "/", recursive=True))
    directories = _directories_of(infos)
    matches = [
        info
        for info in infos
        if (info.path in directories or info.type == pafs.FileType.Directory or not _hidden(info.base_name))
        and any(_matches_glob(info.path, pattern) for pattern in patterns)
    ]
    return sorted(matches, key=lambda i: i.path)


def _matches_glob(path: str, pattern: str) -> bool:
    """Return whether each directory of a path matches the pattern's directory at the same depth."""
    parts, patterns = path.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatch.fnmatchcase, parts, patterns))


def _remote_files(fs: pafs.FileSystem, root: pafs.FileInfo) -> list[tuple[pafs.FileInfo, str]]:
    """List the files below a root, or the root itself if it is a file.

    On Azure, Hadoop marks directories by empty objects, which Arrow reports as files; they are left out.
    """
    if root.type == pafs.FileType.File and root.size:
        return [(root, root.base_name)]
    infos = fs.get_file_info(pafs.FileSelector(root.path, recursive=True, allow_not_found=True))
    directories = _directories_of(infos)
    files = []
    for info in infos:
        relative = info.path[len(root.path) :].lstrip("/")
        is_marker = not info.size and info.path in directories
        if info.type == pafs.FileType.File and not is_marker and not any(map(_hidden, relative.split("/"))):
            files.append((info, relative))
    if root.type == pafs.FileType.File and not files:
        return [(root, root.base_name)]
    return sorted(files, key=lambda pair: pair[0].path)


def _directories_of(infos: Sequence[pafs.FileInfo]) -> set[str]:
    """Return the paths of all directories that contain one of these files or directories."""
    return {str(directory) for info in infos for directory in PurePosixPath(info.path).parents}


def _milliseconds(info: pafs.FileInfo) -> int:
    return 0 if info.mtime_ns is None else int(info.mtime_ns // 1_000_000)


def _hive_values(relative: str, path: str) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    directories = relative.split("/")[:-1]
    named = [part for part in directories if "=" in part]
    if named and len(named) < len(directories):
        raise SourceError(f"{path} is below both partition directories and other directories")
    for part in named:
        key, value = part.split("=", 1)
        if not key or not value:
            missing = "VALUE" if key else "NAME"
            raise SourceError(f"[EMPTY_PARTITION_COLUMN_{missing}] {path} is below the directory {part}")
        if _unescaped(key) in values:
            raise SourceError(f"[COLUMN_ALREADY_EXISTS] {path} is below two directories for column {key}")
        values[_unescaped(key)] = None if value == _HIVE_NULL else _unescaped(value)
    return values


def _unescaped(name: str) -> str:
    """Unescape the name of a partition directory like Spark's ``unescapePathName``: ``%E9`` is the character U+00E9."""
    return unquote(name, encoding="latin-1")


def constant(value: Any, dtype: pa.DataType, length: int) -> pa.Array:
    """Build a column with one value for all rows; a string becomes a dictionary with one entry."""
    if value is None:
        return pa.nulls(length, dtype)
    if dtype == t.STRING:
        indices = pa.repeat(pa.scalar(0, pa.int32()), length)
        return pa.DictionaryArray.from_arrays(indices, pa.array([value], t.STRING))
    storage = pa.int32() if dtype == t.DATE else pa.int64()
    if pa.types.is_temporal(dtype) and isinstance(value, int):
        return fill(pa.scalar(value, storage), length).view(dtype)
    return fill(pa.scalar(value, dtype), length)
