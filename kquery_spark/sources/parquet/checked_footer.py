"""Validates a Parquet footer before pyarrow's accessors of column chunks are used.

pyarrow does not translate the C++ exceptions of these accessors (``row_group(g).column(c)``, ``.compression``,
``.statistics``), so a damaged byte would end the process with SIGABRT. This module checks everything that they rely on, once
for each opened file. The code that can throw is in parquet/metadata.cc, size_statistics.cc and statistics.cc of Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kquery_spark.kernels.parquet_page_table import INT96_BYTES
from kquery_spark.sources.parquet.footer import MAGIC, PHYSICAL_TYPES, as_file
from kquery_spark.sources.parquet.footer_tables import ABSENT, Chunk, FooterTables, Group, footer_tables
from kquery_spark.sources.parquet.thrift_compact import Cursor, binary
from kquery_spark.types.vector import Int64s

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}  # bytes of a value in statistics
_BYTE_ARRAY, _INT96 = PHYSICAL_TYPES.index("BYTE_ARRAY"), PHYSICAL_TYPES.index("INT96")
_LAST_CODEC = 7  # LZ4_RAW
_STATISTICS = (Chunk.OLD_MAX, Chunk.OLD_MIN, Chunk.MAX, Chunk.MIN)


class _Leaves(NamedTuple):
    """Facts about each leaf from the schema.

    types: indexes into PHYSICAL_TYPES. widths: the bytes of a minimum or maximum in statistics; 0 if the size may vary.
    """

    paths: list[str]
    types: Int64s
    widths: Int64s
    definition_levels: Int64s
    repetition_levels: Int64s


def checked_reader(footer: bytes, file_size: int | None) -> pq.ParquetFile:
    """Parse a serialized FileMetaData; the metadata of the returned reader is safe to use.

    file_size: size of the Parquet file in bytes; None for a summary file, whose column chunks are in other files. Raises
    ValueError or an Arrow error with the cause.
    """
    try:
        reader = pq.ParquetFile(pa.BufferReader(MAGIC + as_file(footer)), coerce_int96_timestamp_unit="us")
        _check(footer, reader.metadata, file_size)
    except UnicodeDecodeError:
        raise ValueError("a name in its footer is not UTF-8") from None
    return reader


def _check(footer: bytes, metadata: Any, file_size: int | None) -> None:
    """Raise ValueError for the first problem of the footer. metadata: the footer as pyarrow parsed it."""
    str(metadata.created_by)  # raises UnicodeDecodeError here, where it is expected
    leaves = _leaves(metadata)
    try:
        tables = footer_tables(footer, metadata.num_row_groups, len(leaves.paths))
    except ValueError as error:
        raise ValueError(f"its footer is damaged: {error}") from None
    _check_groups(tables.groups)
    for problem, where in [*_problems(tables, leaves, file_size), _paths(footer, tables, leaves)]:
        if where.any():
            group, leaf = (int(found[0]) for found in np.nonzero(where))
            raise ValueError(
                f"its footer is damaged: column {leaves.paths[leaf]} in row group {group} {problem}"
            )


def _leaves(metadata: Any) -> _Leaves:
    leaves = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    rows = [
        (
            PHYSICAL_TYPES.index(leaf.physical_type),
            leaf.length
            if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY"
            else _WIDTHS.get(leaf.physical_type, 0),
            leaf.max_definition_level,
            leaf.max_repetition_level,
        )
        for leaf in leaves
    ]
    columns = np.array(rows, np.int64).reshape(len(rows), 4).T
    return _Leaves([leaf.path for leaf in leaves], *columns)


def _check_groups(groups: Int64s) -> None:
    for number, group in enumerate(groups):
        if group[Group.ROWS] < 0 or group[Group.BYTES] < 0:
            raise ValueError(
                f"its footer is damaged: row group {number} has no or a negative number of rows or bytes"
            )


def _problems(tables: FooterTables, leaves: _Leaves, file_size: int | None) -> Iterator[tuple[str, Any]]:
    """Yield each possible problem with a boolean matrix: True at [row group, leaf] where a chunk has it."""
    rows = tables.groups[:, [Group.ROWS]]

    def column(name: Chunk) -> Int64s:
        values: Int64s = tables.chunks[:, :, name]
        return values

    yield "is encrypted", column(Chunk.IS_ENCRYPTED) != ABSENT
    yield "has no metadata", column(Chunk.HAS_METADATA) == ABSENT
    yield "has another type than in the schema", column(Chunk.TYPE) != leaves.types
    codec = column(Chunk.CODEC)
    yield "has an unknown compression codec", (codec < 0) | (codec > _LAST_CODEC)
    values = column(Chunk.VALUES)
    is_flat = leaves.repetition_levels == 0
    yield "has another number of values than the row group has rows", is_flat & (values != rows)
    yield "has fewer values than the row group has rows", values < rows
    nulls = column(Chunk.NULLS)
    yield (
        "has a null count beyond its number of values",
        (nulls > values) | ((nulls < -1) & (nulls != ABSENT)),
    )
    if file_size is not None:
        yield from _placement_problems(column, file_size)
    yield from _statistics_problems(column, leaves)
    yield from _histogram_problems(column, leaves)


def _paths(footer: bytes, tables: FooterTables, leaves: _Leaves) -> tuple[str, Any]:
    """Check the paths of the chunks, by which Spark finds columns; returns the problem and its boolean matrix."""
    paths = [b"".join(binary(part.encode()) for part in path.split(".")) for path in leaves.paths]
    starts = tables.chunks[:, :, Chunk.PATH].tolist()
    is_other = [
        [
            not footer.startswith(path, start) and not _is_path(footer, start, dotted)
            for path, start, dotted in zip(paths, group, leaves.paths, strict=True)
        ]
        for group in starts
    ]
    return "has another path than in the schema", np.array(is_other, bool).reshape(len(starts), len(paths))


def _is_path(footer: bytes, start: int, path: str) -> bool:
    """True if the path parts from offset ``start`` on form this dotted path; a name may itself contain dots."""
    cursor = Cursor(footer, start)
    parts = [cursor.binary()] if start >= 0 else []
    while parts and sum(map(len, parts)) + len(parts) <= len(path.encode()):
        parts.append(cursor.binary())
    return b".".join(parts) == path.encode()


def _placement_problems(column: Any, file_size: int) -> Iterator[tuple[str, Any]]:
    data, dictionary, size = (
        column(name) for name in (Chunk.DATA_PAGE, Chunk.DICTIONARY_PAGE, Chunk.COMPRESSED_SIZE)
    )
    yield "has no size or a negative one", (size < 0) | (column(Chunk.UNCOMPRESSED_SIZE) < 0)
    start = np.where(dictionary > 0, np.minimum(data, dictionary), data)
    is_outside = (data < 0) | (data > file_size) | (size > file_size) | (start + size > file_size)
    yield "is not inside of the file", is_outside | ((dictionary < 0) & (dictionary != ABSENT))


def _statistics_problems(column: Any, leaves: _Leaves) -> Iterator[tuple[str, Any]]:
    for name in _STATISTICS:
        size = column(name)
        is_present = size != ABSENT
        yield "has statistics of a wrong size", is_present & (size < leaves.widths)
        # INT96 has no order, so its statistics may be empty
        is_int96 = leaves.types == _INT96
        yield "has statistics of a wrong size", is_present & is_int96 & (size > 0) & (size < INT96_BYTES)


def _histogram_problems(column: Any, leaves: _Leaves) -> Iterator[tuple[str, Any]]:
    for name, levels in (
        (Chunk.REPETITION_HISTOGRAM, leaves.repetition_levels),
        (Chunk.DEFINITION_HISTOGRAM, leaves.definition_levels),
    ):
        length = column(name)
        yield "has a histogram of a wrong number of levels", (length > 0) & (length != levels + 1)
    is_misplaced = (column(Chunk.UNENCODED_SIZE) != ABSENT) & (leaves.types != _BYTE_ARRAY)
    yield "has a size of byte arrays, but is not a column of byte arrays", is_misplaced
