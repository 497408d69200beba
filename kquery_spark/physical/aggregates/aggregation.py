"""The execution of one aggregation in one task: computes states from rows, merges them, and computes the results.

The state batch of ``SELECT k, sum(x), max(y) GROUP BY k`` has the keys first, then the state columns of each call:

    k   sum(x).0 (sum)   sum(x).1 (count)   max(y).0
    a   30               2                  7
    b   5                1                  NULL

Each input batch is grouped by itself, which gives one such batch. Its rows are far fewer than those of the input in most
cases, so several state batches are collected and merged together (``merge_states``). If the states exceed the memory budget,
they are written to hash partitions on disk, and the partitions are merged one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.expr import AggregateCall, Expr
from kquery_spark.functions.registry import CallContext
from kquery_spark.kernels.equal_rows import first_rows
from kquery_spark.kernels.ordered_bytes import has_floats, normalize_zeros
from kquery_spark.physical.aggregates import Accumulator, accumulator
from kquery_spark.physical.aggregates.phase import Phase
from kquery_spark.physical.dynamic_filters.min_max import MinMaxFilter, group_extrema
from kquery_spark.physical.dynamic_filters.runtime_filter import key_names
from kquery_spark.physical.expr import Program
from kquery_spark.physical.grouping.group_rows import group_rows
from kquery_spark.physical.grouping.groups import Codes, Groups
from kquery_spark.physical.grouping.key_codes import encode, pack
from kquery_spark.physical.selected_rows import SelectedRows, Selections
from kquery_spark.physical.spill import MAX_LEVEL, HashPartitions, SpillDirectory, hashed_bytes
from kquery_spark.types.batch import Batch, coalesced, concat, drain, from_vectors
from kquery_spark.types.vector import Int64s, Vector

if TYPE_CHECKING:
    from kquery_spark.physical.operators.aggregate import AggregateExec
    from kquery_spark.physical.operators.base import Metrics

_MERGE_ROWS = 2_000_000  # state rows to collect before they are merged
_PROBE_ROWS = 400_000  # the number of rows to group before partial aggregation may be switched off
_MAX_GROUPS_PER_ROW = 0.8  # a grouping with more groups per row hardly reduces the rows
# The rows of a batch that are grouped as a test of whether grouping the batch is worth it.
_SAMPLE_ROWS = 4096


class Aggregation:
    """The compiled form of one AggregateExec in one task."""

    def __init__(self, plan: AggregateExec) -> None:
        self._plan = plan
        self._schema = plan.state_schema
        self._key_count = len(plan.keys)
        self._calls = plan.calls
        self._accumulators: list[Accumulator] = [accumulator(c.entry.accumulator) for c in self._calls]
        widths = [
            len(a.state_types([x.dtype for x in c.args], c.dtype))
            for a, c in zip(self._accumulators, self._calls, strict=True)
        ]
        self._spans: list[tuple[int, int]] = []
        start = self._key_count
        for width in widths:
            self._spans.append((start, start + width))
            start += width
        # In phase MIXED, the child has states for some calls and rows for the others. For each call: the index of its first
        # state column in the child; None if the call is computed from rows.
        names = plan.child.schema.names if plan.phase is Phase.MIXED else []
        first_columns = [f"{named.name}.0" for named in plan.aggregates]
        self._state_columns = [names.index(name) if name in names else None for name in first_columns]
        from_rows = plan.phase in (Phase.SINGLE, Phase.PARTIAL) and not plan.in_order
        self._extremes = group_extrema(plan.keys, self._calls, self.merge) if from_rows else None

    def filter(self) -> MinMaxFilter | None:
        """Return the dynamic filter of a grouped MIN/MAX; None unless all keys and arguments are columns of the child."""
        if self._extremes is None:
            return None
        names = key_names([k.expr for k in self._plan.keys] + [c.args[0] for c in self._calls])
        return None if names is None else MinMaxFilter(names, self._extremes)

    def close(self) -> None:
        """Disable the dynamic filter, because another run may read the same scan."""
        if self._extremes is not None:
            self._extremes.forget()

    def update(self, batch: Batch, each_row: bool = False) -> Batch:
        """Return the states of a batch of the child's rows. each_row: skip grouping and make every row its own group."""
        vectors, n = self._program.run(batch), batch.num_rows
        # Drop rows that cannot change the minimum or maximum of a known group.
        if self._extremes is not None and not each_row:
            vectors, n = _take_selected_rows(
                vectors, self._extremes.rows(vectors[0].filled(n), vectors[1:], n), n
            )
        keys = [v.filled(n) for v in vectors[: self._key_count]]
        groups = _rows_as_groups(n) if each_row else group_rows(keys, n)
        columns = _take_keys(keys, groups)
        values, selections = iter(vectors[self._key_count :]), Selections(groups, n)
        per_call = zip(self._calls, self._accumulators, self._spans, self._state_columns, strict=True)
        for call, accumulate, (start, end), state_column in per_call:
            if state_column is None:
                columns += self._call_states(call, accumulate, values, selections, groups, n)
            else:
                vectors = [batch.vector(state_column + j) for j in range(end - start)]
                columns += accumulate.merge(vectors, groups, CallContext(call.dtype, call.mode, num_rows=n))
        states = from_vectors(self._schema, columns, groups.count)
        if self._extremes is not None and not each_row:
            self._extremes.learn(states, n)
        return states

    @property
    def is_deterministic(self) -> bool:
        """True if ``update`` may run again over the same rows: it stores nothing before it succeeds."""
        return self._program.is_deterministic

    @cached_property
    def _program(self) -> Program:
        """The program that computes the keys, then the arguments and the condition of each call that reads rows."""
        exprs: list[Expr] = [k.expr for k in self._plan.keys]
        for call, state_column in zip(self._calls, self._state_columns, strict=True):
            if state_column is None:
                exprs += call.children
        return Program(exprs, self._plan.child.schema)

    def _call_states(
        self,
        call: AggregateCall,
        accumulate: Accumulator,
        values: Iterator[Vector],
        selections: Selections,
        groups: Groups,
        n: int,
    ) -> list[Vector]:
        """Return the states of one call, which takes its arguments and then its condition from ``values``.

        FILTER and DISTINCT select rows: first those that pass the condition, then the first of equal arguments per group.
        """
        args: Sequence[Vector] = [next(values) for _ in call.args]
        selected = None if call.condition is None else selections.where(next(values))
        if call.is_distinct:
            rows = np.arange(n) if selected is None else selected.rows
            selected = SelectedRows(_first_rows_of_distinct_args(args, groups, rows, n), groups)
        if selected is not None:
            args, groups, n = [selected.take(a) for a in args], selected.groups, len(selected.rows)
        if call.is_distinct:
            args = [a if a.is_scalar else _normalized(a) for a in args]
        return accumulate.update(args, groups, CallContext(call.dtype, call.mode, num_rows=n))

    def states_of_sorted_rows(self, source: Iterator[Batch]) -> Iterator[Batch]:
        """Yield the states of groups as soon as they are complete, from rows in which equal keys are consecutive.

        The last group of a batch may continue in the next one, so it stays open until then. For batches with the keys
        ``a a b | b c``, the first step yields a and holds b, the second yields b (merged from both batches) and holds c.

        States are merged by key, but the groups of a merge are not numbered by position. To find the number of the open
        group, the state of the last row is appended once more, as a probe: its group is the open one.
        """
        open_group: Batch | None = None
        for batch in source:
            states = self.update(batch)
            # This is the probe: it only supplies the keys of the last group.
            final = self.update(batch.slice(batch.num_rows - 1))
            pieces = [states, final] if open_group is None else [open_group, states, final]
            keys = self._keys_of(concat(self._schema, pieces))
            groups = group_rows(keys, len(keys[0].data))
            rows = groups.ids[:-1]  # the group of each state row, without the probe
            held = pa.array(np.flatnonzero(rows == groups.ids[-1]))
            ready = pa.array(np.flatnonzero(rows != groups.ids[-1]))
            together = concat(self._schema, pieces[:-1])
            if len(ready):
                yield self.merge(together.take(ready))
            open_group = self.merge(together.take(held))
        if open_group is not None:
            yield open_group

    def merge(self, states: Batch) -> Batch:
        """Merge rows of states to one row per group."""
        keys = [states.vector(i) for i in range(self._key_count)]
        groups = group_rows(keys, states.num_rows)
        if groups.count == states.num_rows:
            return states
        columns = _take_keys(keys, groups)
        for call, accumulate, (start, end) in zip(self._calls, self._accumulators, self._spans, strict=True):
            vectors = [states.vector(i) for i in range(start, end)]
            columns += accumulate.merge(
                vectors, groups, CallContext(call.dtype, call.mode, num_rows=states.num_rows)
            )
        return from_vectors(self._schema, columns, groups.count)

    def merge_states(
        self, states: Iterator[Batch], limit: float, metrics: Metrics, level: int = 0
    ) -> Iterator[Batch]:
        """Yield all states merged: in one batch, or, if they exceed ``limit`` bytes, in one batch per partition on disk.

        States are merged when the unmerged ones have more than twice the rows of the merged ones. Even if merging reduces
        nothing, the merged rows then triple each time (2, 6, 18 million), so a state takes part in few merges. If the merged
        states still exceed half of the limit, they are moved to the partitions. A partition that is too large is divided
        again by another hash (``level``).
        """
        with SpillDirectory(metrics) as spill:
            spilled = HashPartitions(spill, self._schema, self._keys_of, level)
            done: list[Batch] = []  # at most one batch
            waiting: list[Batch] = []
            rows = size = 0
            for batch in states:
                waiting.append(batch)
                rows += batch.num_rows
                size += hashed_bytes(batch.nbytes, batch.num_rows)
                if size + _hashed_bytes(done) > limit or rows > max(_MERGE_ROWS, 2 * _row_count(done)):
                    done = [self.merge(concat(self._schema, [*done, *waiting]))]
                    waiting, rows, size = [], 0, 0
                    if level < MAX_LEVEL and _hashed_bytes(done) > limit / 2:
                        spilled.add(drain(done))
            waiting[:0] = drain(done)
            if not spilled.files:
                yield self.merge(concat(self._schema, waiting)) if waiting else Batch.empty(self._schema)
                return
            spilled.add(drain(waiting))
            for file in spilled.non_empty():
                yield from self.merge_states(file.read(), limit, metrics, level + 1)

    def _keys_of(self, states: Batch) -> list[Vector]:
        return [states.vector(i) for i in range(self._key_count)]

    def partial_states(self, source: Iterator[Batch], limit: int) -> Iterator[Batch]:
        """Yield partial states. Grouping is skipped once it has hardly reduced the rows (``_GroupingRatio``).

        From then on, every row becomes a group of its own, which is much cheaper, and the final phase does the grouping.
        Batches with few groups are still grouped: an Expand outputs such batches for some of its projections.

        limit: states of more than this number of bytes are merged. If the merged states still have more than half of it,
        they are yielded, because they would only grow: the lists of ``collect_list`` have all values, even for few groups.
        """
        sample = _GroupingRatio()
        useless = False
        waiting: list[Batch] = []
        waiting_rows = waiting_bytes = 0
        # Larger batches have fewer groups per row.
        for batch in coalesced(source, 2 * 128 * 1024):
            if useless and not self._has_few_groups(batch):
                yield self.update(batch, each_row=True)
                continue
            states = self.update(batch)
            sample.add(batch.num_rows, states.num_rows)
            waiting.append(states)
            waiting_rows += states.num_rows
            waiting_bytes += hashed_bytes(states.nbytes, states.num_rows)
            if not useless and sample.hardly_reduces:
                useless = True
                yield from waiting
                waiting, waiting_rows, waiting_bytes = [], 0, 0
            elif waiting_rows > _MERGE_ROWS or waiting_bytes > limit:
                merged = self.merge(concat(self._schema, waiting))
                # If merging hardly reduces the states, send them on; the next merge would not reduce them either.
                merged_bytes = hashed_bytes(merged.nbytes, merged.num_rows)
                if merged.num_rows > _MAX_GROUPS_PER_ROW * waiting_rows or merged_bytes > limit // 2:
                    yield merged
                    waiting, waiting_rows, waiting_bytes = [], 0, 0
                else:
                    waiting, waiting_rows, waiting_bytes = [merged], merged.num_rows, merged_bytes
        if waiting:
            yield self.merge(concat(self._schema, waiting))

    def _has_few_groups(self, batch: Batch) -> bool:
        """Return True if the first rows have at least two rows per group, so that grouping the batch is worth it."""
        if batch.num_rows <= _SAMPLE_ROWS:
            return False
        return 2 * self.update(batch.slice(0, _SAMPLE_ROWS)).num_rows < _SAMPLE_ROWS

    def states_of_no_rows(self) -> Batch:
        """Return the single row of states of an aggregate without keys over no rows, such as the count 0."""
        columns: list[Vector] = []
        groups = group_rows([], 0)
        for call, accumulate in zip(self._calls, self._accumulators, strict=True):
            args = [Vector(a.dtype, pa.array([], a.dtype)) for a in call.args]
            columns += accumulate.update(args, groups, CallContext(call.dtype, call.mode, num_rows=0))
        return from_vectors(self._schema, columns, 1)

    def finish(self, states: Batch) -> Batch:
        """Return the results for states with one row per group."""
        columns = [states.vector(i) for i in range(self._key_count)]
        for call, accumulate, (start, end) in zip(self._calls, self._accumulators, self._spans, strict=True):
            vectors = [states.vector(i) for i in range(start, end)]
            context = CallContext(call.dtype, call.mode, num_rows=states.num_rows)
            columns.append(Vector(call.dtype, accumulate.finish(vectors, context)))
        schema = pa.schema([e.field for e in (*self._plan.keys, *self._plan.aggregates)])
        return from_vectors(schema, columns, states.num_rows)


