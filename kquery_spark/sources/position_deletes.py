"""Files of the positions of deleted rows, as Iceberg's tables of version 2 have them.

Iceberg's specification, "Position Delete Files".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kquery_spark.errors import SourceError
from kquery_spark.sources.files import filesystem
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
        return _positions(self)


@lru_cache(maxsize=_MAX_CACHED)
def _positions(deletes: PositionDeletes) -> Int64s:
    none = np.zeros(0, np.int64)
    return np.unique(
        np.concatenate([none, *(_read(path).get(deletes.data_path, none) for path in deletes.paths)])
    )


@lru_cache(maxsize=_MAX_CACHED)
def _read(path: str) -> dict[str, Int64s]:
    """The positions by the path of the data file."""
    fs, inner = filesystem(path)
    try:
        table = pq.read_table(
            inner,
            filesystem=fs,
            columns=["file_path", "pos"],
            partitioning=None,
            read_dictionary=["file_path"],
        )
        if table["pos"].null_count or table["file_path"].null_count:
            raise SourceError(f"{path}, a file of deleted rows, lacks a path or a position")
        positions = table["pos"].to_numpy().astype(np.int64)
        paths = table["file_path"].combine_chunks().dictionary_encode()
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise SourceError(f"cannot read {path}, a file of deleted rows: {error}") from None
    codes = paths.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(paths.dictionary)))
    return dict(zip(paths.dictionary.to_pylist(), np.split(positions[order], ends[:-1]), strict=True))
