"""The build side of a hash join: keys mapped to codes, codes to build rows, for any number of probe batches."""

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
_MAX_DENSE_CODES = 64 * 1024 * 1024
_MAX_DIRECT_CODES = 4 * 1024 * 1024  # codes that get a slot each, however few of them there are
_FLAG_BYTES_PER_BUILD_ROW = 256  # bytes that looking up a build row quickly is worth

Encode = Callable[[Vector, int], Int64s]


@dataclass(frozen=True)
class KeySpace:
    """How values of a key column become codes.

    size: how many codes there are, 0 for NULL and the last one for all values no build row has. ends: the lowest and the
    highest integer of the build rows, where values are integers underneath and there are any.
    """

    encode: Encode
    size: int
    ends: tuple[int, int] | None = None


@dataclass(frozen=True)
class Matches:
    """Pairs of row numbers, in probe order."""

    probe: Int64s
    build: Int64s


class JoinTable:
    """Looks up probe rows among ``num_rows`` build rows.

    A NULL key matches nothing unless its column is ``null_safe``. Keys are compared, never only hashed.

    Each column has codes of its own: 0 is NULL's, the last one (size - 1) is that of all values no build row has. Numbers
    of rows are looked up by one number for all columns, and no build row is under a number with such a last code in it.

    ranges: the lowest and the highest value of each key column of integers or dates that build rows have; None of others.
    """

    def __init__(self, keys: Sequence[Vector], num_rows: int, null_safe: Sequence[bool]) -> None:
        self.num_rows = num_rows
        self.ranges: list[tuple[int, int] | None] = []
        self._spaces: list[KeySpace] = []
        self._squeezes: dict[int, tuple[HashIndex, int]] = {}
        self._index: HashIndex | DirectIndex | None = None
        self._flags: npt.NDArray[np.bool_] | None = None
        codes = np.zeros(num_rows, np.int64)
        known = np.ones(num_rows, np.bool_)
        cardinality = 1
        for key_index, (key, safe) in enumerate(zip(keys, null_safe, strict=True)):
            space = _key_space(key, safe)
            plain = t.is_integral(key.dtype) or key.dtype == t.DATE
            self.ranges.append(space.ends if plain and not safe else None)
            column = space.encode(key, num_rows)
            known &= column < space.size - 1
            if key_index and cardinality * space.size >= _MAX_CARDINALITY:
                values = integer_order.distinct(np.compress(known, codes))
                self._squeezes[key_index] = HashIndex(values), len(values)
                codes, cardinality = self._squeezed(key_index, codes), len(values) + 1
                if cardinality * space.size >= _MAX_CARDINALITY:
                    space = _key_space(key, safe, by_range=False)
                    column = space.encode(key, num_rows)
            self._spaces.append(space)
            codes = codes * space.size + column
            cardinality *= space.size
        self._cardinality = cardinality
        self._link(codes, np.flatnonzero(known))

    def _squeezed(self, key_index: int, codes: Int64s) -> Int64s:
        """Fewer codes for the key columns before ``key_index``, the last one for keys that no build row has."""
        index, count = self._squeezes[key_index]
        squeezed = index.lookup(codes)
        squeezed[squeezed < 0] = count
        return squeezed

    def _link(self, codes: Int64s, rows: Int64s) -> None:
        """Connect codes to rows: one row each when keys are unique, else runs of an order."""
        self.has_null_key = len(rows) < self.num_rows
        present = codes[rows]
        sparse = self._cardinality > min(_MAX_DENSE_CODES, max(65536, 16 * self.num_rows))
        if self._cardinality <= min(
            _MAX_DENSE_CODES, max(_MAX_DIRECT_CODES, _FLAG_BYTES_PER_BUILD_ROW * self.num_rows)
        ):
            self._flags = np.zeros(self._cardinality + 1, np.bool_)
            self._flags[present] = True
        if sparse:
            known = integer_order.distinct(present)
            direct = self._cardinality <= _MAX_DIRECT_CODES
            self._index = DirectIndex(known, self._cardinality) if direct else HashIndex(known)
            present = self._index.lookup(present)
            self._cardinality = max(len(known), 1)
        self._row_of = row_numbers(self._cardinality + 1, self.num_rows)
        self._row_of[present] = rows
        self.unique = bool((self._row_of[present] == rows).all())
        if self.unique:
            return
        self._order = rows.take(integer_order.stable_order(present))
        self._counts = np.bincount(present, minlength=self._cardinality + 1)
        self._starts = np.cumsum(self._counts) - self._counts

    def _codes(self, keys: Sequence[Vector], num_rows: int) -> Int64s:
        """Dense code of each probe row, -1 where no build row can match."""
        codes = self._combined(keys, num_rows)
        return codes if self._index is None else self._index.lookup(codes)

    def _combined(self, keys: Sequence[Vector], num_rows: int) -> Int64s:
        """One number for the codes of all keys of each probe row."""
        codes = np.zeros(num_rows, np.int64)
        for key_index, (key, space) in enumerate(zip(keys, self._spaces, strict=True)):
            column = space.encode(key, num_rows)
            if key_index == 0:
                codes = column
                continue
            if key_index in self._squeezes:
                codes = self._squeezed(key_index, codes)
            codes = codes * space.size + column
        return codes

    def counts(self, keys: Sequence[Vector], num_rows: int) -> tuple[Int64s, Int64s]:
        """Codes of the probe rows, and how many build rows each matches."""
        codes = self._codes(keys, num_rows)
        if self.unique:
            return codes, (self._row_of[codes] >= 0).astype(np.int64)
        return codes, self._counts[codes]

    @property
    def is_direct(self) -> bool:
        """Whether ``contains`` looks at one place a row, several times faster than by hash."""
        return self._flags is not None

    def contains(self, keys: Sequence[Vector], num_rows: int) -> npt.NDArray[np.bool_]:
        """Whether each probe row matches any build row."""
        if self._flags is not None:
            return self._flags[self._combined(keys, num_rows)]
        codes = self._codes(keys, num_rows)
        return np.asarray((self._row_of[codes] >= 0) if self.unique else (self._counts[codes] > 0))

    def mark_matched(self, codes: Int64s, marks: npt.NDArray[np.bool_]) -> None:
        """Set the marks of all build rows with these codes, without a pair for each row that probes them."""
        if self.unique:
            rows = self._row_of[codes]
            marks[rows[rows >= 0]] = True
            return
        matched = np.zeros(len(self._counts), np.bool_)
        matched[codes] = True
        marks[self._order[np.repeat(matched, self._counts)]] = True

    def matches(self, codes: Int64s, counts: Int64s) -> Matches:
        """All pairs for the codes and counts that ``counts`` gave."""
        if self.unique:
            probe = np.flatnonzero(counts)
            return Matches(probe, self._row_of[codes[probe]].astype(np.int64))
        total = int(counts.sum())
        probe = np.repeat(np.arange(len(codes), dtype=np.int64), counts)
        ends = np.cumsum(counts)
        within = np.arange(total, dtype=np.int64) - np.repeat(ends - counts, counts)
        return Matches(probe, self._order[np.repeat(self._starts[codes], counts) + within])


