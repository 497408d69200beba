"""Files of the positions of deleted rows, as Iceberg's tables of version 2 have them.

Iceberg's specification, "Position Delete Files".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kquery_spark.errors import SourceError
from kquery_spark.sources.files import filesystem
from kquery_spark.sources.parquet.checked_footer import checked_reader
from kquery_spark.sources.parquet.footer import read_footer
from kquery_spark.types.vector import Int64s

# Files that are kept in memory, as one may speak of all data files of a partition, which are read one after the other.
_MAX_CACHED = 8


@dataclass(frozen=True)
class PositionDeletes:
    """The deleted rows of one data file.

    data_path: the path of the data file as the files of positions write it. paths: of these files, which may speak of other
    data files, too.
    """

    data_path: str
    paths: tuple[str, ...]

    @property
    def count(self) -> int | None:
        """How many rows are deleted, which no file says without being read."""
        return None

    def positions(self) -> Int64s:
        """The numbers of the deleted rows in rising order; SourceError where a file cannot be read."""
        parts = [known[self.data_path] for path in self.paths if self.data_path in (known := _read(path))]
        positions = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        is_rising = bool((positions[1:] > positions[:-1]).all())
        return positions if is_rising else np.unique(positions)


@lru_cache(maxsize=_MAX_CACHED)
def _read(path: str) -> dict[str, Int64s]:
    """The positions by the path of the data file."""
    fs, inner = filesystem(path)
    parts: defaultdict[str, list[Int64s]] = defaultdict(list)
    try:
        with fs.open_input_file(inner) as opened:
            footer = read_footer(opened)
            metadata = None if footer is None else checked_reader(footer, opened.size()).metadata
            # without a footer pyarrow raises its error
            file = pq.ParquetFile(opened, metadata=metadata, read_dictionary=["file_path"])
            for group in range(file.num_row_groups):
                for data_path, positions in _of_group(file, group, path):
                    parts[data_path].append(positions)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise SourceError(f"cannot read {path}, a file of deleted rows: {error}") from None
    return {data_path: np.concatenate(some) for data_path, some in parts.items()}


def _of_group(file: pq.ParquetFile, group: int, path: str) -> Iterator[tuple[str, Int64s]]:
    """The positions of a row group by the path of the data file, which is not read where statistics say that it is one."""
    only = _only_path(file.metadata.row_group(group))
    table = file.read_row_group(group, ["pos"] if only is not None else ["file_path", "pos"])
    if any(column.null_count for column in table.columns):
        raise SourceError(f"{path}, a file of deleted rows, lacks a path or a position")
    positions = table["pos"].to_numpy().astype(np.int64)
    if only is not None:
        yield only, positions
        return
    if not len(positions):
        return
    paths = table["file_path"].combine_chunks().dictionary_encode()
    codes = paths.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(paths.dictionary)))
    yield from zip(paths.dictionary.to_pylist(), np.split(positions[order], ends[:-1]), strict=True)


def _only_path(group: pq.RowGroupMetaData) -> str | None:
    """The path that all rows of a group have; None where there are several, or it is not known."""
    for index in range(group.num_columns):
        column = group.column(index)
        statistics = column.statistics
        if column.path_in_schema == "file_path" and statistics is not None and statistics.has_min_max:
            # a bound that was cut is below or above all values
            low, high = statistics.min, statistics.max
            return low if low == high and isinstance(low, str) and statistics.null_count == 0 else None
    return None
