"""Extracts the numbers of a Parquet footer into two tables: one row per row group, and one row per column chunk.

pyarrow parses footers, too, but its accessors end the process with SIGABRT if a chunk's metadata is damaged. Format:
parquet.thrift of apache/parquet-format.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from kquery_spark.kernels import thrift_scan
from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.kernels.thrift_scan import (
    BINARY,
    FIELDS,
    FIRST_ROW,
    I32,
    I64,
    LIST,
    ROOT,
    SECOND_ROW,
    SECOND_SLOTS,
    STRUCT,
    UNKNOWN,
)
from kquery_spark.types.vector import Int64s

ABSENT = -(1 << 63)
_METADATA, _STATISTICS, _SIZES, _GEOSPATIAL = range(ROOT + 1, ROOT + 5)
_STRUCTS = ROOT + 5
# The size of a large footer. One of 11 MB takes 2.1 s without kernels and 0.03 s with them.
_LARGE_BYTES = 2 << 20
_PROBLEMS = {
    thrift_scan.TOO_SHORT: "it ends in the middle of a value",
    thrift_scan.TOO_MANY: "it has more row groups or column chunks than its schema says",
    thrift_scan.TOO_DEEP: "its structs are nested too deeply",
    thrift_scan.UNKNOWN_TYPE: "it has a value of an unknown type",
    thrift_scan.TOO_LONG: "it has an integer of more than 63 bits",
}


class Group(IntEnum):
    """Columns of the table of row groups."""

    CHUNKS = 0
    BYTES = 1
    ROWS = 2


class Chunk(IntEnum):
    """Columns of the table of column chunks.

    For statistics (MIN, MAX, ...) the table has the size of the value, for histograms the number of elements, and for
    PATH the offset in the footer at which the parts of the path begin.
    """

    HAS_METADATA = 0
    OFFSET_INDEX = 1
    OFFSET_INDEX_SIZE = 2
    COLUMN_INDEX = 3
    COLUMN_INDEX_SIZE = 4
    IS_ENCRYPTED = 5
    TYPE = 6
    CODEC = 7
    VALUES = 8
    UNCOMPRESSED_SIZE = 9
    COMPRESSED_SIZE = 10
    DATA_PAGE = 11
    DICTIONARY_PAGE = 12
    OLD_MAX = 13
    OLD_MIN = 14
    NULLS = 15
    MAX = 16
    MIN = 17
    UNENCODED_SIZE = 18
    REPETITION_HISTOGRAM = 19
    DEFINITION_HISTOGRAM = 20
    PATH = 21


@dataclass(frozen=True)
class FooterTables:
    """The numbers of a footer; ``ABSENT`` stands for a missing value.

    groups: a matrix of [row group, ``Group``]. chunks: an array of [row group, leaf, ``Chunk``].
    """

    groups: Int64s
    chunks: Int64s


@dataclass(frozen=True)
class _Layout:
    """Builds the arguments of ``thrift_scan.scan`` that declare which fields are stored in which table columns."""

    types: list[int] = field(default_factory=lambda: [0] * (_STRUCTS * FIELDS))
    elements: list[int] = field(default_factory=lambda: [0] * (_STRUCTS * FIELDS))
    children: list[int] = field(default_factory=lambda: [UNKNOWN] * (_STRUCTS * FIELDS))
    slots: list[int] = field(default_factory=lambda: [-1] * (_STRUCTS * FIELDS))

    def number(self, struct: int, field_id: int, kind: int, slot: int) -> None:
        """Declare a field. Its number, size or presence is stored in column ``slot``, if that is not negative."""
        entry = struct * FIELDS + field_id
        is_second = struct != FIRST_ROW and slot >= 0
        self.types[entry], self.slots[entry] = kind, slot + SECOND_SLOTS * is_second

    def listed(self, struct: int, field_id: int, element: int, child: int = UNKNOWN, slot: int = -1) -> None:
        """Declare a list. element: the type of its elements. child: the kind of struct, for lists of structs."""
        self.number(struct, field_id, LIST, slot)
        entry = struct * FIELDS + field_id
        self.elements[entry], self.children[entry] = element, child

    def inner(self, struct: int, field_id: int, child: int, slot: int = -1) -> None:
        """Declare a nested struct of kind ``child``."""
        self.number(struct, field_id, STRUCT, slot)
        self.children[struct * FIELDS + field_id] = child

    @property
    def arguments(self) -> tuple[list[int], ...]:
        """The arrays in the order of the parameters of ``scan``."""
        return self.types, self.elements, self.children, self.slots


def _footer_layout() -> _Layout:
    layout = _Layout()
    for field_id in (2, 5, 7):  # schema, key-value pairs, column orders
        layout.listed(ROOT, field_id, STRUCT)
    layout.listed(ROOT, 4, STRUCT, FIRST_ROW)
    layout.listed(FIRST_ROW, 1, STRUCT, SECOND_ROW, Group.CHUNKS)
    layout.number(FIRST_ROW, 2, I64, Group.BYTES)
    layout.number(FIRST_ROW, 3, I64, Group.ROWS)
    layout.listed(FIRST_ROW, 4, STRUCT)  # sorting columns
    layout.inner(SECOND_ROW, 3, _METADATA, Chunk.HAS_METADATA)
    layout.number(SECOND_ROW, 4, I64, Chunk.OFFSET_INDEX)
    layout.number(SECOND_ROW, 5, I32, Chunk.OFFSET_INDEX_SIZE)
    layout.number(SECOND_ROW, 6, I64, Chunk.COLUMN_INDEX)
    layout.number(SECOND_ROW, 7, I32, Chunk.COLUMN_INDEX_SIZE)
    layout.inner(SECOND_ROW, 8, UNKNOWN, Chunk.IS_ENCRYPTED)
    layout.number(_METADATA, 1, I32, Chunk.TYPE)
    layout.listed(_METADATA, 2, I32)  # encodings
    layout.listed(_METADATA, 3, BINARY, slot=Chunk.PATH)
    layout.number(_METADATA, 4, I32, Chunk.CODEC)
    layout.number(_METADATA, 5, I64, Chunk.VALUES)
    layout.number(_METADATA, 6, I64, Chunk.UNCOMPRESSED_SIZE)
    layout.number(_METADATA, 7, I64, Chunk.COMPRESSED_SIZE)
    layout.listed(_METADATA, 8, STRUCT)  # key-value pairs
    layout.number(_METADATA, 9, I64, Chunk.DATA_PAGE)
    layout.number(_METADATA, 11, I64, Chunk.DICTIONARY_PAGE)
    layout.inner(_METADATA, 12, _STATISTICS)
    layout.listed(_METADATA, 13, STRUCT)  # counts of pages by encoding
    layout.inner(_METADATA, 16, _SIZES)
    layout.inner(_METADATA, 17, _GEOSPATIAL)
    layout.number(_STATISTICS, 1, BINARY, Chunk.OLD_MAX)
    layout.number(_STATISTICS, 2, BINARY, Chunk.OLD_MIN)
    layout.number(_STATISTICS, 3, I64, Chunk.NULLS)
    layout.number(_STATISTICS, 5, BINARY, Chunk.MAX)
    layout.number(_STATISTICS, 6, BINARY, Chunk.MIN)
    layout.number(_SIZES, 1, I64, Chunk.UNENCODED_SIZE)
    layout.listed(_SIZES, 2, I64, slot=Chunk.REPETITION_HISTOGRAM)
    layout.listed(_SIZES, 3, I64, slot=Chunk.DEFINITION_HISTOGRAM)
    layout.listed(_GEOSPATIAL, 2, I32)
    return layout


_LISTS: tuple[Any, ...] = _footer_layout().arguments
_ARRAYS: tuple[Int64s, ...] = tuple(np.array(values, np.int64) for values in _LISTS)


def _kernels(size: int) -> Any | None:
    """The compiled scan, or None. For a large footer, importing it now is faster than the scan in Python."""
    if size > _LARGE_BYTES and FILE_LOOPS.are_ready_or_start_compiling():
        FILE_LOOPS.load()
    return FILE_LOOPS.kernels()


def footer_tables(footer: bytes, num_groups: int, num_leaves: int) -> FooterTables:
    """The tables of a serialized FileMetaData; ValueError if the numbers of row groups or column chunks do not match."""
    kernels = _kernels(len(footer))
    sizes = num_groups * len(Group), num_groups * num_leaves * len(Chunk)
    num_frames = thrift_scan.MAX_DEPTH * 4
    numbers: tuple[Any, Any]
    arguments: tuple[Any, ...]
    if kernels is None:
        numbers = ([ABSENT] * sizes[0], [ABSENT] * sizes[1])
        arguments = (footer, *_LISTS, [0] * num_frames)
    else:
        numbers = np.full(sizes[0], ABSENT), np.full(sizes[1], ABSENT)
        arguments = (np.frombuffer(footer, np.uint8), *_ARRAYS, np.zeros(num_frames, np.int64))
    scan: Any = thrift_scan.scan if kernels is None else kernels.scan
    problem = scan(*arguments, numbers[0], len(Group), numbers[1], len(Chunk))
    if problem != thrift_scan.OK:
        raise ValueError(_PROBLEMS[problem])
    groups, chunks = (np.asarray(table, np.int64) for table in numbers)
    groups, chunks = (
        groups.reshape(num_groups, len(Group)),
        chunks.reshape(num_groups, num_leaves, len(Chunk)),
    )
    if (groups[:, Group.CHUNKS] != num_leaves).any():
        raise ValueError("a row group has another number of columns than the schema")
    return FooterTables(groups, chunks)
