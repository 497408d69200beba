"""JoinExec: a hash join of any kind, or a nested-loop join without keys.

A hash table holds the build side, and the batches of the probe side are looked up in it (``joins/probe.py``). If the build
side exceeds the memory budget, both sides are written to hash partitions on disk, which are joined one by one (a Grace hash
join). Once the table is complete, its keys become a dynamic filter of the probe side's scan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Column, Expr
from kquery_spark.expr.properties import is_pure
from kquery_spark.logical.join import JoinKey, JoinKind
from kquery_spark.physical.dynamic_filters.runtime_filter import (
    MatchFilter,
    RuntimeFilter,
    column_filters,
    drops_unmatched,
    key_names,
)
from kquery_spark.physical.expr import Program
from kquery_spark.physical.joins.build_side import BuildSide
from kquery_spark.physical.joins.join_table import JoinTable
from kquery_spark.physical.joins.probe import ONE_SIDED, Probe
from kquery_spark.physical.joins.spilled_side import SpilledChunks, SpilledSide, chunks_with_marks
from kquery_spark.physical.operators.base import BinaryExec, PhysicalPlan, TaskContext
from kquery_spark.physical.operators.replicate import ReplicateExec
from kquery_spark.physical.pairs import MAX_PAIRS
from kquery_spark.physical.spill import MAX_LEVEL, SpillDirectory, SpillFile, hashed_bytes
from kquery_spark.physical.worker_cache import NotShared
from kquery_spark.types.batch import Batch, coalesced, concat, max_buffered_bytes

#: By build side, the kinds of joins that output no build row on its own, only together with a probe row or not at all.
_EMITS_PROBE_ROWS_ONLY = {
    BuildSide.LEFT: frozenset({JoinKind.INNER, JoinKind.RIGHT}),
    BuildSide.RIGHT: frozenset({JoinKind.INNER, JoinKind.LEFT, *ONE_SIDED}),
}


class _SpilledBuildSide(NotShared):
    """Raised while the worker's cache builds a build side: it exceeds the budget, so it is in files of this run."""

    def __init__(self, side: SpilledSide | SpillFile) -> None:
        super().__init__("the build side exceeds the memory budget")
        self.side = side


