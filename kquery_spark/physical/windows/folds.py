"""Fold: aggregates a partition that is divided into pieces. It has a state per piece, and merges ranges of pieces.

With the pieces 0 to 9, the frame UNBOUNDED PRECEDING to CURRENT ROW of a row in piece 4 is the merged state of the pieces 0
to 3, merged with the state of the rows of piece 4 up to the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.expr import WindowCall
from kquery_spark.expr.windows import FrameUnit
from kquery_spark.functions.aggregate.windows import aggregate_of
from kquery_spark.functions.aggregate_registry import null_ignoring_variant
from kquery_spark.functions.registry import CallContext
from kquery_spark.physical.grouping.groups import Groups
from kquery_spark.physical.windows.aggregates import (
    accumulator_of,
    context_of,
    finished,
    framed_states,
    state_types,
)
from kquery_spark.physical.windows.picking import picked_values, window_function_of_call
from kquery_spark.physical.windows.results import ComputedResult, WindowResult
from kquery_spark.physical.windows.sliding import merge_pairs
from kquery_spark.types.batch import concat_arrays
from kquery_spark.types.sizes import has_offsets
from kquery_spark.types.vector import Int64s, Vector

States = list[Vector]


def as_aggregate(call: WindowCall) -> WindowCall:
    """Return a call of first_value or last_value as a call of the aggregates first or last, whose states can be merged."""
    name, ignores_nulls = window_function_of_call(call)
    aggregate = aggregate_of(name)
    if aggregate == name or len(call.args) > 1:
        return call
    folded = null_ignoring_variant(aggregate) if ignores_nulls else aggregate
    assert folded is not None
    return replace(call, function=folded, ignore_nulls=False)


class Fold:
    """The states of one call over the pieces. First ``add`` all pieces in order, then call the other methods."""

    def __init__(self, call: WindowCall) -> None:
        self.call = call
        self._accumulate = accumulator_of(call)
        self._states: list[States] = []
        self._between: dict[tuple[int, int], States] = {}

    @classmethod
    def from_call(cls, call: WindowCall) -> Fold | None:
        """Return the fold of a call; None if it needs no states: rankings, lag and lead, and ROWS frames with two bounds."""
        frame = call.frame
        bounded = frame.unit is FrameUnit.ROWS and frame.lower is not None and frame.upper is not None
        if (call.entry is not None and call.entry.ordered) or bounded:
            return None
        return cls(as_aggregate(call))

    def add(self, args: Sequence[Vector], n: int) -> None:
        """Add the rows of the next piece. args: its argument columns."""
        groups = Groups(np.zeros(n, np.int64), 1, np.zeros(1, np.int64))
        self._states.append(self._accumulate.update(args, groups, context_of(self.call, n)))

    @cached_property
    def _states_up_to(self) -> list[States]:
        """Entry i has the merged state of the pieces 0 to i."""
        done = [self._states[0]]
        for states in self._states[1:]:
            done.append(self._merged([done[-1], states]))
        return done

    @cached_property
    def _states_from(self) -> list[States]:
        """Entry i has the merged state of the pieces from i to the last one."""
        done = [self._states[-1]]
        for states in self._states[-2::-1]:
            done.append(self._merged([states, done[-1]]))
        return done[::-1]

    def between(self, low: int, high: int) -> States:
        """Return the merged state of the pieces ``low:high``, which are at least one."""
        if low == 0:
            return self._states_up_to[high - 1]
        if high == len(self._states):
            return self._states_from[low]
        if (low, high) not in self._between:
            # Only the last range is cached: consecutive pieces of the same peers ask for the same range.
            self._between = {(low, high): self._merged(self._states[low:high])}
        return self._between[low, high]

    def _merged(self, states: Sequence[States]) -> States:
        n = len(states)
        together = [
            Vector(parts[0].dtype, concat_arrays(parts[0].dtype, [p.data for p in parts]))
            for parts in zip(*states, strict=True)
        ]
        groups = Groups(np.zeros(n, np.int64), 1, np.zeros(1, np.int64))
        return self._accumulate.merge(
            together, groups, CallContext(self.call.dtype, self.call.mode, num_rows=n)
        )

    def completed(
        self, call: WindowCall, args: Sequence[Vector], frame: tuple[Int64s, Int64s], span: range
    ) -> WindowResult:
        """Return the results of frames that reach from the pieces ``span`` into the pieces before or after these.

        args: the argument columns of the rows of ``span``. frame: the part of each row's frame within these rows. Frames
        without a lower bound also have all pieces before, and frames without an upper bound all pieces after.
        """
        low, high = frame
        n = len(low)
        before = after = None
        if call.frame.lower is None and span.start:
            before = self.between(0, span.start)
        if call.frame.upper is None and span.stop < len(self._states):
            after = self.between(span.stop, len(self._states))
        if any(map(has_offsets, state_types(self.call))):
            return self._picked(args, frame, before, after)
        states = framed_states(self.call, args, low, high)
        context = context_of(self.call, n)
        if before is not None:
            states = merge_pairs(self._accumulate, _repeated(before, n), states, context)
        if after is not None:
            states = merge_pairs(self._accumulate, states, _repeated(after, n), context)
        return ComputedResult(finished(self.call, states, n))

    def _picked(
        self,
        args: Sequence[Vector],
        frame: tuple[Int64s, Int64s],
        before: States | None,
        after: States | None,
    ) -> WindowResult:
        """Return the results of a call that picks a value, such as MAX of strings.

        The merged state of other pieces has the columns of the row that they pick, in the order of ``args``. So it is put
        before or after the rows of ``args``, as one more row that belongs to every frame.
        """
        (low, high), n = frame, len(frame[0])
        columns = []
        for i, arg in enumerate(args):
            parts = [arg.physical(n)]
            if before is not None:
                parts.insert(0, before[i].data)
            if after is not None:
                parts.append(after[i].data)
            columns.append(Vector(arg.dtype, concat_arrays(arg.dtype, parts)))
        if before is not None:
            high = high + 1  # ``low`` is 0 already, because these frames have no lower bound
        if after is not None:
            high = np.full(n, len(columns[0].data), np.int64)
        result = picked_values(self.call, columns, low, high)
        # Other aggregates with binary states, which build bitmaps, are not computed over windows.
        assert result is not None
        return result


def _repeated(states: States, n: int) -> States:
    index = pa.array(np.zeros(n, np.int64))
    return [Vector(v.dtype, v.data.take(index)) for v in states]
