"""Files: listing paths, Hive-style partition directories, opening, and noticing that a file has changed."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.fs as pafs

from kquery_spark.errors import SourceError
from kquery_spark.sources.base import DataFile
from kquery_spark.types import names as t

_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def local_path(path: str) -> str | None:
    """The path on this machine's filesystem, or None for another filesystem."""
    if path.startswith("file:"):
        return unquote(urlparse(path).path)
    return None if "://" in path else path


def filesystem(path: str) -> tuple[pafs.FileSystem, str]:
    """The Arrow filesystem of a path or URI, and the path inside it."""
    local = local_path(path)
    if local is not None:
        return pafs.LocalFileSystem(), local
    try:
        return pafs.FileSystem.from_uri(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(f"cannot reach {path}: {error}") from None


def check_unchanged(file: DataFile) -> None:
    """Raise SourceError when a local file is gone or not what it was when the query was planned."""
    path = local_path(file.path)
    if path is None:
        return
    try:
        status = os.stat(path)
    except OSError:
        raise SourceError(f"{path} does not exist any more; it did when the query was planned") from None
    if status.st_size != file.size or status.st_mtime_ns // 1_000_000 != file.modified_ms:
        raise SourceError(f"{path} has changed since the query was planned; plan the query again")


def list_files(
    paths: Sequence[str], suffixes: tuple[str, ...] = ()
) -> tuple[list[DataFile], dict[str, list[str | None]]]:
    """Data files under paths, directories and globs, and the raw Hive partition values by column name.

    Hidden files (leading ``_`` or ``.``) are skipped, as Spark skips them. Files are in path order.
    """
    files: list[DataFile] = []
    raw: list[dict[str, str | None]] = []
    for path in paths:
        found = _expand(path)
        if not found:
            raise SourceError(f"no such file or directory: {path}")
        for root, name in found:
            if suffixes and not name.endswith(suffixes) and name != root:
                continue
            status = os.stat(name)
            files.append(DataFile(os.path.abspath(name), status.st_size, status.st_mtime_ns // 1_000_000))
            raw.append(_hive_values(os.path.relpath(name, root) if name != root else ""))
    keys = list(raw[0]) if raw else []
    if any(list(values) != keys for values in raw):
        raise SourceError(f"the files under {', '.join(paths)} have different partition columns")
    return files, {key: [values[key] for values in raw] for key in keys}


def _expand(path: str) -> list[tuple[str, str]]:
    local = local_path(path)
    if local is None:
        raise SourceError(f"{path}: listing this filesystem is not supported; give local paths")
    if os.path.isfile(local):
        return [(local, local)]
    roots = [local] if os.path.isdir(local) else sorted(glob.glob(local))
    found = []
    for root in roots:
        if os.path.isfile(root):
            found.append((root, root))
            continue
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(f for f in folders if not f.startswith(("_", ".")) or "=" in f)
            found += [(root, os.path.join(folder, n)) for n in sorted(names) if not n.startswith(("_", "."))]
    return found


def _hive_values(relative: str) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    for part in os.path.dirname(relative).split(os.sep):
        if "=" in part:
            key, value = part.split("=", 1)
            values[key] = None if value == _HIVE_NULL else unquote(value)
    return values


def infer_partitions(raw: dict[str, list[str | None]]) -> tuple[list[pa.Field], list[tuple[Any, ...]]]:
    """Types (int, bigint, double or string, as Spark infers them) and typed values, one tuple a file."""
    fields, columns = [], []
    for name, texts in raw.items():
        dtype, values = _typed(texts)
        fields.append(pa.field(name, dtype))
        columns.append(values)
    return fields, list(zip(*columns, strict=True)) if columns else []


def _typed(texts: list[str | None]) -> tuple[pa.DataType, list[Any]]:
    present = [x for x in texts if x is not None]
    try:
        numbers = [None if x is None else int(x) for x in texts]
        widest = max((abs(n) for n in numbers if n is not None), default=0)
        if all(x.lstrip("-").isdigit() for x in present) and widest < 2**63:
            return (t.INT if widest < 2**31 else t.LONG), numbers
    except ValueError:
        pass
    return t.STRING, list(texts)


def constant(value: Any, dtype: pa.DataType, length: int) -> pa.Array:
    """A partition column: one value for every row of a file (strings as a one-entry dictionary)."""
    if dtype == t.STRING and value is not None:
        indices = pa.array([0], pa.int32()).take(pa.repeat(pa.scalar(0, pa.int64()), length))
        return pa.DictionaryArray.from_arrays(indices, pa.array([value], t.STRING))
    if value is None:
        return pa.nulls(length, dtype)
    return pa.repeat(pa.scalar(value).cast(dtype), length)