@dataclass(frozen=True)
class JoinExec(BinaryExec):
    """Joins ``left`` and ``right`` into the columns of ``output``. build: the side that a hash table holds."""

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

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        build_plan, probe_plan = (
            (self.left, self.right) if self.build is BuildSide.LEFT else (self.right, self.left)
        )
        with SpillDirectory(task.metrics_of(self)) as spill:
            side = self._build_side(build_plan, task, spill)
            if isinstance(side, SpilledSide):
                yield from self._grace_join(side, probe_plan.run(task), probe_plan.schema, task)
                return
            if isinstance(side, SpillFile):
                yield from self._nested_loop(side, probe_plan, task)
                return
        # The table is complete, so its keys can filter the scan of the probe side, which starts only now.
        if drops_unmatched(self.kind, self.build is BuildSide.LEFT):
            for match_filter in self._match_filters(side[1]):
                probe_plan.accept_filter(task, match_filter)
        yield from Probe(self, side, probe_plan.schema).run(probe_plan.run(task))

    def _match_filters(self, table: JoinTable) -> list[RuntimeFilter]:
        """Return the filter of the probe keys; if some keys are computed, one filter for each key that is a plain column.

        In that case no key may raise, because Spark computes the keys also for the rows that such a filter drops.
        """
        keys = self._side_keys(build=False)
        names = key_names(keys)
        if names is not None:
            return [MatchFilter(names, table)]
        if len(keys) == 1 or not all(map(is_pure, keys)):
            return []
        return column_filters(table, [key.name if isinstance(key, Column) else None for key in keys])

    def accept_filter(self, task: TaskContext, runtime_filter: RuntimeFilter) -> None:
        """Pass the filter to the side that has its columns if that cannot change the result.

        - Condition: if it can raise or is nondeterministic, no filter is passed, because the condition must see all pairs.
          The same holds for keys that can raise or are nondeterministic, which must see all rows.
        - Probe side: if the join emits unmatched build rows, no filter is passed, because a dropped probe row may be the
          match of a build row.
        - Build side: only an inner join passes filters, and only those of joins, whose tables are complete before this join
          starts. A replicated build side gets none, because other tasks and queries share its rows.
        - Columns of both sides: each column has a filter of its own, which is passed to the side of the column.

        Example: ``lineitem JOIN orders`` below a semi join on o_orderkey. orders is the build side, so only the orders that
        the semi join keeps are in the join table, and their keys filter lineitem.
        """
        build, probe = (self.left, self.right) if self.build is BuildSide.LEFT else (self.right, self.left)
        keys = [*self._side_keys(build=True), *self._side_keys(build=False)]
        if not all(map(is_pure, keys if self.condition is None else [*keys, self.condition])):
            return
        columns = set(runtime_filter.columns)
        if columns <= set(probe.schema.names):
            if self.kind in _EMITS_PROBE_ROWS_ONLY[self.build]:
                probe.accept_filter(task, runtime_filter.through_filter())
        elif columns <= set(build.schema.names):
            if (
                isinstance(runtime_filter, MatchFilter)
                and self.kind is JoinKind.INNER
                and not isinstance(build, ReplicateExec)
            ):
                build.accept_filter(task, runtime_filter.through_filter())
        else:
            for column_filter in runtime_filter.by_column():
                self.accept_filter(task, column_filter)

    def _build_side(
        self, plan: PhysicalPlan, task: TaskContext, spill: SpillDirectory
    ) -> tuple[Batch, JoinTable] | SpilledSide | SpillFile:
        """Return the build side in memory, or, if it exceeds the memory budget, on disk.

        The worker's cache keeps the build side of a broadcast join for later tasks and queries, unless it is on disk.
        """
        if not isinstance(plan, ReplicateExec):
            rows = self._collect_build_side(plan, task, spill)
            return self._table_within_budget(plan.schema, rows, task) if isinstance(rows, list) else rows

        def make() -> tuple[tuple[Batch, JoinTable], int]:
            rows = self._collect_build_side(plan, task, spill)
            if not isinstance(rows, list):
                raise _SpilledBuildSide(rows)
            batch, table = self._table_within_budget(plan.schema, rows, task)
            return (batch, table), batch.nbytes + table.nbytes

        key = plan.cache_key, tuple(self._side_keys(build=True)), tuple(k.null_safe for k in self.keys)
        try:
            side: tuple[Batch, JoinTable] = task.cache.get(key, make, task.config.build_cache_bytes)
        except _SpilledBuildSide as spilled:
            return spilled.side
        return side

    def _collect_build_side(
        self, plan: PhysicalPlan, task: TaskContext, spill: SpillDirectory
    ) -> list[Batch] | SpilledSide | SpillFile:
        """Read the build side completely, before the probe side starts.

        If its join table fits the memory budget, the batches are returned. Otherwise all rows are on disk: in hash
        partitions of the keys (SpilledSide), or, for a join without keys, in chunks in their order (SpillFile).

        Batches are buffered up to the budget and then written together. Example: with a budget of 100 MB, build rows of
        250 MB are written in three steps, and the last one writes what is buffered at the end.
        """
        buffered: list[Batch] = []
        size = 0
        limit = max_buffered_bytes(plan.schema, task.config.memory_bytes)
        side: SpilledSide | SpilledChunks | None = None
        for batch in plan.run(task):
            buffered.append(batch)
            size += hashed_bytes(batch.nbytes, batch.num_rows)  # rows and the join table that they need
            if size > limit:
                if side is None and self.keys:
                    side = SpilledSide(spill, plan.schema, self._side_keys(build=True))
                elif side is None:
                    side = SpilledChunks(spill.file(plan.schema), limit // 8)
                for buffered_batch in buffered:
                    side.add(buffered_batch)
                buffered, size = [], 0
        if side is None:
            return buffered
        for buffered_batch in buffered:
            side.add(buffered_batch)
        return side.file if isinstance(side, SpilledChunks) else side

    def _grace_join(
        self, built: SpilledSide, probe_rows: Iterator[Batch], schema: pa.Schema, task: TaskContext
    ) -> Iterator[Batch]:
        """Join a spilled build side partition by partition (a Grace hash join).

        1. Write the probe rows to partitions by the same hash as the build rows, so that rows with equal keys are
           in the partition of the same number on both sides.
        2. Join each pair of partitions in memory. NULL-aware joins depend on the whole build side, so its facts (it has
           rows, it has a NULL key) are passed to the join of every partition.
        3. If the build rows of a partition are still too large, divide the pair again by another hash
           (``_divide_again``). A partition with all build rows cannot get smaller: its rows have one key, or the hash
           does not separate them. Then, and at the deepest level, it is joined in memory despite its size.

        schema: the schema of the probe rows.
        """
        with SpillDirectory(task.metrics_of(self)) as spill:
            probe = SpilledSide(spill, schema, self._side_keys(build=False), built.level)
            for batch in probe_rows:
                probe.add(batch)
            total = sum(file.rows for file in built.files)
            limit = max_buffered_bytes(built.schema, task.config.memory_bytes)
            for build_file, probe_file in zip(built.files, probe.files, strict=True):
                if not (build_file.rows or probe_file.rows):
                    continue
                held = hashed_bytes(build_file.nbytes, build_file.rows)
                if held > limit and build_file.rows < total and built.level < MAX_LEVEL:
                    yield from self._divide_again(built, build_file, probe_file, schema, task)
                    continue
                side = self._table_within_budget(built.schema, list(build_file.read()), task)
                joining = Probe(self, side, schema)
                joining.has_build_rows, joining.has_null_key = True, built.has_null_key
                yield from joining.run(probe_file.read())

    def _divide_again(
        self,
        built: SpilledSide,
        build_file: SpillFile,
        probe_file: SpillFile,
        schema: pa.Schema,
        task: TaskContext,
    ) -> Iterator[Batch]:
        """Join a partition whose build rows exceed the memory budget, by partitions of the next level."""
        with SpillDirectory(task.metrics_of(self)) as spill:
            side = SpilledSide(spill, built.schema, self._side_keys(build=True), built.level + 1)
            for batch in build_file.read():
                side.add(batch)
            side.has_null_key = built.has_null_key
            yield from self._grace_join(side, probe_file.read(), schema, task)

    def _nested_loop(self, built: SpillFile, probe_plan: PhysicalPlan, task: TaskContext) -> Iterator[Batch]:
        """Join without keys when the build side is on disk: block nested-loop join.

        For each block of probe rows, the whole build side is read chunk by chunk, and the pairs of block and chunk are
        tested. ``matched`` records which rows of the block have found a match in any chunk, so unmatched probe rows are
        known after the last chunk. ``marks`` records the same for build rows over all blocks, so unmatched build rows are
        known after the last block, in one more pass over the file.
        """
        limit = task.config.memory_bytes
        schema = self.left.schema if self.build is BuildSide.LEFT else self.right.schema
        joining = Probe(self, self._table(schema, []), probe_plan.schema)
        joining.pairs_at_once = min(joining.pairs_at_once, max(1024, limit // 64))
        marks = None if joining.marks is None else np.zeros(built.rows, np.bool_)
        for block in coalesced(probe_plan.run(task), MAX_PAIRS, limit // 4):
            matched = np.zeros(block.num_rows, np.bool_)
            for chunk, part in chunks_with_marks(built, marks):
                joining.set_build_side(self._table(schema, [chunk]), part)
                yield from joining.pairs(block, matched)
            yield from joining.probe_rows(block, matched)
        if marks is not None:
            for chunk, part in chunks_with_marks(built, marks):
                joining.set_build_side(self._table(schema, [chunk]), part)
                yield joining.build_rows_at_end()

    def _side_keys(self, build: bool) -> list[Expr]:
        left = (self.build is BuildSide.LEFT) == build
        return [k.left if left else k.right for k in self.keys]

    def _table_within_budget(
        self, schema: pa.Schema, batches: list[Batch], task: TaskContext
    ) -> tuple[Batch, JoinTable]:
        """Return the build rows and their join table. Its arrays may use the memory budget that the rows do not need."""
        held = sum(hashed_bytes(batch.nbytes, batch.num_rows) for batch in batches)
        return self._table(schema, batches, max(0, task.config.memory_bytes - held))

    def _table(
        self, schema: pa.Schema, batches: list[Batch], direct_bytes: int = 0
    ) -> tuple[Batch, JoinTable]:
        """Return the build rows as one batch, and their join table. direct_bytes: see ``JoinTable``."""
        batch = concat(schema, batches)
        vectors = Program(self._side_keys(build=True), schema).run(batch)
        keys = [v.filled(batch.num_rows) for v in vectors]
        return batch, JoinTable(keys, batch.num_rows, [k.null_safe for k in self.keys], direct_bytes)

    @override
    def label(self) -> str:
        parts = [f"{self.kind}{' null-aware' if self.null_aware else ''}", f"build={self.build}"]
        if self.keys:
            parts.append(f"on=[{', '.join(map(str, self.keys))}]")
        if self.condition is not None:
            parts.append(f"condition={self.condition}")
        return f"JoinExec: {', '.join(parts)}"
