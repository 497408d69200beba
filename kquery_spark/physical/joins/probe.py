"""The probe phase of a hash join: finds the matching pairs of each probe batch and outputs the rows of the join.

What is output, and when, depends on the kind of the join and on which side is built:

- Pairs are output as they are found. A batch with many matches is processed in slices, which bounds the memory for pairs.
- Probe rows with or without a match (padded rows of outer joins, rows of semi and anti joins) are output after their batch.
- Build rows with or without a match are output after all batches. ``marks`` has one flag per build row for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.logical.join import JoinKind
from kquery_spark.physical.expr import Program
from kquery_spark.physical.gathering import RowSizes, gather_slices
from kquery_spark.physical.joins.build_side import BuildSide
from kquery_spark.physical.joins.join_table import JoinTable, Matches
from kquery_spark.physical.joins.pair_condition import PairCondition
from kquery_spark.physical.pairs import PAIR_BYTES, max_pairs, pair_slices
from kquery_spark.run_control import bounding_control, check_run
from kquery_spark.types.batch import Batch
from kquery_spark.types.sizes import reserve_gather
from kquery_spark.types.vector import Int64s

if TYPE_CHECKING:
    from kquery_spark.physical.operators.join import JoinExec

ONE_SIDED = (JoinKind.SEMI, JoinKind.ANTI, JoinKind.EXISTENCE)
_KEEPS_LEFT = (JoinKind.LEFT, JoinKind.FULL)
_KEEPS_RIGHT = (JoinKind.RIGHT, JoinKind.FULL)


class Probe:
    """One run of a join: the build side, and flags (``marks``) for its rows that have a match."""

    def __init__(self, plan: JoinExec, side: tuple[Batch, JoinTable], probe_schema: pa.Schema) -> None:
        self._plan = plan
        self._built, self._table = side
        self._control = bounding_control()
        self.pairs_at_once = max_pairs()
        # NOT IN depends on all build rows. If this side is only a partition, the caller overwrites these two.
        self.has_build_rows = self._built.num_rows > 0
        self.has_null_key = self._table.has_null_key
        self._probe_is_left = plan.build is BuildSide.RIGHT
        exprs = [k.left if self._probe_is_left else k.right for k in plan.keys]
        self._keys = Program(exprs, probe_schema)
        self._probe_schema = probe_schema
        kept_sides = plan.kind in _KEEPS_LEFT, plan.kind in _KEEPS_RIGHT
        self._keep_probe, keep_build = kept_sides if self._probe_is_left else kept_sides[::-1]
        self._one_sided = plan.kind in ONE_SIDED
        needs_marks = keep_build or (self._one_sided and not self._probe_is_left)
        self.marks = np.zeros(self._built.num_rows, np.bool_) if needs_marks else None
        self._condition: PairCondition | None = None
        if plan.condition is not None:
            self._condition = PairCondition(plan.condition, probe_schema, self._built.schema)
        self._output_sources = self._find_output_sources()
        self._build_sizes = self._sizes_of_build_rows()

    def _sizes_of_build_rows(self) -> RowSizes:
        """Return the sizes of the build rows in the output."""
        return RowSizes(self._built.columns[i] for from_probe, i in self._output_sources if not from_probe)

    def _find_output_sources(self) -> list[tuple[bool, int]]:
        """For each output column: True if the probe side has it, and its index in that side."""
        probe = {n: i for i, n in enumerate(self._probe_schema.names)}
        built = {n: i for i, n in enumerate(self._built.schema.names)}
        names = self._plan.output.names
        if self._plan.kind is JoinKind.EXISTENCE:
            names = names[:-1]
        if self._one_sided:
            return [(self._probe_is_left, (probe if self._probe_is_left else built)[n]) for n in names]
        return [(n in probe, probe[n] if n in probe else built[n]) for n in names]

    def set_build_side(self, side: tuple[Batch, JoinTable], marks: np.ndarray | None) -> None:
        """Continue with another part of the build side. marks: the flags of its rows."""
        self._built, self._table = side
        self._build_sizes = self._sizes_of_build_rows()
        self.marks = marks

    def run(self, source: Iterator[Batch]) -> Iterator[Batch]:
        """Probe every batch, then output the build rows that depend on whether they matched."""
        for batch in source:
            if self._plan.null_aware:
                yield self._null_aware(batch)
            else:
                matched = np.zeros(batch.num_rows, np.bool_)
                yield from self.pairs(batch, matched)
                yield from self.probe_rows(batch, matched)
        if self.marks is not None:
            yield self.build_rows_at_end()

    def pairs(self, batch: Batch, matched: np.ndarray) -> Iterator[Batch]:
        """Output the pairs of a batch. Sets ``matched`` for its rows, and the marks of build rows."""
        n = batch.num_rows
        keys = [v.filled(n) for v in self._keys.run(batch)]
        codes, counts = self._table.counts(keys, n)
        # Without a condition, the counts decide which rows match, so semi and anti joins, and joins without output columns,
        # need no pairs. All others create the pairs, slice by slice.
        if self._one_sided and self._condition is None:
            matched |= counts > 0
            self._mark_by_keys(codes, counts)
            return
        if self._condition is None and not self._output_sources:
            matched |= counts > 0
            self._mark_by_keys(codes, counts)
            yield from self._emit_without_columns(int(counts.sum()))
            return
        probe_sizes = RowSizes(batch.columns[i] for from_probe, i in self._output_sources if from_probe)
        for start, stop in pair_slices(counts, self.pairs_at_once):
            self._reserve_pairs(counts[start:stop])
            matches = self._table.matches(codes[start:stop], counts[start:stop])
            matches = Matches(matches.probe + start, matches.build)
            if self._condition is not None:
                matches = self._condition.passing(batch, self._built, matches)
            if self._keep_probe or self._one_sided:
                matched[matches.probe] = True
            if self.marks is not None:
                self.marks[matches.build] = True
            if not self._one_sided:
                sources = (probe_sizes, matches.probe), (self._build_sizes, matches.build)
                for first, end in gather_slices(sources, len(matches.probe)):
                    yield self._gather(batch, Matches(matches.probe[first:end], matches.build[first:end]))

    def _emit_without_columns(self, pairs: int) -> Iterator[Batch]:
        """Output rows without columns, for consumers such as ``count(*)``. The pairs are only counted."""
        while pairs > 0:
            check_run()
            rows = min(pairs, self.pairs_at_once)
            yield Batch(self._plan.output, (), rows)
            pairs -= rows

    def _mark_by_keys(self, codes: Int64s, counts: Int64s) -> None:
        """Mark the build rows with the keys of probe rows. Does not create the pairs if there are too many."""
        if self.marks is None:
            return
        if counts.sum() > self.pairs_at_once:
            self._table.mark_matched(codes, self.marks)
        else:
            self.marks[self._table.matches(codes, counts).build] = True

    def _reserve_pairs(self, counts: Int64s) -> None:
        """Account for the memory of pairs before they are created: a single row may have more matches than fit."""
        if self._control is not None:
            pairs = int(counts.sum())
            self._control.reserve(pairs * PAIR_BYTES)
            self._control.add(pairs)

    def probe_rows(self, batch: Batch, matched: np.ndarray) -> Iterator[Batch]:
        """Output probe rows by whether they matched: rows of semi and anti joins, padded rows of outer joins."""
        if self._one_sided and self.marks is None:
            yield self._one_side(batch, matched)
        if self._keep_probe and not matched.all():
            unmatched = np.flatnonzero(~matched)
            yield self._gather(batch, Matches(unmatched, np.full(len(unmatched), -1, np.int64)))

    def _gather(self, batch: Batch, pairs: Matches) -> Batch:
        """Gather the columns of pairs from both sides. The row number -1 stands for a row of NULLs."""
        reserve_gather(
            [batch.columns[i] for from_probe, i in self._output_sources if from_probe], pairs.probe
        )
        reserve_gather(
            [self._built.columns[i] for from_probe, i in self._output_sources if not from_probe], pairs.build
        )
        probe = _indices(pairs.probe, batch.num_rows)
        build = _indices(pairs.build, None)
        columns = []
        for from_probe, index in self._output_sources:
            if from_probe:
                column = batch.columns[index]
                columns.append(column if probe is None else column.take(probe))
            else:
                columns.append(self._built.columns[index].take(build))
        return Batch(self._plan.output, tuple(columns), len(pairs.probe))

    def _one_side(self, batch: Batch, hit: np.ndarray) -> Batch:
        """Output rows of a semi, anti or existence join. hit: whether each row of the batch has a match."""
        if self._plan.kind is JoinKind.EXISTENCE:
            columns = [batch.columns[i] for _, i in self._output_sources]
            return Batch(self._plan.output, (*columns, pa.array(hit)), batch.num_rows)
        selected = hit if self._plan.kind is JoinKind.SEMI else ~hit
        chosen = Batch(
            self._plan.output, tuple(batch.columns[i] for _, i in self._output_sources), batch.num_rows
        )
        return chosen if selected.all() else chosen.take(pa.array(np.flatnonzero(selected)))

    def build_rows_at_end(self) -> Batch:
        """Return the build rows to output at the end: unmatched rows of outer joins, rows of semi and anti joins."""
        assert self.marks is not None
        if self._one_sided:
            return self._one_side(self._built, self.marks)
        rows = np.flatnonzero(~self.marks)
        nothing = Batch.empty(self._probe_schema)
        probe = pa.nulls(len(rows), pa.int64())
        build = pa.array(rows)
        columns = [
            nothing.columns[i].take(probe) if from_probe else self._built.columns[i].take(build)
            for from_probe, i in self._output_sources
        ]
        return Batch(self._plan.output, tuple(columns), len(rows))

    def _null_aware(self, batch: Batch) -> Batch:
        """NOT IN: all rows if the list is empty, no row if it has a NULL, otherwise rows without a NULL or a match."""
        n = batch.num_rows
        if not self.has_build_rows:
            return self._one_side(batch, np.zeros(n, np.bool_))
        if self.has_null_key:
            return self._one_side(batch, np.ones(n, np.bool_))
        keys = [v.filled(n) for v in self._keys.run(batch)]
        _, counts = self._table.counts(keys, n)
        null = pc.is_null(keys[0].data).to_numpy(zero_copy_only=False)
        return self._one_side(batch, (counts > 0) | null)


def _indices(rows: Int64s, whole: int | None) -> pa.Array | None:
    """Return row numbers as indices for ``take``, with NULL for -1; None if they are 0, 1, ..., ``whole`` - 1."""
    if (
        whole is not None
        and len(rows) == whole
        and (whole == 0 or (rows[0] == 0 and (np.diff(rows) == 1).all()))
    ):
        return None
    if len(rows) and rows.min() < 0:
        return pa.array(rows, mask=rows < 0)
    return pa.array(rows)
