"""The hash table of a hash join. It maps the keys of the build side to integer codes, and codes to build rows.

Each key column is encoded separately. Code 0 stands for NULL, the last code (``size - 1``) for all values that no build row
has, and the codes between for the values of the build side. Integers in a small range are encoded by their offset from the
smallest value; other values by a hash index over the distinct build values.

Several columns are combined like the digits of a number: ``code = code_1 * size_2 + code_2``. Example: a build side with
the keys

    row  a   b        a: values 10 to 12, size = 3 + 2 = 5, codes 10 -> 1, 11 -> 2, 12 -> 3, others -> 4
    0    10  'x'      b: values 'x', 'y', size = 2 + 2 = 4, codes 'x' -> 1, 'y' -> 2, others -> 3
    1    12  'y'
    2    10  'x'      combined: row 0: 1 * 4 + 1 = 5, row 1: 3 * 4 + 2 = 14, row 2: 5

The build rows are then sorted by code into runs: code 5 has the rows [0, 2], code 14 has the row [1]. A probe row (12, 'y')
gets the code 14 and matches build row 1. A probe row (12, 'z') gets 3 * 4 + 3 = 15, which no build row has.

Three steps keep the tables of codes small:

- If the product of the sizes would exceed 2**62, the codes of the columns so far are replaced by their positions among the
  codes that occur in the build side (``_compress``).
- If there are many more possible codes than build rows, an index maps the codes that occur to dense numbers
  (``_build_arrays``).
- If every code has at most one build row (``unique``), one array from code to row replaces the runs.

All functions work on whole columns of a batch: no Python code loops over rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.kernels import integer_order
from kquery_spark.kernels.hash_index import DirectIndex, HashIndex, row_numbers
from kquery_spark.kernels.ordered_bytes import ordered_bytes
from kquery_spark.physical.bytes_index import BytesIndex, places_of
from kquery_spark.physical.keys import as_integers, normalized_bits
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector, decimal_words, narrow, slots, validity

_MAX_CARDINALITY = 2**62
_INT64 = np.iinfo(np.int64)
_MAX_DENSE_CODES = 64 * 1024 * 1024  # up to this number of possible codes, arrays may have one entry per code
_MAX_DIRECT_CODES = 4 * 1024 * 1024  # up to this number, they may, even if most of the codes do not occur
_FLAG_BYTES_PER_BUILD_ROW = 256  # the memory, per build row, that a direct test for membership may take

#: Encodes a column of the given number of rows: returns one code per row.
Encode = Callable[[Vector, int], Int64s]


@dataclass(frozen=True)
class KeySpace:
    """The encoding of one key column.

    size: the number of codes, including 0 for NULL and the last one for values that no build row has. value_range: the
    lowest and the highest value of the build rows, for types with an integer representation; None without values.
    """

    encode: Encode
    size: int
    value_range: tuple[int, int] | None = None


@dataclass(frozen=True)
class Matches:
    """Matching pairs, as two arrays of row numbers of equal length, in the order of the probe rows."""

    probe: Int64s
    build: Int64s


class JoinTable:
    """Finds the matches of probe rows among ``num_rows`` build rows. The module's docstring explains the encoding.

    A NULL key matches nothing, unless its column is ``null_safe``. Equal codes mean equal keys, so there cannot be hash
    collisions.

    ranges: for each key column of integers or dates, the lowest and the highest value of the build rows; None for other
    columns.
    """

    def __init__(self, keys: Sequence[Vector], num_rows: int, null_safe: Sequence[bool]) -> None:
        self.num_rows = num_rows
        self.ranges: list[tuple[int, int] | None] = []
        self._spaces: list[KeySpace] = []
        # By key column: the index (and its size) that compresses the combined codes of the columns before it.
        self._compressions: dict[int, tuple[HashIndex, int]] = {}
        self._index: HashIndex | DirectIndex | None = None
        self._flags: npt.NDArray[np.bool_] | None = None
        codes = np.zeros(num_rows, np.int64)
        known = np.ones(num_rows, np.bool_)
        cardinality = 1
        for key_index, (key, safe) in enumerate(zip(keys, null_safe, strict=True)):
            space = _key_space(key, safe)
            plain = t.is_integral(key.dtype) or key.dtype == t.DATE
            self.ranges.append(space.value_range if plain and not safe else None)
            column = space.encode(key, num_rows)
            # A build row has the last code only for a NULL in a column that is not null-safe. It matches nothing.
            known &= column < space.size - 1
            if key_index and cardinality * space.size >= _MAX_CARDINALITY:
                values = integer_order.distinct_values(np.compress(known, codes))
                self._compressions[key_index] = HashIndex(values), len(values)
                codes, cardinality = self._compress(key_index, codes), len(values) + 1
                # A wide range of integers can still be too large: encode by distinct values instead of by offsets.
                if cardinality * space.size >= _MAX_CARDINALITY:
                    space = _key_space(key, safe, by_range=False)
                    column = space.encode(key, num_rows)
            self._spaces.append(space)
            codes = codes * space.size + column
            cardinality *= space.size
        self._cardinality = cardinality
        self._build_arrays(codes, np.flatnonzero(known))

    def _compress(self, key_index: int, codes: Int64s) -> Int64s:
        """Replace the combined codes of the columns before ``key_index`` by their positions among the build side's."""
        index, count = self._compressions[key_index]
        compressed = index.lookup(codes)
        compressed[compressed < 0] = count
        return compressed

    def _build_arrays(self, codes: Int64s, rows: Int64s) -> None:
        """Build the arrays from codes to build rows. rows: the build rows that can match, that is, without NULL keys."""
        self.has_null_key = len(rows) < self.num_rows
        present = codes[rows]
        # If there are few possible codes, arrays are indexed by code. Otherwise an index maps the codes that occur to
        # 0, 1, 2, ... first. One flag per code answers ``contains`` without that index, at one byte per possible code.
        sparse = self._cardinality > min(_MAX_DENSE_CODES, max(65536, 16 * self.num_rows))
        if self._cardinality <= min(
            _MAX_DENSE_CODES, max(_MAX_DIRECT_CODES, _FLAG_BYTES_PER_BUILD_ROW * self.num_rows)
        ):
            self._flags = np.zeros(self._cardinality + 1, np.bool_)
            self._flags[present] = True
        if sparse:
            known = integer_order.distinct_values(present)
            direct = self._cardinality <= _MAX_DIRECT_CODES
            self._index = DirectIndex(known, self._cardinality) if direct else HashIndex(known)
            present = self._index.lookup(present)
            self._cardinality = max(len(known), 1)
        # One entry more than codes: index -1 (no such code) reads the last entry, which stays "no row".
        self._row_of = row_numbers(self._cardinality + 1, self.num_rows)
        self._row_of[present] = rows
        # If two rows have the same code, the second assignment overwrote the first one.
        self.unique = bool((self._row_of[present] == rows).all())
        if self.unique:
            return
        # The rows of code c are _order[_starts[c] : _starts[c] + _counts[c]].
        self._order = rows.take(integer_order.stable_order(present))
        self._counts = np.bincount(present, minlength=self._cardinality + 1)
        self._starts = np.cumsum(self._counts) - self._counts

    def _codes(self, keys: Sequence[Vector], num_rows: int) -> Int64s:
        """Return the code of each probe row as an index into the arrays of ``_build_arrays``; -1 if no build row has it."""
        codes = self._combined_codes(keys, num_rows)
        return codes if self._index is None else self._index.lookup(codes)

    def _combined_codes(self, keys: Sequence[Vector], num_rows: int) -> Int64s:
        """Encode the key columns of probe rows and combine their codes, with the same steps as for the build rows."""
        codes = np.zeros(num_rows, np.int64)
        for key_index, (key, space) in enumerate(zip(keys, self._spaces, strict=True)):
            column = space.encode(key, num_rows)
            if key_index == 0:
                codes = column
                continue
            if key_index in self._compressions:
                codes = self._compress(key_index, codes)
            codes = codes * space.size + column
        return codes

    def counts(self, keys: Sequence[Vector], num_rows: int) -> tuple[Int64s, Int64s]:
        """Return the code of each probe row, and the number of build rows that it matches."""
        codes = self._codes(keys, num_rows)
        if self.unique:
            return codes, (self._row_of[codes] >= 0).astype(np.int64)
        return codes, self._counts[codes]

    @property
    def is_direct(self) -> bool:
        """True if ``contains`` reads one flag per row, which is several times faster than a hash lookup."""
        return self._flags is not None

    def contains(self, keys: Sequence[Vector], num_rows: int) -> npt.NDArray[np.bool_]:
        """Return, for each probe row, whether it matches any build row."""
        if self._flags is not None:
            return self._flags[self._combined_codes(keys, num_rows)]
        codes = self._codes(keys, num_rows)
        return np.asarray((self._row_of[codes] >= 0) if self.unique else (self._counts[codes] > 0))

    def mark_matched(self, codes: Int64s, marks: npt.NDArray[np.bool_]) -> None:
        """Set the marks of all build rows with these codes. This takes no memory for pairs, however many there are."""
        if self.unique:
            rows = self._row_of[codes]
            marks[rows[rows >= 0]] = True
            return
        matched = np.zeros(len(self._counts), np.bool_)
        matched[codes] = True
        marks[self._order[np.repeat(matched, self._counts)]] = True

    def matches(self, codes: Int64s, counts: Int64s) -> Matches:
        """Return all pairs for the codes and counts that the method ``counts`` returned."""
        if self.unique:
            probe = np.flatnonzero(counts)
            return Matches(probe, self._row_of[codes[probe]].astype(np.int64))
        # Counts [2, 0, 3] give the probe rows 0 0 2 2 2 and the positions 0 1 0 1 2 within the run of each code.
        total = int(counts.sum())
        probe = np.repeat(np.arange(len(codes), dtype=np.int64), counts)
        ends = np.cumsum(counts)
        within = np.arange(total, dtype=np.int64) - np.repeat(ends - counts, counts)
        return Matches(probe, self._order[np.repeat(self._starts[codes], counts) + within])


