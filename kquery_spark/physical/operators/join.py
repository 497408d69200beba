"""JoinExec: hash join of every kind; without keys every pair is compared (nested loop).

One side is built into a table, the other probes it batch by batch. Matched marks are set after the residual
condition, on both sides; each outer row is padded once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.expr.properties import is_pure
from kquery_spark.logical.join import JoinKey, JoinKind
from kquery_spark.physical.dynamic_filters.runtime_filter import (
    MatchFilter,
    RuntimeFilter,
    drops_unmatched,
    key_names,
)
from kquery_spark.physical.expr import Program
from kquery_spark.physical.joins.join_table import JoinTable, Matches
from kquery_spark.physical.joins.pair_condition import PairCondition
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.physical.operators.replicate import ReplicateExec
from kquery_spark.physical.spill import DEEPEST, SpillDirectory, SpillFile, hashed_bytes, scatter
from kquery_spark.run_control import bounding_control
from kquery_spark.types.batch import Batch, coalesced, concat
from kquery_spark.types.sizes import reserve_gather
from kquery_spark.types.str_enum import StrEnum
from kquery_spark.types.vector import Int64s, Vector

_MAX_PAIRS = 2_000_000
_MAX_BOUNDED_PAIRS = 131_072  # where the run may use little memory
_PAIR_BYTES = 48  # of row numbers while pairs are found
_ONE_SIDED = (JoinKind.SEMI, JoinKind.ANTI, JoinKind.EXISTENCE)
_KEEPS_LEFT = (JoinKind.LEFT, JoinKind.FULL)
_KEEPS_RIGHT = (JoinKind.RIGHT, JoinKind.FULL)


class BuildSide(StrEnum):
    """Which input is held in memory."""

    LEFT = "left"
    RIGHT = "right"


#: By build side, the kinds of joins in which no build row comes out without a probe row.
_EMITS_PROBE_ROWS_ONLY = {
    BuildSide.LEFT: frozenset({JoinKind.INNER, JoinKind.RIGHT}),
    BuildSide.RIGHT: frozenset({JoinKind.INNER, JoinKind.LEFT, *_ONE_SIDED}),
}


@dataclass(frozen=True)
class JoinExec(PhysicalPlan):
    """See ``logical.Join``; ``output`` are the columns that come out, in order."""

    left: PhysicalPlan
    right: PhysicalPlan
    kind: JoinKind
    keys: tuple[JoinKey, ...]
    condition: Expr | None
    build: BuildSide
    output: pa.Schema
    null_aware: bool = False

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.output

    @property
    @override
    def children(self) -> tuple[PhysicalPlan, ...]:
        return (self.left, self.right)

    @override
    def with_children(self, children: Sequence[PhysicalPlan]) -> PhysicalPlan:
        return replace(self, left=children[0], right=children[1])

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        build_plan, probe_plan = (
            (self.left, self.right) if self.build is BuildSide.LEFT else (self.right, self.left)
        )
        if isinstance(build_plan, ReplicateExec):
            side = self._replicated(build_plan, task)
        else:
            with SpillDirectory(task.metrics_of(self)) as spill:
                held = self._held(build_plan, task, spill)
                if isinstance(held, SpilledSide):
                    yield from self._grace(held, probe_plan.run(task), probe_plan.schema, task)
                    return
                if isinstance(held, SpillFile):
                    yield from self._nested_loop(held, probe_plan, task)
                    return
            side = self._table(build_plan.schema, held)
        if drops_unmatched(self.kind, self.build is BuildSide.LEFT):
            names = key_names([k.right if self.build is BuildSide.LEFT else k.left for k in self.keys])
            if names is not None:
                probe_plan.accept_filter(task, MatchFilter(names, side[1]))
        yield from _Probe(self, side, probe_plan.schema).run(probe_plan.run(task))

    def accept_filter(self, task: TaskContext, runtime_filter: RuntimeFilter) -> None:
        """Passes the filter to the probe side, unless unmatched build rows are emitted, which dropped probe rows may match.

        A condition that can raise has to see the pairs of rows that will have no match later.
        """
        probe = self.right if self.build is BuildSide.LEFT else self.left
        emits_build_rows = self.kind not in _EMITS_PROBE_ROWS_ONLY[self.build]
        pure = self.condition is None or is_pure(self.condition)
        if not emits_build_rows and pure and set(runtime_filter.columns) <= set(probe.schema.names):
            probe.accept_filter(task, runtime_filter.through_filter())

    def _held(
        self, plan: PhysicalPlan, task: TaskContext, spill: SpillDirectory
    ) -> list[Batch] | SpilledSide | SpillFile:
        """The build rows in memory; past the memory budget on disk, by hash of their keys or as they come without keys."""
        held: list[Batch] = []
        size = 0
        limit = task.config.memory_bytes
        side: SpilledSide | _Chunks | None = None
        for batch in plan.run(task):
            held.append(batch)
            size += hashed_bytes(batch.nbytes, batch.num_rows)
            if size > limit:
                if side is None and self.keys:
                    side = SpilledSide(spill, plan.schema, self._side_keys(build=True))
                elif side is None:
                    side = _Chunks(spill.file(plan.schema), limit // 8)
                for one in held:
                    side.add(one)
                held, size = [], 0
        if side is None:
            return held
        for one in held:
            side.add(one)
        return side.file if isinstance(side, _Chunks) else side

    def _grace(
        self, built: SpilledSide, source: Iterator[Batch], schema: pa.Schema, task: TaskContext
    ) -> Iterator[Batch]:
        """Join partition by partition: rows with equal keys are in the same one on both sides."""
        with SpillDirectory(task.metrics_of(self)) as spill:
            probe = SpilledSide(spill, schema, self._side_keys(build=False), built.level)
            for batch in source:
                probe.add(batch)
            total = sum(file.rows for file in built.files)
            for build_file, probe_file in zip(built.files, probe.files, strict=True):
                if not (build_file.rows or probe_file.rows):
                    continue
                large = hashed_bytes(build_file.nbytes, build_file.rows) > task.config.memory_bytes
                if large and build_file.rows < total and built.level < DEEPEST:
                    yield from self._deeper(built, build_file, probe_file, schema, task)
                    continue
                side = self._table(built.schema, list(build_file.read()))
                joining = _Probe(self, side, schema)
                joining.listed = True, built.has_null_key
                yield from joining.run(probe_file.read())

    def _deeper(
        self,
        built: SpilledSide,
        build_file: SpillFile,
        probe_file: SpillFile,
        schema: pa.Schema,
        task: TaskContext,
    ) -> Iterator[Batch]:
        """Join a partition whose build rows pass the memory budget in partitions of its own."""
        with SpillDirectory(task.metrics_of(self)) as spill:
            side = SpilledSide(spill, built.schema, self._side_keys(build=True), built.level + 1)
            for batch in build_file.read():
                side.add(batch)
            side.has_null_key = built.has_null_key
            yield from self._grace(side, probe_file.read(), schema, task)

    def _nested_loop(self, built: SpillFile, probe_plan: PhysicalPlan, task: TaskContext) -> Iterator[Batch]:
        """Every pair without keys: each block of the probe side meets the build side chunk by chunk from disk."""
        limit = task.config.memory_bytes
        schema = self.left.schema if self.build is BuildSide.LEFT else self.right.schema
        joining = _Probe(self, self._table(schema, []), probe_plan.schema)
        joining.pairs_at_once = min(_MAX_PAIRS, max(1024, limit // 64))
        marks = None if joining.marks is None else np.zeros(built.rows, np.bool_)
        for block in coalesced(probe_plan.run(task), _MAX_PAIRS, limit // 4):
            matched = np.zeros(block.num_rows, np.bool_)
            for chunk, part in _numbered(built, marks):
                joining.take_side(self._table(schema, [chunk]), part)
                yield from joining.pairs(block, matched)
            yield from joining.rest(block, matched)
        if marks is not None:
            for chunk, part in _numbered(built, marks):
                joining.take_side(self._table(schema, [chunk]), part)
                yield joining.unmatched()

    def _side_keys(self, build: bool) -> list[Expr]:
        left = (self.build is BuildSide.LEFT) == build
        return [k.left if left else k.right for k in self.keys]

    def _table(self, schema: pa.Schema, batches: list[Batch]) -> tuple[Batch, JoinTable]:
        batch = concat(schema, batches)
        vectors = Program(self._side_keys(build=True), schema).run(batch)
        keys = [Vector(v.dtype, v.physical(batch.num_rows)) for v in vectors]
        return batch, JoinTable(keys, batch.num_rows, [k.null_safe for k in self.keys])

    def _replicated(self, plan: ReplicateExec, task: TaskContext) -> tuple[Batch, JoinTable]:
        """The build side of all tasks, which a worker keeps for its next tasks and queries."""

        def make() -> tuple[tuple[Batch, JoinTable], int]:
            batch, table = self._table(plan.schema, list(plan.run(task)))
            return (batch, table), 2 * batch.nbytes + 16 * batch.num_rows

        key = plan.cache_key, tuple(self._side_keys(build=True)), tuple(k.null_safe for k in self.keys)
        side: tuple[Batch, JoinTable] = task.cache.get(key, make, task.config.kept_bytes)
        return side

    @override
    def label(self) -> str:
        parts = [f"{self.kind}{' null-aware' if self.null_aware else ''}", f"build={self.build}"]
        if self.keys:
            parts.append(f"on=[{', '.join(map(str, self.keys))}]")
        if self.condition is not None:
            parts.append(f"condition={self.condition}")
        return f"JoinExec: {', '.join(parts)}"


class SpilledSide:
    """One input of a join on disk, in hash partitions of its keys."""

    def __init__(
        self, spill: SpillDirectory, schema: pa.Schema, keys: Sequence[Expr], level: int = 0
    ) -> None:
        self.schema = schema
        self.level = level
        self.files = spill.partitions(schema)
        self.has_null_key = False
        self._program = Program(keys, schema)

    def add(self, batch: Batch) -> None:
        """Write a batch's rows to their partitions."""
        keys = self._program.run(batch)
        self.has_null_key = self.has_null_key or any(k.null_count for k in keys)
        scatter(batch, keys, self.files, self.level)