def _key_space(key: Vector, null_safe: bool, by_range: bool = True) -> KeySpace:
    """The space of a build column; unless ``by_range``, it is no larger than the column has values, and two."""
    if t.is_decimal(key.dtype) and not key.is_narrow:
        return _by_value(key.plain(), lambda v: v.plain(), null_safe)
    integers = as_integers(key)
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
    """Codes of a column in which NULL has its own."""
    valid = validity(data)
    return codes if valid is None else np.where(valid, codes, null_code)


def _by_range(build: pa.Array, null_safe: bool, limit: int) -> KeySpace:
    """Integers: offset from the smallest build value; by value from a range of the size ``limit``."""
    ends = pc.min_max(build)
    empty = len(build) == build.null_count
    low, high = (1, 0) if empty else (ends["min"].as_py(), ends["max"].as_py())
    value_range = None if empty else (low, high)
    size = high - low + 3
    absent = _absent(build, low, high)
    if size >= limit:
        return replace(_by_value(build, lambda v: _integers_of(v, absent), null_safe), ends=value_range)
    null_code = 0 if null_safe else size - 1

    def encode(vector: Vector, num_rows: int) -> Int64s:
        data = _integers_of(vector, absent)
        with np.errstate(over="ignore"):  # what is below the range wraps around to far above it
            offsets = (np.asarray(dk.as_int64(data)) - np.int64(low)).view(np.uint64)
        np.minimum(offsets, np.uint64(size - 2), out=offsets)
        offsets += np.uint64(1)
        return _with_nulls(offsets.view(np.int64), data, null_code)

    return KeySpace(encode, size, value_range)


def _absent(build: pa.Array, low: int, high: int) -> int:
    """An int64 that is not among the build values."""
    if high < _INT64.max:
        return int(_INT64.max)
    if low > _INT64.min:
        return int(_INT64.min)
    return int(np.setdiff1d(_INT64.max - np.arange(len(build) + 1), build.drop_null())[0])


def _integers_of(vector: Vector, absent: int) -> pa.Array:
    """Probe values as int64; decimals too wide for int64 match no narrow build value and become ``absent``."""
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
    values = (key.data.dictionary if key.is_dictionary else key.data).unique().drop_null()
    lookup = BytesIndex(values).lookup
    size = len(values) + 2
    null_code = 0 if null_safe else size - 1

    def encode(vector: Vector, num_rows: int) -> Int64s:
        data = vector.data
        if vector.is_dictionary:
            codes = _codes(lookup(data.dictionary), size) if len(data.dictionary) else np.full(1, size - 1)
            codes = codes[data.indices.fill_null(0).to_numpy(zero_copy_only=False)]
        else:
            codes = _codes(lookup(data), size)
        return _with_nulls(codes, data, null_code)

    return KeySpace(encode, size)


def _by_value(build: pa.Array, form: Callable[[Vector], pa.Array], null_safe: bool) -> KeySpace:
    values = build.unique().drop_null()
    lookup = _lookup(values)
    size = len(values) + 2
    null_code = 0 if null_safe else size - 1

    def encode(vector: Vector, num_rows: int) -> Int64s:
        data = form(vector)
        if data.type != values.type:
            data = data.cast(values.type)
        return _with_nulls(_codes(lookup(data), size), data, null_code)

    return KeySpace(encode, size)


def _lookup(values: pa.Array) -> Callable[[pa.Array], Int64s]:
    """A function to the positions of data among distinct values, -1 where they are absent; NULLs anywhere."""
    if pa.types.is_int64(values.type):
        index = HashIndex(slots(values))
        return lambda data: index.lookup(slots(data))
    if values.type in (t.STRING, t.BINARY):
        return BytesIndex(values).lookup
    return lambda data: places_of(data, values)


def _codes(places: Int64s, size: int) -> Int64s:
    """Codes from 1 on for places, the last one for values that no build row has."""
    return np.where(places < 0, size - 1, places + 1)
