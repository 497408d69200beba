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

Arrays with one entry per possible code are several times as fast as a hash table, but can take much more memory than the
build rows. So they are only used within ``direct_bytes``. ``nbytes`` is the memory of all arrays.

All functions work on whole columns of a batch: no Python code loops over rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kquery_spark.kernels import integer_order
from kquery_spark.kernels.hash_index import DirectIndex, HashIndex, empty_slots
from kquery_spark.physical.grouping.groups import MAX_CARDINALITY
from kquery_spark.physical.joins.column_matches import ColumnMatches
from kquery_spark.physical.joins.key_space import (
    MAX_DENSE_CODES,
    MAX_DIRECT_CODES,
    DirectMemory,
    KeySpace,
    key_space,
    reserve_flags,
)
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector

_DENSE_CODE_BYTES = 12
"""The memory per code at the peak of ``_build_arrays``: a 64-bit count, and the 32-bit count that it is converted to."""
_SLOT_BYTES = 4
_MAX_SMALL_CODES = 4096  # arrays for at most this number of codes are always used, whatever the limit


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
    columns. columns: if there are several key columns, the values of each of them.

    direct_bytes: the memory that arrays with one entry per possible code may take, beyond that of a hash table.
    """

    def __init__(
        self, keys: Sequence[Vector], num_rows: int, null_safe: Sequence[bool], direct_bytes: int
    ) -> None:
        self.num_rows = num_rows
        self.ranges: list[tuple[int, int] | None] = []
        self.columns: list[ColumnMatches] = []
        self._spaces: list[KeySpace] = []
        # By key column: the index (and its size) that compresses the combined codes of the columns before it.
        self._compressions: dict[int, tuple[HashIndex, int]] = {}
        self._index: HashIndex | DirectIndex | None = None
        self._flags: npt.NDArray[np.bool_] | None = None
        codes = np.zeros(num_rows, np.int64)
        known = np.ones(num_rows, np.bool_)
        cardinality = 1
        for key_index, (key, safe) in enumerate(zip(keys, null_safe, strict=True)):
            space = key_space(key, safe)
            plain = t.is_integral(key.dtype) or key.dtype == t.DATE
            self.ranges.append(space.value_range if plain and not safe else None)
            column = space.encode(key, num_rows)
            # A build row has the last code only for a NULL in a column that is not null-safe. It matches nothing.
            known &= column < space.size - 1
            if key_index and cardinality * space.size >= MAX_CARDINALITY:
                values = integer_order.distinct_values(np.compress(known, codes))
                self._compressions[key_index] = HashIndex(values), len(values)
                codes, cardinality = self._compress(key_index, codes), len(values) + 1
                # A wide range of integers can still be too large: encode by distinct values instead of by offsets.
                if cardinality * space.size >= MAX_CARDINALITY:
                    space = key_space(key, safe, by_range=False)
                    column = space.encode(key, num_rows)
            self._spaces.append(space)
            codes = codes * space.size + column
            cardinality *= space.size
        self._cardinality = cardinality
        memory = DirectMemory(direct_bytes)
        self._build_arrays(codes, np.flatnonzero(known), memory)
        if len(keys) > 1:
            self.columns = [
                ColumnMatches(key, num_rows, space, value_range, memory)
                for key, space, value_range in zip(keys, self._spaces, self.ranges, strict=True)
            ]

    @property
    def nbytes(self) -> int:
        """The memory of the table without the build rows. If there are several key columns, these are included."""
        rows = [self._row_of] if self.unique else [self._order, self._counts, self._starts]
        compressions = [index for index, _ in self._compressions.values()]
        optional = [part for part in (self._index, self._flags) if part is not None]
        parts = [*rows, *compressions, *optional, *self._spaces, *self.columns]
        return sum(int(part.nbytes) for part in parts)

    def _compress(self, key_index: int, codes: Int64s) -> Int64s:
        """Replace the combined codes of the columns before ``key_index`` by their positions among the build side's."""
        index, count = self._compressions[key_index]
        compressed = index.lookup(codes)
        compressed[compressed < 0] = count
        return compressed

    def _build_arrays(self, codes: Int64s, rows: Int64s, memory: DirectMemory) -> None:
        """Build the arrays from codes to build rows. rows: the build rows that can match, that is, without NULL keys."""
        self.has_null_key = len(rows) < self.num_rows
        present = codes[rows]
        # If there are few possible codes, arrays are indexed by code. Otherwise an index maps the codes that occur to
        # 0, 1, 2, ... first. One flag per code answers ``contains`` without that index, at one byte per possible code.
        sparse = not self._reserve_dense_arrays(memory)
        direct = sparse and self._cardinality <= MAX_DIRECT_CODES
        direct = direct and memory.reserve(_SLOT_BYTES * self._cardinality)
        if reserve_flags(self._cardinality, self.num_rows, memory):
            self._flags = np.zeros(self._cardinality + 1, np.bool_)
            self._flags[present] = True
        if sparse:
            known = integer_order.distinct_values(present)
            self._index = DirectIndex(known, self._cardinality) if direct else HashIndex(known)
            present = self._index.lookup(present)
            self._cardinality = max(len(known), 1)
        # One entry more than codes: index -1 (no such code) reads the last entry, which stays "no row".
        row_of = empty_slots(self._cardinality + 1, self.num_rows)
        row_of[present] = rows
        # If two rows have the same code, the second assignment overwrote the first one.
        self.unique = bool((row_of[present] == rows).all())
        if self.unique:
            self._row_of = row_of
            return
        number_type = row_of.dtype
        del row_of
        # The rows of code c are _order[_starts[c] : _starts[c] + _counts[c]].
        self._order = rows.take(integer_order.stable_order(present))
        self._counts = np.bincount(present, minlength=self._cardinality + 1).astype(number_type)
        self._starts = np.cumsum(self._counts, dtype=number_type)
        self._starts -= self._counts

    def _reserve_dense_arrays(self, memory: DirectMemory) -> bool:
        """Reserve the memory of arrays from all possible codes to rows; return False if they are too large."""
        codes, rows = self._cardinality, self.num_rows
        if codes > min(MAX_DENSE_CODES, max(65536, 16 * rows)):
            return False
        # A hash table for as many rows is not smaller than two entries per row.
        return codes <= max(_MAX_SMALL_CODES, 2 * rows) or memory.reserve(_DENSE_CODE_BYTES * codes)

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
        return codes, self._counts[codes].astype(np.int64)

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
