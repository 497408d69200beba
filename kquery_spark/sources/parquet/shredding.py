"""Reassembles shredded variants: groups of ``value`` and ``typed_value`` in a file become plain variants again.

For a column ``v`` that is shredded with a typed field ``a`` of type int, the file has these groups:

    v.metadata                     the field names of all objects in the row
    v.value                        the fields that are not typed, as a variant; NULL if there are none
    v.typed_value.a.typed_value    the value of a, if it is an int
    v.typed_value.a.value          the value of a as a variant, if it has another type

The compiled loops take flat arrays. ``_Parts`` converts the tree of Arrow arrays into them: a node is a group of ``value``
and ``typed_value``, and a field is a child of an object or the element of a list. See VariantShredding.md of
apache/parquet-format.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.functions.variant.reading import loops, variant_array
from kquery_spark.kernels import variants as v
from kquery_spark.kernels.text import build, layout
from kquery_spark.types import names as t
from kquery_spark.types.arrow_types import LARGE_BINARIES, is_any
from kquery_spark.types.vector import Int64s

VALUE, METADATA, TYPED_VALUE = "value", "metadata", "typed_value"

_CHUNK_ROWS = 1 << 14  # number of rows that are reassembled at a time
_NODE_COLUMNS, _FIELD_COLUMNS = 8, 5
_WRITTEN, _FULL = 1, 3  # status codes of the compiled loops: all rows are written, or an output array is full
_FIRST_ENTRIES = 1 << 10
# Bytes per row that are added to the size of the input for the first attempt; a full array is enlarged.
_VALUE_BYTES, _METADATA_BYTES = 64, 64
_BINARIES = (pa.types.is_binary, *LARGE_BINARIES)
_STRINGS = (pa.types.is_string, pa.types.is_large_string)
_LISTS = (pa.types.is_list, pa.types.is_large_list)
_SIGNED = (pa.types.is_int8, pa.types.is_int16, pa.types.is_int32, pa.types.is_int64)


def unreadable_type(dtype: pa.DataType, is_whole: bool = True) -> pa.DataType | None:
    """The first part of a shredded variant's type that the engine cannot read; None if it can read the whole type.

    is_whole: True for the column itself, which has ``metadata``; False for the groups inside.
    """
    names = [field.name for field in dtype] if pa.types.is_struct(dtype) else []
    allowed = {VALUE, TYPED_VALUE, METADATA} if is_whole else {VALUE, TYPED_VALUE}
    if not names or len(set(names)) != len(names) or not allowed.issuperset(names):
        return dtype
    if is_whole != (METADATA in names):
        return dtype
    for name in (VALUE, METADATA):
        if name in names and not is_any(dtype.field(name).type, _BINARIES):
            return dtype
    return _unreadable_typed(dtype.field(TYPED_VALUE).type) if TYPED_VALUE in names else None


def _unreadable_typed(dtype: pa.DataType) -> pa.DataType | None:
    """The first part of the type of a ``typed_value`` that the engine cannot read."""
    if is_any(dtype, _LISTS):
        return unreadable_type(dtype.value_type, is_whole=False)
    if not pa.types.is_struct(dtype):
        return dtype if _kind(dtype) is None else None
    names = {field.name for field in dtype}
    if not names or len(names) != dtype.num_fields:
        return dtype
    parts = (unreadable_type(field.type, is_whole=False) for field in dtype)
    return next((part for part in parts if part is not None), None)


def _kind(dtype: pa.DataType) -> int | None:
    """The kind of variant values (``IS_STRING`` etc.) that a ``typed_value`` of this type stores; None for other types."""
    if pa.types.is_timestamp(dtype) and dtype.unit == "us":
        return v.IS_TIMESTAMP_NTZ if dtype.tz is None else v.IS_TIMESTAMP
    kinds = {
        v.IS_OBJECT: (pa.types.is_struct,),
        v.IS_ARRAY: _LISTS,
        v.IS_STRING: _STRINGS,
        v.IS_BINARY: _BINARIES,
        v.IS_BOOL: (pa.types.is_boolean,),
        v.IS_LONG: _SIGNED,
        v.IS_FLOAT: (pa.types.is_float32,),
        v.IS_DOUBLE: (pa.types.is_float64,),
        v.IS_DATE: (pa.types.is_date32,),
        v.IS_DECIMAL: (pa.types.is_decimal128,),
    }
    return next((kind for kind, tests in kinds.items() if is_any(dtype, tests)), None)


def rebuild_variants(data: pa.Array) -> pa.Array:
    """Reassemble a shredded column. Raises Unsupported for data for which Spark may raise an error."""
    starts = range(0, len(data), _CHUNK_ROWS)
    chunks = [_rebuild_rows(data.slice(start, _CHUNK_ROWS)) for start in starts]
    if sum(chunk.nbytes for chunk in chunks) >= 1 << 31:
        raise Unsupported("shredded variants of a row group that take more than 2 GiB are not supported")
    return pa.concat_arrays(chunks) if chunks else pa.array([], t.VARIANT)


def _rebuild_rows(data: pa.Array) -> pa.Array:
    """Reassemble some rows. While an output array is too small, allocate larger ones and start again."""
    parts = _Parts()
    rows, is_there = len(data), _is_valid(data)
    _, meta_at = parts.add_binaries(data.field(METADATA))
    parts.add_node(data)
    inputs = (*parts.tables(), is_there.view(np.uint8), meta_at)
    room, size = _FIRST_ENTRIES, data.nbytes
    value_ends, meta_ends = np.empty(rows + 1, np.int64), np.empty(rows + 1, np.int64)
    while True:
        values = np.empty(size + _VALUE_BYTES * rows, np.uint8)
        metas = np.empty(size + _METADATA_BYTES * rows, np.uint8)
        status = loops().rebuilt_variants(*inputs, room, values, value_ends, metas, meta_ends)
        if status != _FULL:
            break
        room, size = 2 * room, 2 * size + rows
    if status != _WRITTEN:
        raise Unsupported("a shredded variant that is malformed, or very large or deep, is not supported")
    binaries = [
        build(ends, out[: ends[-1]], None, t.BINARY)
        for ends, out in ((value_ends, values), (meta_ends, metas))
    ]
    return variant_array(binaries[0], binaries[1], ~is_there)


def _is_valid(data: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(data.is_valid().to_numpy(zero_copy_only=False), np.bool_)


class _Parts:
    """Flattens the columns of a shredded variant into the few arrays that the compiled loops read.

    Each ``add`` method appends to one of the arrays and returns the position at which the added part begins.
    """

    def __init__(self) -> None:
        self._nodes: list[list[int]] = []
        self._fields: list[list[int]] = []
        self._raw: list[npt.NDArray[np.uint8]] = []
        self._words: list[Int64s] = []
        self._flags: list[npt.NDArray[np.uint8]] = []
        self._raw_size = self._words_size = self._flags_size = 0

    def tables(self) -> Iterable[npt.NDArray[np.generic]]:
        """The arguments of ``rebuilt_variants``: nodes, fields, and the raw bytes, words and flags that they point into."""
        yield np.array(self._nodes, np.int64).reshape(-1, _NODE_COLUMNS)
        yield np.array(self._fields, np.int64).reshape(-1, _FIELD_COLUMNS)
        yield np.concatenate([*self._raw, np.zeros(0, np.uint8)])
        yield np.concatenate([*self._words, np.zeros(0, np.int64)])
        yield np.concatenate([*self._flags, np.zeros(0, np.uint8)])

    def add_node(self, group: pa.Array) -> int:
        """Add a group of ``value`` and ``typed_value``; returns the number of its node."""
        number = len(self._nodes)
        node = [-1, 0, v.IS_ABSENT, -1, 0, 0, 0, 0]
        self._nodes.append(node)
        names = [field.name for field in group.type]
        if VALUE in names:
            node[v.VALUE_FLAGS], node[v.VALUE_AT] = self.add_binaries(group.field(VALUE))
        if TYPED_VALUE in names:
            self._add_typed(node, group.field(TYPED_VALUE))
        return number

    def _add_typed(self, node: list[int], typed: pa.Array) -> None:
        """Fill in the entries of a node that describe its ``typed_value``."""
        kind = _kind(typed.type)
        assert kind is not None
        node[v.TYPED_KIND] = kind
        node[v.TYPED_FLAGS] = self._add_flags(typed)
        if node[v.TYPED_FLAGS] < 0:
            return
        if kind == v.IS_OBJECT:
            names = [field.name for field in typed.type]
            children = [typed.field(i) for i in range(len(names))]
            node[v.TYPED_FIELDS], node[v.TYPED_COUNT] = self._add_fields(names, children), len(names)
        elif kind == v.IS_ARRAY:
            offsets = typed.offsets.to_numpy().astype(np.int64)
            elements = typed.values.slice(offsets[0], offsets[-1] - offsets[0])
            node[v.TYPED_AT] = self._add_words(offsets - offsets[0])
            node[v.TYPED_FIELDS] = self._add_fields([""], [elements])
        elif kind in (v.IS_STRING, v.IS_BINARY):
            node[v.TYPED_AT] = self._add_bounds(typed)
        else:
            node[v.TYPED_AT] = self._add_words(_words_of(kind, typed))
            if kind == v.IS_DECIMAL:
                node[v.TYPED_SCALE] = typed.type.scale

    def _add_fields(self, names: list[str], groups: list[pa.Array]) -> int:
        """Add the fields of a struct, or the elements of a list; returns the number of the first entry."""
        first = len(self._fields)
        # Java compares strings by UTF-16 units, and Spark writes the fields of an object in this order
        order = sorted(range(len(names)), key=lambda i: names[i].encode("utf-16-be"))
        rows = [[0] * _FIELD_COLUMNS for _ in names]
        self._fields += rows
        for row, name, group, place in zip(rows, names, groups, order, strict=True):
            text = np.frombuffer(name.encode(), np.uint8)
            row[v.FIELD_ORDER] = place
            row[v.FIELD_NAME] = self._add_raw(text)
            row[v.FIELD_NAME_END] = row[v.FIELD_NAME] + len(text)
            row[v.FIELD_FLAGS] = self._add_flags(group)
            row[v.FIELD_NODE] = self.add_node(group)
        return first

    def add_binaries(self, binaries: pa.Array) -> tuple[int, int]:
        """Add a binary column; returns the positions of its validity flags (-1 if all are NULL) and of its bounds."""
        flags = self._add_flags(binaries)
        return flags, 0 if flags < 0 and len(binaries) else self._add_bounds(binaries)

    def _add_bounds(self, binaries: pa.Array) -> int:
        bounds, raw = layout(binaries.cast(t.BINARY))
        return self._add_words(bounds - bounds[0] + self._add_raw(raw[bounds[0] : bounds[-1]]))

    def _add_flags(self, data: pa.Array) -> int:
        """Add validity flags; returns their position, or -1 if all rows are NULL."""
        if data.null_count == len(data):
            return -1
        self._flags.append(_is_valid(data).view(np.uint8))
        self._flags_size += len(data)
        return self._flags_size - len(data)

    def _add_raw(self, raw: npt.NDArray[np.uint8]) -> int:
        self._raw.append(raw)
        self._raw_size += len(raw)
        return self._raw_size - len(raw)

    def _add_words(self, words: Int64s) -> int:
        self._words.append(words)
        self._words_size += len(words)
        return self._words_size - len(words)


def _words_of(kind: int, typed: pa.Array) -> Int64s:
    """The values of a column as 64-bit words: one per row, two for decimals. NaN gets the bit pattern that Java writes."""
    if kind == v.IS_DECIMAL:
        return np.frombuffer(typed.buffers()[1], np.int64, 2 * len(typed), 16 * typed.offset)
    bits = pa.int32() if kind in (v.IS_FLOAT, v.IS_DATE) else pa.int64()
    if kind in (v.IS_FLOAT, v.IS_DOUBLE):
        typed = pc.if_else(pc.is_nan(typed), pa.scalar(float("nan"), typed.type), typed)
    if kind in (v.IS_BOOL, v.IS_LONG):
        numbers = typed.cast(bits)
    else:
        numbers = typed.view(bits)
    return np.asarray(numbers.fill_null(0).to_numpy(), np.int64)
