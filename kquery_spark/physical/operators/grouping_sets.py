"""GroupingSetsExec: the groups of ROLLUP, CUBE and GROUPING SETS from those of all the keys, instead of from each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from kquery_spark.expr import Column, Expr, Literal, Named
from kquery_spark.expr.constants import literal_vector
from kquery_spark.physical.operators.aggregate import AggregateExec, Aggregation, Phase
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.types.batch import Batch, from_vectors
from kquery_spark.types.vector import Vector


@dataclass(frozen=True)
class GroupingSetsExec(PhysicalPlan):
    """States of the groups of every set, as a partial aggregation over an Expand would give them.

    child: states by all the keys. sets: what each of ``keys`` is in a set, a column of the child or a literal; those with
    most columns first. A set is merged from the smallest one before it that has its columns, or from the child.
    """

    child: PhysicalPlan
    sets: tuple[tuple[Expr, ...], ...]
    keys: tuple[Named, ...]
    aggregates: tuple[Named, ...]

    @property
    def schema(self) -> pa.Schema:
        """See PhysicalPlan."""
        return self._merge.state_schema

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        """See PhysicalPlan."""
        return (self.child,)

    def with_children(self, children: Sequence[PhysicalPlan]) -> PhysicalPlan:
        """See PhysicalPlan."""
        return replace(self, child=children[0])

    @property
    def _merge(self) -> AggregateExec:
        return AggregateExec(self.child, self.keys, self.aggregates, Phase.MERGE)

    def execute(self, task: TaskContext) -> Iterator[Batch]:
        """See PhysicalPlan."""
        merging = Aggregation(self._merge)
        kept = [frozenset(e for e in chosen if isinstance(e, Column)) for chosen in self.sets]
        for batch in self.child.run(task):
            done: list[Batch] = []
            for place, chosen in enumerate(self.sets):
                finer = [d for d, k in zip(done, kept, strict=False) if kept[place] <= k]
                source = min(finer, key=lambda d: d.num_rows, default=None)
                if source is not None:
                    done.append(merging.merge(self._coarser(source, chosen)))
                else:  # groups of all the keys are told apart already
                    states = self._chosen(batch, chosen)
                    done.append(merging.merge(states) if len(kept[place]) < self._finest else states)
                yield done[-1]

    @property
    def _finest(self) -> int:
        """The number of the child's keys."""
        states = len(self.schema) - len(self.keys)
        return len(self.child.schema) - states

    def _chosen(self, batch: Batch, chosen: tuple[Expr, ...]) -> Batch:
        """The child's states with the keys of a set."""
        vectors = [
            batch.vector(batch.schema.get_field_index(e.name))
            if isinstance(e, Column)
            else _constant(e, batch)
            for e in chosen
        ]
        vectors += [batch.vector(i) for i in range(self._finest, len(batch.schema))]
        return from_vectors(self.schema, vectors, batch.num_rows)

    def _coarser(self, states: Batch, chosen: tuple[Expr, ...]) -> Batch:
        """The states of another set with the keys of this one."""
        vectors = [
            states.vector(i) if isinstance(e, Column) else _constant(e, states) for i, e in enumerate(chosen)
        ]
        vectors += [states.vector(i) for i in range(len(self.keys), len(states.schema))]
        return from_vectors(self.schema, vectors, states.num_rows)

    def label(self) -> str:
        """See PhysicalPlan."""
        sets = "; ".join("(" + ", ".join(e.name for e in s if isinstance(e, Column)) + ")" for s in self.sets)
        return f"GroupingSetsExec: groupExpr=[{', '.join(map(str, self.keys))}], sets={sets}"


def _constant(expr: Expr, batch: Batch) -> Vector:
    assert isinstance(expr, Literal)
    return Vector(expr.dtype, literal_vector(expr).physical(batch.num_rows))