class _Chunks:
    """The build side of a nested loop on disk, in chunks of about ``size`` bytes."""

    def __init__(self, file: SpillFile, size: int) -> None:
        self.file = file
        self._size = size

    def add(self, batch: Batch) -> None:
        rows = max(1, self._size * batch.num_rows // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, rows):
            self.file.append(batch.slice(start, rows))


class _Probe:
    """One run of a join: the built side, and the marks of its rows that have matched."""

    def __init__(self, plan: JoinExec, side: tuple[Batch, JoinTable], probe_schema: pa.Schema) -> None:
        self._plan = plan
        self._built, self._table = side
        self._control = bounding_control()
        self.pairs_at_once = _MAX_PAIRS if self._control is None else _MAX_BOUNDED_PAIRS
        # for NOT IN, of all build rows: whether there are any, and whether a key is NULL
        self.listed = self._built.num_rows > 0, self._table.has_null_key
        self._probe_is_left = plan.build is BuildSide.RIGHT
        exprs = [k.left if self._probe_is_left else k.right for k in plan.keys]
        self._keys = Program(exprs, probe_schema)
        self._probe_schema = probe_schema
        kept_sides = plan.kind in _KEEPS_LEFT, plan.kind in _KEEPS_RIGHT
        self._keep_probe, keep_build = kept_sides if self._probe_is_left else kept_sides[::-1]
        self._one_sided = plan.kind in _ONE_SIDED
        needs_marks = keep_build or (self._one_sided and not self._probe_is_left)
        self.marks = np.zeros(self._built.num_rows, np.bool_) if needs_marks else None
        self._condition: PairCondition | None = None
        if plan.condition is not None:
            self._condition = PairCondition(plan.condition, probe_schema, self._built.schema)
        self._places = self._output_places()

    def _output_places(self) -> list[tuple[bool, int]]:
        """For each output column: does it come from the probe side, and its index there."""
        probe = {n: i for i, n in enumerate(self._probe_schema.names)}
        built = {n: i for i, n in enumerate(self._built.schema.names)}
        names = self._plan.output.names
        if self._plan.kind is JoinKind.EXISTENCE:
            names = names[:-1]
        if self._one_sided:
            return [(self._probe_is_left, (probe if self._probe_is_left else built)[n]) for n in names]
        return [(n in probe, probe[n] if n in probe else built[n]) for n in names]

    def take_side(self, side: tuple[Batch, JoinTable], marks: np.ndarray | None) -> None:
        """Go on with another part of the build side; ``marks`` are those of its rows."""
        self._built, self._table = side
        self.marks = marks

    def run(self, source: Iterator[Batch]) -> Iterator[Batch]:
        """Probes every batch, then emits the unmatched build rows."""
        for batch in source:
            if self._plan.null_aware:
                yield self._null_aware(batch)
            else:
                matched = np.zeros(batch.num_rows, np.bool_)
                yield from self.pairs(batch, matched)
                yield from self.rest(batch, matched)
        if self.marks is not None:
            yield self.unmatched()

    def pairs(self, batch: Batch, matched: np.ndarray) -> Iterator[Batch]:
        """Output of pairs of rows; sets ``matched`` for probe rows and the marks of build rows."""
        n = batch.num_rows
        keys = [Vector(v.dtype, v.physical(n)) for v in self._keys.run(batch)]
        codes, counts = self._table.counts(keys, n)
        if self._one_sided and self._condition is None:
            matched |= counts > 0
            self._mark_by_keys(codes, counts)
            return
        for start, stop in _slices(counts, self.pairs_at_once):
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
                yield self._joined(batch, matches)

    def _mark_by_keys(self, codes: Int64s, counts: Int64s) -> None:
        """Mark the build rows that have probe rows' keys, without making the pairs if there are too many."""
        if self.marks is None:
            return
        if counts.sum() > _MAX_PAIRS:
            self._table.mark_matched(codes, self.marks)
        else:
            self.marks[self._table.matches(codes, counts).build] = True

    def _reserve_pairs(self, counts: Int64s) -> None:
        """Ask the run for room for so many pairs: one row may match more than fit, and a condition drop most of them."""
        if self._control is not None:
            pairs = int(counts.sum())
            self._control.reserve(pairs * _PAIR_BYTES)
            self._control.add(pairs)

    def rest(self, batch: Batch, matched: np.ndarray) -> Iterator[Batch]:
        """Output of probe rows by whether they matched at all: chosen ones, or padded ones of an outer join."""
        if self._one_sided and self.marks is None:
            yield self._one_side(batch, matched)
        if self._keep_probe and not matched.all():
            lonely = np.flatnonzero(~matched)
            yield self._joined(batch, Matches(lonely, np.full(len(lonely), -1, np.int64)))

    def _joined(self, batch: Batch, pairs: Matches) -> Batch:
        """Output rows of pairs; -1 on either side stands for a row of NULLs."""
        reserve_gather([batch.columns[i] for from_probe, i in self._places if from_probe], pairs.probe)
        reserve_gather(
            [self._built.columns[i] for from_probe, i in self._places if not from_probe], pairs.build
        )
        probe = _indices(pairs.probe, batch.num_rows)
        build = _indices(pairs.build, None)
        columns = []
        for from_probe, index in self._places:
            if from_probe:
                column = batch.columns[index]
                columns.append(column if probe is None else column.take(probe))
            else:
                columns.append(self._built.columns[index].take(build))
        return Batch(self._plan.output, tuple(columns), len(pairs.probe))

    def _one_side(self, batch: Batch, hit: np.ndarray) -> Batch:
        if self._plan.kind is JoinKind.EXISTENCE:
            columns = [batch.columns[i] for _, i in self._places]
            return Batch(self._plan.output, (*columns, pa.array(hit)), batch.num_rows)
        selected = hit if self._plan.kind is JoinKind.SEMI else ~hit
        chosen = Batch(self._plan.output, tuple(batch.columns[i] for _, i in self._places), batch.num_rows)
        return chosen if selected.all() else chosen.take(pa.array(np.flatnonzero(selected)))

    def unmatched(self) -> Batch:
        """Build rows due at the end: unmatched ones of an outer join, chosen ones of a semi or anti join."""
        assert self.marks is not None
        if self._one_sided:
            return self._one_side(self._built, self.marks)
        rows = np.flatnonzero(~self.marks)
        nothing = Batch.empty(self._probe_schema)
        probe = pa.nulls(len(rows), pa.int64())
        build = pa.array(rows)
        columns = [
            nothing.columns[i].take(probe) if from_probe else self._built.columns[i].take(build)
            for from_probe, i in self._places
        ]
        return Batch(self._plan.output, tuple(columns), len(rows))

    def _null_aware(self, batch: Batch) -> Batch:
        """NOT IN: everything against an empty list, nothing against a list with a NULL, else no NULL and no match."""
        n = batch.num_rows
        listed, has_null = self.listed
        if not listed:
            return self._one_side(batch, np.zeros(n, np.bool_))
        if has_null:
            return self._one_side(batch, np.ones(n, np.bool_))
        keys = [Vector(v.dtype, v.physical(n)) for v in self._keys.run(batch)]
        _, counts = self._table.counts(keys, n)
        null = pc.is_null(keys[0].data).to_numpy(zero_copy_only=False)
        return self._one_side(batch, (counts > 0) | null)


def _numbered(file: SpillFile, marks: np.ndarray | None) -> Iterator[tuple[Batch, np.ndarray | None]]:
    """Chunks with the marks of their rows."""
    start = 0
    for chunk in file.read():
        yield chunk, None if marks is None else marks[start : start + chunk.num_rows]
        start += chunk.num_rows


def _slices(counts: Int64s, limit: int) -> Iterator[tuple[int, int]]:
    """Ranges of probe rows with at most about ``limit`` pairs each."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    if total <= limit:
        yield 0, len(counts)
        return
    start = 0
    while start < len(counts):
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + limit, side="right")))
        yield start, stop
        start = stop


def _indices(rows: Int64s, whole: int | None) -> pa.Array | None:
    """Take indices with -1 as NULL; None when they are simply all rows of the batch."""
    if (
        whole is not None
        and len(rows) == whole
        and (whole == 0 or (rows[0] == 0 and (np.diff(rows) == 1).all()))
    ):
        return None
    if len(rows) and rows.min() < 0:
        return pa.array(rows, mask=rows < 0)
    return pa.array(rows)


__all__ = ["BuildSide", "JoinExec"]
