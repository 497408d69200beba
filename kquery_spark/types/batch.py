"""A record batch of the engine: named vectors and a row count that is known even without columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import BatchTooLarge
from kquery_spark.run_control import call_under, current_control
from kquery_spark.types import names as t
from kquery_spark.types.part_control import PartControl, PartTooLarge
from kquery_spark.types.sizes import MAX_STRING_BYTES, has_offsets, is_too_large
from kquery_spark.types.vector import Flags, Int64s, Vector, decode, fill, from_arrow, to_spark, widen

Result = TypeVar("Result")

_MAX_COALESCED_BYTES = 64 << 20
# ``run_in_parts`` divides batches of more than this number of rows until no array has more than this number of bytes.
_MAX_PART_BYTES, _MIN_LIMITED_ROWS = 128 << 20, 16
# Three quarters of the bytes of one array. The rest is for the batch that makes the buffer exceed this limit.
_MAX_BUFFERED_BYTES = MAX_STRING_BYTES // 4 * 3
# ``concat`` does not decode dictionaries if the decoded arrays would have more bytes than the first number, and more than
# the second number of times the bytes of the encoded ones.
_MAX_UNCHECKED_BYTES, _MAX_DECODED_RATIO = 64 << 20, 2


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows flowing between operators: ``schema`` has Spark types, ``columns`` their physical arrays."""

    schema: pa.Schema
    columns: tuple[pa.Array, ...]
    num_rows: int

    def vector(self, index: int) -> Vector:
        """Column ``index`` with its type."""
        return Vector(self.schema.field(index).type, self.columns[index])

    def take(self, indices: pa.Array) -> Batch:
        """The rows at ``indices`` (NULL index: a row of NULLs)."""
        return Batch(self.schema, tuple(c.take(indices) for c in self.columns), len(indices))

    def filter(self, mask: pa.Array) -> Batch:
        """The rows where ``mask`` is true."""
        columns = tuple(c.filter(mask) for c in self.columns)
        return Batch(self.schema, columns, len(columns[0]) if columns else mask.true_count)

    def slice(self, offset: int, length: int | None = None) -> Batch:
        """``length`` rows from ``offset``, without copying."""
        length = self.num_rows - offset if length is None else min(length, self.num_rows - offset)
        return Batch(self.schema, tuple(c.slice(offset, length) for c in self.columns), length)

    def select(self, indices: Sequence[int]) -> Batch:
        """Some columns, in the order given."""
        schema = pa.schema([self.schema.field(i) for i in indices])
        return Batch(schema, tuple(self.columns[i] for i in indices), self.num_rows)

    @property
    def nbytes(self) -> int:
        """Bytes the columns refer to (a slice counts its own part)."""
        return sum(c.nbytes for c in self.columns)

    def to_arrow(self) -> pa.RecordBatch:
        """A plain Arrow batch whose types are exactly the schema's."""
        arrays = [self.vector(i).plain() for i in range(len(self.columns))]
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * self.num_rows, pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def to_spark(self) -> pa.RecordBatch:
        """A plain Arrow batch in the forms in which Spark takes the types."""
        columns = [to_spark(c) for c in self.to_arrow().columns]
        return pa.RecordBatch.from_arrays(columns, names=self.schema.names)

    @classmethod
    def from_arrow(cls, batch: pa.RecordBatch, schema: pa.Schema) -> Batch:
        """Convert an Arrow batch with the same columns, by position, to the engine's physical forms."""
        columns = tuple(from_arrow(f.type, batch.column(i)).data for i, f in enumerate(schema))
        return cls(schema, columns, batch.num_rows)

    @classmethod
    def empty(cls, schema: pa.Schema) -> Batch:
        """No rows."""
        return cls(schema, tuple(pa.array([], f.type) for f in schema), 0)


def max_buffered_bytes(schema: pa.Schema, memory_bytes: int) -> int:
    """Return how many bytes of rows may be buffered before they are concatenated or spilled; at most ``memory_bytes``.

    The strings of a column have to fit into one array, including those of the batch that exceeds the limit.
    """
    return min(memory_bytes, _MAX_BUFFERED_BYTES) if any(map(has_offsets, schema.types)) else memory_bytes


def concat(schema: pa.Schema, batches: Sequence[Batch]) -> Batch:
    """One batch of all rows; columns whose physical forms differ are cast to a common one."""
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return Batch.empty(schema)
    columns = tuple(
        concat_arrays(field.type, [b.columns[i] for b in batches]) for i, field in enumerate(schema)
    )
    return Batch(schema, columns, sum(b.num_rows for b in batches))


