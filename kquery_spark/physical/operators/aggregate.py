"""AggregateExec: aggregates in one step, or partially before an exchange and finally after it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import AggregateCall, Named
from kquery_spark.expr.properties import is_pure
from kquery_spark.physical.aggregates import accumulator
from kquery_spark.physical.aggregates.aggregation import Aggregation
from kquery_spark.physical.aggregates.phase import Phase
from kquery_spark.physical.dynamic_filters.runtime_filter import RuntimeFilter, key_names
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.physical.spill import batches_by_hash_partition
from kquery_spark.types.batch import Batch, coalesced, max_buffered_bytes, run_in_parts


@dataclass(frozen=True)
class AggregateExec(UnaryExec):
    """Aggregates ``aggregates`` by ``keys``. In phases MERGE and FINAL, the child outputs the keys and the state columns.

    in_order (only for SINGLE): rows with equal keys are consecutive, so only one unfinished group has to be in memory.
    """

    child: PhysicalPlan
    keys: tuple[Named, ...]
    aggregates: tuple[Named, ...]
    phase: Phase
    in_order: bool = False

    @property
    @override
    def schema(self) -> pa.Schema:
        if self.phase not in (Phase.SINGLE, Phase.FINAL):
            return self.state_schema
        return pa.schema([e.field for e in (*self.keys, *self.aggregates)])

    @property
    def state_schema(self) -> pa.Schema:
        """The schema of states: the keys, then the state columns of each aggregate (``name.0``, ``name.1``, ...)."""
        fields = [k.field for k in self.keys]
        for named, call in zip(self.aggregates, self.calls, strict=True):
            types = accumulator(call.entry.accumulator).state_types([a.dtype for a in call.args], call.dtype)
            fields += [pa.field(f"{named.name}.{i}", dtype) for i, dtype in enumerate(types)]
        return pa.schema(fields)

    @property
    def calls(self) -> tuple[AggregateCall, ...]:
        """The aggregate calls in order."""
        return tuple(n.expr for n in self.aggregates if isinstance(n.expr, AggregateCall))

    def accept_filter(self, task: TaskContext, runtime_filter: RuntimeFilter) -> None:
        """Pass the filter to the child: rows of groups that the plan above drops need not be read.

        This requires a filter on the keys alone. Otherwise a group could lose some of its rows and get a wrong result.
        """
        groups = {k.name: k.expr for k in self.keys}
        if self.phase not in (Phase.SINGLE, Phase.PARTIAL) or any(c.raises for c in self.calls):
            return
        if not all(map(is_pure, groups.values())):
            return
        names = None
        if set(runtime_filter.columns) <= set(groups):
            names = key_names([groups[c] for c in runtime_filter.columns])
        if names is not None:
            self.child.accept_filter(task, replace(runtime_filter.through_filter(), columns=names))
            return
        for column_filter in runtime_filter.by_column():
            self.accept_filter(task, column_filter)

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        run = Aggregation(self)
        runtime_filter = run.filter()
        if runtime_filter is not None:
            self.child.accept_filter(task, runtime_filter)
        try:
            yield from self._output(run, self.child.run(task), task)
        finally:
            run.close()

    def _output(self, run: Aggregation, source: Iterator[Batch], task: TaskContext) -> Iterator[Batch]:
        groups_each_batch = bool(self.keys) and not self._needs_rows
        if groups_each_batch and self.phase is Phase.PARTIAL:
            limit = max_buffered_bytes(self.state_schema, task.config.memory_bytes)
            yield from run.partial_states(source, limit)
            return
        if groups_each_batch and self.phase is Phase.SINGLE and self.in_order:
            for states in run.states_of_sorted_rows(coalesced(source, task.config.batch_rows // 2)):
                yield run.finish(states)
            return
        for states in self._states(run, source, task):
            yield run.finish(states) if self.phase in (Phase.SINGLE, Phase.FINAL) else states

    @property
    def _needs_rows(self) -> bool:
        """True if all rows of a group must be in the same batch, because a call is DISTINCT."""
        if self.phase not in (Phase.SINGLE, Phase.PARTIAL):
            return False
        return any(c.is_distinct for c in self.calls)

    def _states(self, run: Aggregation, source: Iterator[Batch], task: TaskContext) -> Iterator[Batch]:
        """Yield one state row per group. Without keys, yield one state row even for no rows at all."""
        for states in self._merged_states(run, source, task):
            if states.num_rows:
                yield states
            elif not self.keys:
                yield run.states_of_no_rows()

    def _merged_states(self, run: Aggregation, source: Iterator[Batch], task: TaskContext) -> Iterator[Batch]:
        """Yield one state row per group; in several batches with different groups if the memory budget is exceeded."""
        buffered = self.child.schema if self._needs_rows else self.state_schema
        limit, metrics = max_buffered_bytes(buffered, task.config.memory_bytes), task.metrics_of(self)
        if self._needs_rows:
            program = Program([k.expr for k in self.keys], self.child.schema)
            keys = program.run if self.keys else None
            for part in batches_by_hash_partition(source, self.child.schema, keys, limit, metrics):
                yield run.update(part)
            return
        if self.phase not in (Phase.FINAL, Phase.MERGE):
            batches = coalesced(source, task.config.batch_rows // 2)
            source = (
                states
                for batch in batches
                for _, states in run_in_parts(run.update, batch, repeatable=run.is_deterministic)
            )
        yield from run.merge_states(source, limit if self.keys else math.inf, metrics)

    @override
    def label(self) -> str:
        keys = ", ".join(map(str, self.keys))
        order = ", in order" if self.in_order else ""
        calls = ", ".join(map(str, self.aggregates))
        return f"AggregateExec: {self.phase}{order}, groupExpr=[{keys}], aggregateExpr=[{calls}]"