def _key_space(key: Vector, null_safe: bool, by_range: bool = True) -> KeySpace:
    """Choose the encoding of a build column. Without ``by_range``, it has as many codes as distinct values, plus two."""
    if t.is_decimal(key.dtype) and not key.is_narrow:
        return _by_value(key.plain(), lambda v: v.plain(), null_safe)
    integers = as_integers(key)  # also dates, times and narrow decimals
    if integers is not None:
        return _by_range(integers, null_safe, _MAX_CARDINALITY if by_range else 0)
    if key.dtype == t.STRING:
        return _by_string(key, null_safe)
    if t.is_fractional(key.dtype):
        return _by_value(normalized_bits(key.data), lambda v: normalized_bits(v.data), null_safe)
    if t.is_nested(key.dtype):
        return _by_value(ordered_bytes(key.plain()), lambda v: ordered_bytes(v.plain()), null_safe)
    return _by_value(key.plain(), lambda v: v.plain(), null_safe)


def _with_nulls(codes: Int64s, data: pa.Array, null_code: int) -> Int64s:
    """Return the codes with ``null_code`` for the NULLs of ``data``."""
    valid = validity(data)
    return codes if valid is None else np.where(valid, codes, null_code)


def _by_range(build: pa.Array, null_safe: bool, limit: int) -> KeySpace:
    """Encode integers by their offset from the smallest build value, or by value if the range has ``limit`` codes or more.

    For build values from 10 to 12, the codes are 10 -> 1, 11 -> 2, 12 -> 3, and 4 for all other values.
    """
    min_max = pc.min_max(build)
    empty = len(build) == build.null_count
    low, high = (1, 0) if empty else (min_max["min"].as_py(), min_max["max"].as_py())
    value_range = None if empty else (low, high)
    size = high - low + 3
    absent = _find_absent_value(build, low, high)
    if size >= limit:
        by_value = _by_value(build, lambda v: _integers_of(v, absent), null_safe)
        return replace(by_value, value_range=value_range)
    null_code = 0 if null_safe else size - 1

    def encode(vector: Vector, num_rows: int) -> Int64s:
        data = _integers_of(vector, absent)
        # As unsigned integers, values below the range wrap around to far above it, so one minimum handles both sides.
        with np.errstate(over="ignore"):
            offsets = (np.asarray(dk.as_int64(data)) - np.int64(low)).view(np.uint64)
        np.minimum(offsets, np.uint64(size - 2), out=offsets)
        offsets += np.uint64(1)
        return _with_nulls(offsets.view(np.int64), data, null_code)

    return KeySpace(encode, size, value_range)