def row_flags(rows: Int64s, count: int) -> Flags:
    """Return a mask of ``count`` rows that is True for ``rows``."""
    flags = np.zeros(count, np.bool_)
    flags[rows] = True
    return flags


def pick(batch: Batch, rows: Int64s) -> Batch:
    """Select rows by position. For more than half of the rows a mask is used, which copies runs instead of values."""
    if len(rows) > 0.5 * batch.num_rows:
        flags = row_flags(rows, batch.num_rows)
        return batch.filter(pa.array(flags)) if batch.columns else Batch(batch.schema, (), len(rows))
    return batch.take(pa.array(rows))


def cut(batch: Batch, rows: int) -> Iterator[Batch]:
    """Slices of at most ``rows`` rows."""
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def drain(batches: list[Batch]) -> Iterator[Batch]:
    """Remove each batch from the list and yield it, so that its memory can be freed before the next one is used."""
    batches.reverse()
    while batches:
        yield batches.pop()


def trim_dictionaries(batch: Batch) -> Batch:
    """Drop entries that no row uses from dictionaries with more entries than the batch has rows.

    A selection of rows keeps the whole dictionary: 10 rows of a column with a dictionary of 20 MB take 20 MB. The columns
    stay dictionaries, because ``concat`` may decode all arrays of a column if one of them is plain.
    """
    columns = tuple(_trimmed(c) if has_large_dictionary(c) else c for c in batch.columns)
    return Batch(batch.schema, columns, batch.num_rows)


def _trimmed(column: pa.DictionaryArray) -> pa.DictionaryArray:
    used = column.indices.drop_null().unique()
    return pa.DictionaryArray.from_arrays(pc.index_in(column.indices, used), column.dictionary.take(used))


def has_large_dictionary(column: pa.Array) -> bool:
    """Return whether a column is a dictionary with more entries than rows, and so usually with more bytes than needed."""
    return pa.types.is_dictionary(column.type) and len(column.dictionary) > len(column)


