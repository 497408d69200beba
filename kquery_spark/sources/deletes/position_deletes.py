"""Reads position delete files of Iceberg tables of version 2 (Iceberg's specification, "Position Delete Files")."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kquery_spark.cached_property import cached_property
from kquery_spark.errors import SourceError
from kquery_spark.sources.files import filesystem, local_path
from kquery_spark.sources.lru_cache import LruCache
from kquery_spark.sources.object_stores.connections import error_text
from kquery_spark.sources.parquet.checked_footer import checked_reader
from kquery_spark.sources.parquet.flat_chunk import has_delta_strings
from kquery_spark.sources.parquet.footer import read_footer
from kquery_spark.sources.request_limit import within_limit
from kquery_spark.types.vector import Int64s

R = TypeVar("R")
_ENTRY_BYTES = 250  # estimated size of a dictionary entry, a string and an array without their contents


@dataclass(frozen=True)
class PositionsByPath:
    """The content of a position delete file. by_path: the positions by the path of the data file."""

    by_path: dict[str, Int64s]

    @cached_property
    def nbytes(self) -> int:
        """The estimated size in memory."""
        return sum(len(path) + positions.nbytes + _ENTRY_BYTES for path, positions in self.by_path.items())


POSITION_DELETE_CACHE: LruCache[str, PositionsByPath] = LruCache(256 << 20)
"""Delete files by path. Cached, because one file may list rows of all data files of a partition, which are read in turn.

If the files of one scan exceed the limit, each of them is read again for each data file.
"""


@dataclass(frozen=True)
class PositionDeletes:
    """The position deletes of one data file.

    data_path: the path of the data file as it is written in the delete files. paths: the paths of the delete files, which
    may also list rows of other data files.
    """

    data_path: str
    paths: tuple[str, ...]

    @property
    def count(self) -> int | None:
        """None: the number of deleted rows is unknown before the files are read."""
        return None

    def positions(self) -> Int64s:
        """Read the positions of the deleted rows in ascending order; raises SourceError if a file cannot be read."""
        by_path = map(_cached_positions, self.paths)
        parts = [positions[self.data_path] for positions in by_path if self.data_path in positions]
        positions = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        is_ascending = bool((positions[1:] > positions[:-1]).all())
        return positions if is_ascending else np.unique(positions)


def _cached_positions(path: str) -> dict[str, Int64s]:
    """Return the positions in a delete file by the path of the data file; reads the file unless it is cached."""
    file = POSITION_DELETE_CACHE.get(path)
    if file is None:
        file = PositionsByPath(_read_file(path))
        POSITION_DELETE_CACHE.put(path, file)
    return file.by_path


def _read_file(path: str) -> dict[str, Int64s]:
    """Read a delete file. On a remote filesystem, each step has a time limit: opening it, its footer, a row group."""
    fs, inner = filesystem(path)
    is_local = local_path(path) is not None

    def limited(request: Callable[[], R]) -> R:
        return request() if is_local else within_limit(path, request)

    parts: defaultdict[str, list[Int64s]] = defaultdict(list)
    try:
        with limited(lambda: fs.open_input_file(inner)) as opened:
            file = limited(lambda: _open_reader(opened))
            for group in range(file.num_row_groups):
                for data_path, positions in limited(partial(_read_row_group, file, group, path)):
                    parts[data_path].append(positions)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        text = error_text(error, path)
        raise SourceError(f"cannot read the position delete file {path}: {text}") from None
    return {data_path: np.concatenate(some) for data_path, some in parts.items()}


def _open_reader(opened: pa.NativeFile) -> pq.ParquetFile:
    footer = read_footer(opened)
    metadata = None if footer is None else checked_reader(footer, opened.size()).metadata
    # If the footer cannot be read, pyarrow tries again and raises an error that says why.
    return pq.ParquetFile(opened, metadata=metadata, read_dictionary=_dictionary_columns(metadata))


def _dictionary_columns(metadata: Any) -> list[str]:
    """Return the columns to read as dictionaries: the paths, because they repeat, or none if pyarrow cannot do that."""
    columns = range(metadata.num_columns if metadata is not None and metadata.num_row_groups else 0)
    paths = [i for i in columns if metadata.row_group(0).column(i).path_in_schema == "file_path"]
    return [] if any(has_delta_strings(metadata, i) for i in paths) else ["file_path"]


def _read_row_group(file: pq.ParquetFile, group: int, path: str) -> list[tuple[str, Int64s]]:
    """Return each data file's path with its positions. If statistics show a single path, file_path is not read."""
    only = _only_path(file.metadata.row_group(group))
    table = file.read_row_group(group, ["pos"] if only is not None else ["file_path", "pos"])
    if any(column.null_count for column in table.columns):
        raise SourceError(f"the position delete file {path} has a row without a path or position")
    positions = table["pos"].to_numpy().astype(np.int64)
    if only is not None:
        return [(only, positions)]
    if not len(positions):
        return []
    paths = table["file_path"].combine_chunks().dictionary_encode()
    # Sort the positions by path, then cut them where the path changes.
    indices = paths.indices.to_numpy()
    order = np.argsort(indices, kind="stable")
    ends = np.cumsum(np.bincount(indices, minlength=len(paths.dictionary)))
    return list(zip(paths.dictionary.to_pylist(), np.split(positions[order], ends[:-1]), strict=True))


def _only_path(group: pq.RowGroupMetaData) -> str | None:
    """Return the path that all rows of a row group have; None if there are several or the statistics do not say."""
    for index in range(group.num_columns):
        column = group.column(index)
        statistics = column.statistics
        if column.path_in_schema == "file_path" and statistics is not None and statistics.has_min_max:
            # A truncated minimum or maximum is less or greater than all values, so the two would differ.
            low, high = statistics.min, statistics.max
            return low if low == high and isinstance(low, str) and statistics.null_count == 0 else None
    return None
