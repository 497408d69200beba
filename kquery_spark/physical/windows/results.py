"""The results of window calls, which are built for a few rows at a time.

A result can be much larger than the input: ``collect_list(x) OVER (PARTITION BY g)`` repeats the list of a partition on each
of its rows, so n rows have n * n elements. Likewise, ``max(s)`` repeats the longest string. So such a result is not an array
of all rows. It knows how to build its rows, and how many bytes they take. ``with_results`` outputs batches of limited size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.cached_property import cached_property
from kquery_spark.physical.pairs import pair_slices
from kquery_spark.run_control import check_run
from kquery_spark.types.batch import Batch, coalesced, cut
from kquery_spark.types.sizes import has_offsets, reserve_gather, row_bytes
from kquery_spark.types.vector import Data, Flags, Int64s, Vector

_MAX_RESULT_BYTES = 32 << 20
_RESULT_BUDGET_DIVISOR = 32  # the results of a batch may use the memory budget divided by this number


def max_window_result_bytes(memory_bytes: int) -> int:
    """Return the bytes of results that are built together. memory_bytes: the memory budget of the task."""
    return max(1, min(_MAX_RESULT_BYTES, memory_bytes // _RESULT_BUDGET_DIVISOR))


class WindowResult(ABC):
    """The result of a call: one value for each of the arranged rows."""

    @abstractmethod
    def sliced(self, start: int, length: int) -> WindowResult:
        """Return the result of some of the rows. Nothing is copied."""

    @abstractmethod
    def array(self) -> pa.Array:
        """Build the values of all rows."""

    @property
    def largest_row_bytes(self) -> int:
        """The largest number of bytes that building a row takes; 0 if the rows exist already."""
        return 0

    def row_bytes(self) -> Int64s:
        """Return an upper bound of the bytes that building each row takes. Called only if ``largest_row_bytes`` is not 0."""
        raise NotImplementedError


class ComputedResult(WindowResult):
    """A result whose rows exist already."""

    def __init__(self, data: pa.Array) -> None:
        self._data = data

    @override
    def sliced(self, start: int, length: int) -> WindowResult:
        return ComputedResult(self._data.slice(start, length))

    @override
    def array(self) -> pa.Array:
        return self._data


class GatheredResult(WindowResult):
    """A result whose rows are copies of values. Many rows can be copies of the same value.

    rows: for each row, the position of its value in ``values``. missing: True for rows that are NULL; None if no row is.
    """

    def __init__(self, values: pa.Array, rows: Int64s, missing: Flags | None) -> None:
        self._values = values
        self._rows = rows
        self._missing = missing

    @override
    def sliced(self, start: int, length: int) -> WindowResult:
        missing = None if self._missing is None else self._missing[start : start + length]
        return GatheredResult(self._values, self._rows[start : start + length], missing)

    @override
    def array(self) -> pa.Array:
        check_run()
        has_missing = self._missing is not None and self._missing.any()
        rows = pa.array(self._rows, mask=self._missing if has_missing else None)
        reserve_gather([self._values], rows if has_missing else self._rows)
        return self._values.take(rows)

    @cached_property
    def _value_bytes(self) -> Int64s:
        return row_bytes(self._values)

    @property
    @override
    def largest_row_bytes(self) -> int:
        return int(self._value_bytes.max(initial=0))

    @override
    def row_bytes(self) -> Int64s:
        sizes = self._value_bytes[self._rows]
        return sizes if self._missing is None else np.where(self._missing, 0, sizes)


def gathered(values: Vector, rows: Int64s, missing: Flags | None = None) -> WindowResult:
    """Return the result whose row i is ``values[rows[i]]``, or NULL if ``missing[i]``; even then, ``rows[i]`` must be valid.

    Values of a fixed size are copied at once.
    """
    data: Data = values.data
    if values.is_scalar:
        data, rows = values.physical(1), np.zeros(len(rows), np.int64)
    result = GatheredResult(data, rows, missing)
    return result if has_offsets(data.type) else ComputedResult(result.array())


def with_results(
    rows: Batch, results: Sequence[WindowResult], schema: pa.Schema, batch_rows: int, max_bytes: int
) -> Iterator[Batch]:
    """Yield the rows and their results, in batches of at most ``batch_rows`` rows and about ``max_bytes`` of results.

    A batch can have a single row whose results are larger. schema: the columns of the rows, then the results.
    """
    n = rows.num_rows

    def build(start: int, length: int) -> Batch:
        built = [r.sliced(start, length).array() for r in results]
        return Batch(schema, (*rows.slice(start, length).columns, *built), length)

    unbuilt = [r for r in results if r.largest_row_bytes]
    if n * sum(r.largest_row_bytes for r in unbuilt) <= max_bytes:
        yield from cut(build(0, n), batch_rows)
        return
    sizes = np.sum([r.row_bytes() for r in unbuilt], axis=0)
    batches = (build(start, stop - start) for start, stop in pair_slices(sizes, max_bytes))
    # The sizes are upper bounds, so these batches can be much smaller than ``max_bytes``. Combine small ones.
    for batch in coalesced(batches, batch_rows, max_bytes // 2):
        yield from cut(batch, batch_rows)