def run_in_parts(
    function: Callable[[Batch], Result], batch: Batch, *, repeatable: bool
) -> Iterator[tuple[Batch, Result]]:
    """Call a function on a batch. If an array would be too large, divide the batch and call the function on each part.

    The parts are divided again if necessary. For more than ``_MIN_LIMITED_ROWS`` rows, an array of more than
    ``_MAX_PART_BYTES`` bytes is too large; for fewer rows, only one that exceeds Arrow's 32-bit offsets.

    Yields each part with its result. Raises the function's error if the result for a single row is too large.

    repeatable: the function may see rows again after it failed. False for nondeterministic user functions, which may count
    their calls; their error is raised at once.
    """
    result, rows = None, (batch.num_rows + 1) // 2
    try:
        if repeatable and batch.num_rows > _MIN_LIMITED_ROWS:
            result = call_under(PartControl(_MAX_PART_BYTES, current_control()), function, batch)
        else:
            result = function(batch)
    except (BatchTooLarge, pa.ArrowException) as error:
        if not repeatable or not is_too_large(error) or batch.num_rows < 2:
            raise
        if isinstance(error, PartTooLarge):
            rows = min(rows, max(_MIN_LIMITED_ROWS, batch.num_rows * _MAX_PART_BYTES // error.nbytes))
    if result is not None:
        yield batch, result
        return
    for part in cut(batch, rows):
        yield from run_in_parts(function, part, repeatable=True)


def coalesced(
    batches: Iterable[Batch], rows: float = math.inf, nbytes: float = _MAX_COALESCED_BYTES
) -> Iterator[Batch]:
    """Concatenate small batches until they have ``rows`` rows or more than ``nbytes`` bytes, to reduce per-batch costs.

    A batch that has ``rows`` rows or more than ``nbytes`` bytes by itself is yielded unchanged. The limit of bytes also
    prevents that long strings exceed the 2 GiB of one array when they are concatenated.
    """
    held: list[Batch] = []
    held_rows = held_bytes = 0
    for batch in batches:
        batch_bytes = batch.nbytes
        if held and (batch.num_rows >= rows or batch_bytes > nbytes):
            yield concat(held[0].schema, held)
            held, held_rows, held_bytes = [], 0, 0
        held.append(batch)
        held_rows += batch.num_rows
        held_bytes += batch_bytes
        if held_rows >= rows or held_bytes > nbytes:
            yield concat(held[0].schema, held)
            held, held_rows, held_bytes = [], 0, 0
    if held:
        yield concat(held[0].schema, held)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a chunked column as one array, with one dictionary if it is dictionary-encoded."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.num_chunks and pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    return column.combine_chunks()


def concat_arrays(dtype: pa.DataType, arrays: list[pa.Array]) -> pa.Array:
    """Concatenate the pieces of one column, which may have different physical forms.

    Narrow and wide decimals, dictionary-encoded and plain strings, and dictionaries with different values can be mixed.
    Nested pieces may differ in the nullability of their fields.
    """
    kinds = {a.type for a in arrays}
    if len(kinds) > 1:
        arrays = _of_one_form(dtype, arrays)
    elif pa.types.is_dictionary(arrays[0].type):
        arrays = _with_one_dictionary(arrays)
    return pa.concat_arrays(arrays)


def _of_one_form(dtype: pa.DataType, arrays: list[pa.Array]) -> list[pa.Array]:
    """Convert arrays to one physical form: widen decimals, cast nested values to ``dtype``, and decode dictionaries.

    If decoding would multiply the size of the dictionary arrays, the plain arrays are dictionary-encoded instead.
    """
    if pa.types.is_decimal(dtype):
        return [widen(a, dtype) if pa.types.is_int64(a.type) else a.cast(dtype) for a in arrays]
    if pa.types.is_nested(dtype):
        return [a if a.type == dtype else a.cast(dtype) for a in arrays]
    if _grows_when_decoded(arrays):
        return _unified([a if pa.types.is_dictionary(a.type) else a.dictionary_encode() for a in arrays])
    return [decode(a) if pa.types.is_dictionary(a.type) else a for a in arrays]


def _grows_when_decoded(arrays: list[pa.Array]) -> bool:
    """Return True if decoding the dictionaries of a column would take far more memory, or more than one array can have.

    Memory budgets count the encoded size of dictionary arrays. Decoded, 24 million rows of a dictionary of 200-byte strings
    take 4.8 GB instead of 96 MB, and exceed the offsets of one array.
    """
    encoded = [a for a in arrays if pa.types.is_dictionary(a.type)]
    dictionaries = [a.dictionary for a in encoded]
    if any(d.type not in (t.STRING, t.BINARY) for d in dictionaries):
        return False  # numbers do not grow much
    # Two upper bounds show in most cases that the decoded size is small: all rows have one string that is as long as the
    # whole dictionary, or as its longest string.
    if sum(len(a) * d.nbytes for a, d in zip(encoded, dictionaries, strict=True)) <= _MAX_UNCHECKED_BYTES:
        return False
    # Batches of one row group share a dictionary, so its lengths are computed once.
    keys = [(d.buffers()[2].address, d.offset, len(d)) if len(d) else None for d in dictionaries]
    lengths = {key: pc.binary_length(d) for key, d in zip(keys, dictionaries, strict=True)}
    longest = {key: pc.max(each).as_py() or 0 for key, each in lengths.items()}
    if sum(len(a) * longest[key] for a, key in zip(encoded, keys, strict=True)) <= _MAX_UNCHECKED_BYTES:
        return False
    sizes = (pc.sum(lengths[key].take(a.indices)).as_py() or 0 for a, key in zip(encoded, keys, strict=True))
    decoded: int = sum(sizes)
    plain = sum(a.nbytes for a in arrays if not pa.types.is_dictionary(a.type))
    nbytes = plain + sum(a.nbytes for a in encoded)
    is_large = decoded > max(_MAX_UNCHECKED_BYTES, _MAX_DECODED_RATIO * nbytes)
    return is_large or bool(decoded + plain > MAX_STRING_BYTES)


def _with_one_dictionary(arrays: list[pa.Array]) -> list[pa.Array]:
    """Unify the dictionaries of arrays, or decode the arrays if the dictionaries are large relative to the rows."""
    first = arrays[0].dictionary
    if all(a.dictionary is first or a.dictionary.equals(first) for a in arrays[1:]):
        return arrays
    are_large = sum(len(a.dictionary) for a in arrays) > max(65536, sum(map(len, arrays)) // 2)
    if are_large and not _grows_when_decoded(arrays):
        return [decode(a) for a in arrays]
    return _unified(arrays)


def _unified(arrays: list[pa.Array]) -> list[pa.Array]:
    return list(pa.chunked_array(arrays).unify_dictionaries().chunks)


def from_vectors(schema: pa.Schema, vectors: Sequence[Vector], num_rows: int) -> Batch:
    """A batch of computed vectors; scalars become columns here and only here."""
    columns = tuple(fill(v.data, num_rows) if v.is_scalar else v.data for v in vectors)
    return Batch(schema, columns, num_rows)