@dataclass
class _GroupingRatio:
    """Counts the rows and groups of the batches that have fewer than two rows per group.

    Batches with few groups are grouped in any case (``_has_few_groups``). They must not hide that grouping the others
    hardly reduces the rows.
    """

    rows: int = 0
    groups: int = 0

    def add(self, rows: int, groups: int) -> None:
        if 2 * groups > rows:
            self.rows += rows
            self.groups += groups

    @property
    def hardly_reduces(self) -> bool:
        return self.rows >= _PROBE_ROWS and self.groups > _MAX_GROUPS_PER_ROW * self.rows


def _hashed_bytes(batches: Sequence[Batch]) -> int:
    return sum(hashed_bytes(b.nbytes, b.num_rows) for b in batches)


def _row_count(batches: Sequence[Batch]) -> int:
    return sum(b.num_rows for b in batches)


def _take_selected_rows(vectors: list[Vector], rows: Int64s | None, n: int) -> tuple[list[Vector], int]:
    """Return the vectors of the selected rows (None: all ``n`` rows), and the number of these rows."""
    if rows is None:
        return vectors, n
    row_indices = pa.array(rows)
    return [v if v.is_scalar else Vector(v.dtype, v.data.take(row_indices)) for v in vectors], len(rows)


def _rows_as_groups(n: int) -> Groups:
    rows = np.arange(n, dtype=np.int64)
    return Groups(rows, n, rows)


def _take_keys(keys: Sequence[Vector], groups: Groups) -> list[Vector]:
    if groups.compact_ids is groups.first_rows:  # every row is its own group
        return [_normalized(k) for k in keys]
    index = groups.representatives()
    return [_normalized(Vector(k.dtype, k.data.take(index))) for k in keys]


def _normalized(key: Vector) -> Vector:
    """Replace -0.0 by 0.0. Both are one group and one distinct value, and Spark outputs 0.0 for it."""
    return Vector(key.dtype, normalize_zeros(key.data)) if has_floats(key.dtype) else key


def _first_rows_of_distinct_args(
    args: Sequence[Vector], groups: Groups, rows: np.ndarray, n: int
) -> np.ndarray:
    """Return those of the given rows in which a tuple of arguments occurs for the first time in its group."""
    codes = [encode(Vector(a.dtype, a.physical(n).take(pa.array(rows)))) for a in args]
    packed = pack([Codes(groups.ids[rows], max(groups.count, 1)), *codes], len(rows))
    return rows.take(first_rows(packed.widened().values))
