"""Dynamic filter of a grouped MIN/MAX: skips rows of known groups that cannot improve the extreme of any group.

For ``SELECT k, max(x) GROUP BY k`` with the groups a: 90, b: 70 and c: 80 so far, the weakest extreme is 70. A row of one
of these groups can only change the result if its x is greater than 70. Rows of other groups always pass. For few groups,
most rows are skipped after the first batches, and the check takes a third of the time of grouping the rows. DataFusion has
such dynamic filters for MIN and MAX without groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from kquery_spark.expr import AggregateCall, Column, Expr, Named
from kquery_spark.physical.dynamic_filters.runtime_filter import RuntimeFilter
from kquery_spark.physical.grouping.key_values import native_integers
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch, concat, row_flags
from kquery_spark.types.vector import Int64s, Vector, slots, validity

MIN_ROWS = 16_384  # for batches with fewer rows, the filter costs more than it saves
_MAX_GROUPS = 4096  # with more groups, the filter is disabled
# The largest range of integer keys, and the largest dictionary, for which flags are computed.
_MAX_KEY_RANGE = 65_536
_MIN_ROWS_PER_PASSED_ROW = 4  # a useful filter passes at most one of this number of rows
# The filter is disabled after this number of consecutive batches in which it was not useful.
_TRIAL_BATCHES = 3
_MAX_SEARCHED_VALUES = 4  # if a dictionary has more unknown values, their rows are not searched
_NO_ROWS = np.zeros(0, np.int64)


class GroupExtrema:
    """The keys and extremes of the groups so far.

    It is for groupings by one key in which all aggregates are MIN or MAX of numbers or times. Without aggregates (DISTINCT),
    all rows of known groups are skipped. The key is an integer in a narrow range, or a dictionary-encoded string column.
    largest: for each aggregate, whether it is MAX. merge: merges a batch of states to one row per group.
    """

    def __init__(self, largest: Sequence[bool], merge: Callable[[Batch], Batch]) -> None:
        self._largest = tuple(largest)
        self._merge = merge
        self._states: list[Batch] = []  # the merged states of all groups so far: at most one batch
        self._known_keys: _KnownIntegers | _KnownStrings | None = None
        self._extremes: list[Any] = []  # for each aggregate, the weakest extreme of all groups
        self._trials = _TRIAL_BATCHES
        self.is_applied = False  # True if a scan applies the filter, so that its rows need no second check

    def learn(self, states: Batch, rows: int) -> None:
        """Add the states of a batch of ``rows`` rows. Small batches are ignored: merging would cost more than it saves."""
        if self._trials == 0 or rows < MIN_ROWS:
            return
        merged = self._merge(concat(states.schema, [*self._states, states]))
        key = merged.vector(0)
        known_keys = _KnownStrings.from_key(key) if key.dtype == t.STRING else _KnownIntegers.from_key(key)
        self._states, self._known_keys, self._extremes = [merged], known_keys, []
        if merged.num_rows > _MAX_GROUPS:
            self.forget()
            return
        for i, largest in enumerate(self._largest):
            values = _numbers(merged.vector(i + 1))
            # No filter is possible yet: the values are not numbers (wide decimals), or a group has no value so far,
            # so that any value improves its extreme (NULL).
            if values is None or merged.columns[i + 1].null_count:
                self._known_keys = None
                return
            # NaN is the largest value. So the minimum is NaN only if all values are (fmin), and the maximum is NaN if any
            # value is.
            self._extremes.append(np.fmin.reduce(values) if largest else np.maximum.reduce(values))

    def rows(self, key: Vector, values: Sequence[Vector], num_rows: int) -> Int64s | None:
        """Return the rows that can change a state; None for all rows, also if the filter would drop too few of them."""
        if self._known_keys is None or self.is_applied or num_rows < MIN_ROWS:
            return None
        rows = self._passing(self._known_keys, key, values)
        if rows is not None and _MIN_ROWS_PER_PASSED_ROW * len(rows) <= num_rows:
            self._trials = _TRIAL_BATCHES
            return rows
        self._trials -= 1
        if self._trials == 0:
            self.forget()
        return None

    def forget(self) -> None:
        """Disable the filter for good: it is not useful, or the aggregation has ended."""
        self._trials, self._states, self._known_keys = 0, [], None

    @property
    def has_groups(self) -> bool:
        """True if there are known groups to compare rows with: not before the first states, nor after ``forget``."""
        return self._known_keys is not None

    def mask(self, key: Vector, values: Sequence[Vector], num_rows: int) -> npt.NDArray[np.bool_]:
        """Return a mask that is True for each row that can change a state."""
        rows = None if self._known_keys is None else self._passing(self._known_keys, key, values)
        return np.ones(num_rows, np.bool_) if rows is None else row_flags(rows, num_rows)

    def mask_of_unknown_keys(self, key: Vector) -> npt.NDArray[np.bool_] | None:
        """Return a mask that is True for each key of an unknown group; None if finding these would take long."""
        rows = None if self._known_keys is None else self._known_keys.unknown_rows(key)
        return None if rows is None else row_flags(rows, len(key.data))

    def mask_of_improving_values(self, aggregate_index: int, values: Vector) -> npt.NDArray[np.bool_] | None:
        """Return a mask that is True for each value of an aggregate that is better than the extreme of some group."""
        numbers = _numbers(values) if self._known_keys is not None else None
        if numbers is None:
            return None
        hits = self._improves(aggregate_index, numbers)
        valid = validity(values.data)
        return hits if valid is None else hits & valid

    def _improves(self, aggregate_index: int, numbers: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        extreme = self._extremes[aggregate_index]
        # Comparisons with NaN are False, so NaN always passes.
        hits: npt.NDArray[np.bool_] = ~(
            numbers <= extreme if self._largest[aggregate_index] else numbers >= extreme
        )
        return hits

    def _passing(
        self, known_keys: _KnownIntegers | _KnownStrings, key: Vector, values: Sequence[Vector]
    ) -> Int64s | None:
        """Return the rows of unknown groups and the rows that are better than an extreme; None if that would take long."""
        unknown_rows = known_keys.unknown_rows(key)
        if unknown_rows is None or not values:
            return unknown_rows
        passing = row_flags(unknown_rows, len(key.data))
        for aggregate_index, vector in enumerate(values):
            numbers = _numbers(vector)
            if numbers is None:
                return None
            passing |= self._improves(aggregate_index, numbers)
        return np.flatnonzero(passing)


@dataclass
class MinMaxFilter(RuntimeFilter):
    """Passes the rows that can change a state of a grouped MIN/MAX. Its columns are the key, then the arguments."""

    tightens: ClassVar[bool] = True

    extrema: GroupExtrema

    @property
    @override
    def is_on(self) -> bool:
        return self.extrema.has_groups and super().is_on

    @property
    @override
    def is_quick(self) -> bool:
        return True

    @override
    def conditions(self, columns: Sequence[Column]) -> list[Expr]:
        """Return no condition, because a row can pass by its key or by any of its values."""
        return []

    @override
    def count(self, seen: int, passed: int) -> None:
        self.extrema.is_applied = True
        super().count(seen, passed)

    @override
    def passing_values(self, column_index: int, values: Vector) -> npt.NDArray[np.bool_] | None:
        return (
            self.extrema.mask_of_improving_values(column_index - 1, values)
            if column_index
            else self.extrema.mask_of_unknown_keys(values)
        )

    def _hits(self, keys: Sequence[Vector], num_rows: int) -> npt.NDArray[np.bool_]:
        return self.extrema.mask(keys[0], keys[1:], num_rows)


@dataclass(frozen=True)
class _KnownIntegers:
    """The integer keys of known groups. ``flags[i]`` is True if ``lowest + i`` is a key; ``null``: if NULL is one."""

    lowest: int
    flags: npt.NDArray[np.bool_]
    null: bool

    @classmethod
    def from_key(cls, key: Vector) -> _KnownIntegers | None:
        """Return the values of a key column; None if their range is too large."""
        data = native_integers(key)
        if data is None or data.null_count == len(data):
            return None
        ends = pc.min_max(data)
        lowest, highest = ends["min"].as_py(), ends["max"].as_py()
        if highest - lowest >= _MAX_KEY_RANGE:
            return None
        flags = np.zeros(highest - lowest + 1, np.bool_)
        flags[data.drop_null().to_numpy().astype(np.int64) - lowest] = True
        return cls(lowest, flags, data.null_count > 0)

    def unknown_rows(self, key: Vector) -> Int64s | None:
        """Return the rows whose key is not that of a known group; None if finding them would take long.

        In most batches, all keys are known. If all flags from the batch's minimum to its maximum are set, no row has to be
        looked up. A batch with keys outside of the known range has new groups, so it is not worth a search.
        """
        data = native_integers(key)
        if data is None or (data.null_count and not self.null):
            return None
        ends = pc.min_max(data)
        if not ends["min"].is_valid:
            return _NO_ROWS
        low, high = ends["min"].as_py() - self.lowest, ends["max"].as_py() - self.lowest
        if low < 0 or high >= len(self.flags):
            return None
        if self.flags[low : high + 1].all():
            return _NO_ROWS
        offsets = data.fill_null(ends["min"]).to_numpy().astype(np.int64) - self.lowest
        other = ~self.flags.take(offsets)
        valid = validity(data)
        return np.flatnonzero(other if valid is None else other & valid)


@dataclass(frozen=True)
class _KnownStrings:
    """The string keys of known groups, which can include NULL."""

    keys: pa.Array

    @classmethod
    def from_key(cls, key: Vector) -> _KnownStrings:
        """Return the values of a key column."""
        return cls(key.plain())

    def unknown_rows(self, key: Vector) -> Int64s | None:
        """Return the rows whose key is not that of a known group; None if finding them would take long."""
        if not key.is_dictionary or len(key.data.dictionary) > _MAX_KEY_RANGE:
            return None
        data = key.data
        known = pc.is_in(data.dictionary, value_set=self.keys)
        if (data.null_count and not self.keys.null_count) or known.false_count > _MAX_SEARCHED_VALUES:
            return None
        rows_by_value = [_NO_ROWS]
        for index in np.flatnonzero(~known.to_numpy(zero_copy_only=False)):
            rows_by_value.append(
                np.flatnonzero(pc.equal(data.indices, pa.scalar(int(index), pa.int32())).fill_null(False))
            )
        return np.concatenate(rows_by_value)


def group_extrema(
    keys: Sequence[Named], calls: Sequence[AggregateCall], merge: Callable[[Batch], Batch]
) -> GroupExtrema | None:
    """Return an empty ``GroupExtrema`` for an aggregation; None if it is not a MIN/MAX (or DISTINCT) by one key."""
    types = [k.field.type for k in keys]
    if len(types) != 1 or not (_is_integer(types[0]) or types[0] == t.STRING):
        return None
    if not all(map(_is_extreme, calls)):
        return None
    return GroupExtrema([c.entry.extreme == "greatest" for c in calls], merge)


def _is_extreme(call: AggregateCall) -> bool:
    """Return True if the call is MIN or MAX of numbers or times, without a FILTER."""
    has_numbers = _is_integer(call.dtype) or t.is_fractional(call.dtype)
    return bool(call.entry.extreme) and call.condition is None and has_numbers


def _is_integer(dtype: pa.DataType) -> bool:
    """Return True if values are represented by integers (decimals: if they are narrow)."""
    return t.is_integral(dtype) or t.is_decimal(dtype) or pa.types.is_temporal(dtype)


def _numbers(vector: Vector) -> npt.NDArray[Any] | None:
    """Return values as a numpy array in Spark's order, except for NaN; None if there is none.

    The slots of NULLs have arbitrary values.
    """
    if vector.is_scalar:
        return None
    data = vector.data if t.is_fractional(vector.dtype) else native_integers(vector)
    return None if data is None else slots(data)