def _find_absent_value(build: pa.Array, low: int, high: int) -> int:
    """Return an int64 that is not among the build values."""
    if high < _INT64.max:
        return int(_INT64.max)
    if low > _INT64.min:
        return int(_INT64.min)
    return int(np.setdiff1d(_INT64.max - np.arange(len(build) + 1), build.drop_null())[0])


def _integers_of(vector: Vector, absent: int) -> pa.Array:
    """Return probe values as int64. Decimals that do not fit into int64 match no build value, so they become ``absent``."""
    data = as_integers(vector)
    if data is not None:
        return data
    wide = vector.plain()
    slim = narrow(wide)
    if slim is not None:
        return slim
    low, high = decimal_words(wide).T
    values = np.where(high == low >> 63, low, absent)
    valid = validity(wide)
    return pa.array(values, mask=None if valid is None else ~valid)


def _by_string(key: Vector, null_safe: bool) -> KeySpace:
    """Encode strings by value. For dictionary-encoded columns, only the dictionary is looked up, not each row."""
    values = (key.data.dictionary if key.is_dictionary else key.data).unique().drop_null()
    lookup = BytesIndex(values).lookup
    size = len(values) + 2
    null_code = 0 if null_safe else size - 1

    def encode(vector: Vector, num_rows: int) -> Int64s:
        data = vector.data
        if vector.is_dictionary:
            dictionary = data.dictionary
            codes = _as_codes(lookup(dictionary), size) if len(dictionary) else np.full(1, size - 1)
            codes = codes[data.indices.fill_null(0).to_numpy(zero_copy_only=False)]
        else:
            codes = _as_codes(lookup(data), size)
        return _with_nulls(codes, data, null_code)

    return KeySpace(encode, size)


def _by_value(build: pa.Array, form: Callable[[Vector], pa.Array], null_safe: bool) -> KeySpace:
    """Encode values by their position among the distinct build values. form: converts a probe column to ``build``'s form."""
    values = build.unique().drop_null()
    lookup = _lookup(values)
    size = len(values) + 2
    null_code = 0 if null_safe else size - 1

    def encode(vector: Vector, num_rows: int) -> Int64s:
        data = form(vector)
        if data.type != values.type:
            data = data.cast(values.type)
        return _with_nulls(_as_codes(lookup(data), size), data, null_code)

    return KeySpace(encode, size)


def _lookup(values: pa.Array) -> Callable[[pa.Array], Int64s]:
    """Return a function that returns the position of each row among the distinct values, -1 if absent, any for NULL."""
    if pa.types.is_int64(values.type):
        index = HashIndex(slots(values))
        return lambda data: index.lookup(slots(data))
    if values.type in (t.STRING, t.BINARY):
        return BytesIndex(values).lookup
    return lambda data: places_of(data, values)


def _as_codes(positions: Int64s, size: int) -> Int64s:
    """Return codes from 1 on for positions from 0 on, and the last code for the position -1 (no build row has the value)."""
    return np.where(positions < 0, size - 1, positions + 1)
