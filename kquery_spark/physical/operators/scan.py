"""ScanExec: read splits; filter columns first, the others only for the splits and rows that survive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from kquery_spark.expr import Expr, columns_of
from kquery_spark.expr.properties import conjunction
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.physical.operators.filter import keep
from kquery_spark.sources.base import Source, Split
from kquery_spark.types.batch import Batch


@dataclass(frozen=True)
class ScanExec(PhysicalPlan):
    """``splits`` None: the task says which (``scan_id``); else these, in every task that runs the plan.

    ``whole``: the planner counts on one task reading all of them, so they must not be shared out.
    """

    scan_id: int
    table: str
    source: Source
    columns: tuple[str, ...]
    filters: tuple[Expr, ...] = ()
    splits: tuple[Split, ...] | None = None
    whole: bool = False

    @property
    def schema(self) -> pa.Schema:
        """See PhysicalPlan."""
        return pa.schema([self.source.schema.field(c) for c in self.columns])

    def execute(self, task: TaskContext) -> Iterator[Batch]:
        """See PhysicalPlan."""
        splits = task.splits[self.scan_id] if self.splits is None else self.splits
        for split in splits:
            if not self.filters:
                yield from self.source.read(split, self.columns)
            elif not self.source.divisible or len(split.pieces) == 1:
                yield from self._filtered(split)
            else:
                for piece in split.pieces:
                    yield from self._filtered(replace(split, pieces=(piece,)))

    def _filtered(self, split: Split) -> Iterator[Batch]:
        needed = columns_of(*self.filters)
        first = [c for c in self.source.schema.names if c in needed]
        rest = [c for c in self.columns if c not in needed]
        condition = conjunction(list(self.filters))
        assert condition is not None
        batches = list(self.source.read(split, first))
        schema = pa.schema([self.source.schema.field(c) for c in first])
        program = Program([condition], schema)
        tests = [program.run(b)[0] for b in batches]
        kept = [keep(b, c) for b, c in zip(batches, tests, strict=True)]
        if not any(k.num_rows for k in kept):
            return
        others = self.source.read(split, rest) if rest else iter(())
        for found, test in zip(kept, tests, strict=True):
            other = keep(next(others), test) if rest else None
            columns = []
            for name in self.columns:
                if name in needed:
                    columns.append(found.columns[first.index(name)])
                else:
                    assert other is not None
                    columns.append(other.columns[rest.index(name)])
            yield Batch(self.schema, tuple(columns), found.num_rows)

    def label(self) -> str:
        """See PhysicalPlan."""
        text = f"ScanExec: {self.table}; columns=[{', '.join(self.columns)}]"
        if self.filters:
            text += f"; filters=[{', '.join(map(str, self.filters))}]"
        return text if self.splits is None else f"{text}; splits={len(self.splits)}"
