"""Lists the data files of paths, globs and partition directories, on local and other filesystems, as Spark does."""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.fs as pafs

from kquery_spark.errors import SourceError
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.files import filesystem, info_modified_ms, literal_local_path, stamp_of
from kquery_spark.sources.object_stores.connections import error_text
from kquery_spark.sources.partitions import infer_partitions, values_in_path
from kquery_spark.sources.request_limit import within_limit

_WILDCARD = re.compile(r"[*?\[{\\]")
SUMMARY_NAMES = ("_common_metadata", "_metadata")
"""The names of files that have the schema of all files of a table, in the order in which Spark prefers them."""


class ListedFiles(NamedTuple):
    """The files of a table without a catalog.

    raw_partitions: for each partition column, the raw value of each data file. summaries: the files that have the table's
    schema and no rows (``_common_metadata`` and ``_metadata``).
    """

    data: list[DataFile]
    raw_partitions: dict[str, list[str | None]]
    summaries: list[DataFile]


class PartitionedFiles(NamedTuple):
    """The files of a table, whose data files have typed partition values. summaries: as in ``ListedFiles``."""

    data: list[DataFile]
    partition_columns: list[pa.Field]
    summaries: list[DataFile]


def list_files(paths: Sequence[str]) -> ListedFiles:
    """List the files of paths, directories and globs.

    The list is the same as in Spark: it has no hidden files (leading ``_`` or ``.``), and for a directory it has either the
    files directly in it or those of its partition directories. Files are in the order of the given paths, and below each of
    them in path order.
    """
    found = [file for path in paths for file in _files_below(path)]
    data = [each for each in found if not each.is_summary]
    keys = list(data[0].raw_partition) if data else []
    if any(list(each.raw_partition) != keys for each in data):
        raise SourceError(f"the files under {', '.join(paths)} have different partition columns")
    if keys:
        roots = {each.file.path.removesuffix(each.relative) for each in data}
        if len(roots) > 1:
            raise SourceError(
                "[CONFLICTING_DIRECTORY_STRUCTURES] there are partition directories below "
                f"{' and '.join(sorted(roots))}"
            )
        # Spark reads a partition directory once even if several paths contain it, but plain files once for each path.
        data = list({each.file.path: each for each in data}.values())
    return ListedFiles(
        [each.file for each in data],
        {key: [each.raw_partition[key] for each in data] for key in keys},
        [each.file for each in found if each.is_summary],
    )


class _FoundFile(NamedTuple):
    """A file below a path. relative: its path below the listed root. raw_partition: raw partition values by column."""

    file: DataFile
    relative: str
    raw_partition: dict[str, str | None]

    @property
    def is_summary(self) -> bool:
        """True for ``_metadata``, ``_common_metadata``, and names that begin like them: they have a schema and no rows."""
        name = self.relative.rpartition("/")[2]
        return name.startswith(SUMMARY_NAMES) and "=" not in name


def _files_below(path: str) -> list[_FoundFile]:
    """List the data files and the summary files of a path."""
    local = literal_local_path(path)
    listed = _list_remote(path) if local is None else _list_local(local)
    if not listed:
        is_file = local is not None and os.path.exists(local)
        hint = "; the path is a glob, as in Spark; write ? instead of characters such as [" if is_file else ""
        raise SourceError(f"no such file or directory: {path}{hint}")
    found = [_FoundFile(file, relative, values_in_path(relative, file.path)) for file, relative in listed]
    if any(each.raw_partition for each in found if not each.is_summary):
        return found
    # Without partition columns, Spark does not read subdirectories.
    return [each for each in found if "/" not in each.relative]


def partitioned_files(paths: Sequence[str], tz: str = "UTC") -> PartitionedFiles:
    """List files whose data files have typed partition values. Raises SourceError if there are no data files."""
    files, raw, summaries = list_files(paths)
    if not files:
        raise SourceError(f"no data files under {', '.join(paths)}")
    fields, values = infer_partitions(raw, tz)
    if fields:
        files = [replace(f, partition=v) for f, v in zip(files, values, strict=True)]
    return PartitionedFiles(files, fields, summaries)


def _hidden(name: str) -> bool:
    """Return whether Spark does not list a file or directory (``HadoopFSUtils.shouldFilterOutPathName``)."""
    if name.startswith(SUMMARY_NAMES):
        return False
    return (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_")


def is_glob(path: str) -> bool:
    """Return whether a path is a glob, so that it does not match a file with the same name."""
    return _WILDCARD.search(path) is not None


def _list_local(path: str) -> list[tuple[DataFile, str]]:
    """List local files with their paths relative to the listed root; a relative path without a slash is directly in it.

    As in Spark, a path with wildcards is a glob even if there is a file with this name.
    """
    if not is_glob(path) and os.path.exists(path):
        if _hidden(os.path.basename(path)) and not os.path.isdir(path):
            raise SourceError(f"{path} is a hidden file, which Spark does not read")
        return _local_files(path)
    roots = {root for pattern in _expand_glob(path) for root in _matches_of_glob(pattern)}
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
            names = fnmatch.filter(_names_in(directory), part) if is_glob(part) else [part]
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
                    info_modified_ms(info),
                    stamp=stamp_of(path),
                ),
                relative,
            )
            for info, relative in listed
        ]
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"cannot list {path}: {error_text(error, path)}") from None


def _remote_roots(fs: pafs.FileSystem, inner: str) -> list[pafs.FileInfo]:
    """Return the files and directories that a path or glob matches, except hidden files.

    Raises SourceError for a path, other than a glob, that is a hidden file.
    """
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
    # This includes the directories that Arrow reports as empty files (see ``_remote_files``).
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
