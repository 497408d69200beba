"""GroupingSetsExec: computes the groups of ROLLUP, CUBE and GROUPING SETS from the groups of all keys, not from the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Column, Expr, Literal, Named
from kquery_spark.expr.constants import literal_vector
from kquery_spark.physical.aggregates.aggregation import Aggregation
from kquery_spark.physical.aggregates.phase import Phase
from kquery_spark.physical.operators.aggregate import AggregateExec
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.types.batch import Batch, from_vectors
from kquery_spark.types.vector import Vector


@dataclass(frozen=True)
class GroupingSetsExec(UnaryExec):
    """Outputs the states of the groups of all sets, like a partial aggregation over an Expand.

    child: outputs states by all keys. sets: for each set, one expression per key: the key's column, or a literal if the key
    is not in the set. The first set has all keys, and sets with more columns come before sets with fewer.

    Each set is merged from the smallest finer set before it. For CUBE (a, b), the sets (a) and (b) are merged from the
    groups of (a, b), and () is merged from (a) or (b), whichever has fewer groups.
    """

    child: PhysicalPlan
    sets: tuple[tuple[Expr, ...], ...]
    keys: tuple[Named, ...]
    aggregates: tuple[Named, ...]

    @property
    @override
    def schema(self) -> pa.Schema:
        return self._merge.state_schema

    @property
    def _merge(self) -> AggregateExec:
        return AggregateExec(self.child, self.keys, self.aggregates, Phase.MERGE)

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        merging, schema = Aggregation(self._merge), self.schema
        set_columns = [frozenset(e for e in chosen if isinstance(e, Column)) for chosen in self.sets]
        for batch in self.child.run(task):
            done = [_keyed(batch, self.sets[0], schema)]  # these groups are distinct already
            yield done[0]
            for set_index, chosen in enumerate(self.sets[1:], start=1):
                finer = [d for d, k in zip(done, set_columns, strict=False) if set_columns[set_index] <= k]
                done.append(merging.merge(_keyed(min(finer, key=lambda d: d.num_rows), chosen, schema)))
                yield done[-1]

    @override
    def label(self) -> str:
        sets = "; ".join("(" + ", ".join(e.name for e in s if isinstance(e, Column)) + ")" for s in self.sets)
        return f"GroupingSetsExec: groupExpr=[{', '.join(map(str, self.keys))}], sets={sets}"


def _keyed(states: Batch, chosen: tuple[Expr, ...], schema: pa.Schema) -> Batch:
    """Return the states with the keys of a set, which are columns of ``states`` or literals."""
    vectors = []
    for expr in chosen:
        if isinstance(expr, Literal):
            vectors.append(Vector(expr.dtype, literal_vector(expr).physical(states.num_rows)))
        else:
            assert isinstance(expr, Column)
            vectors.append(states.vector(states.schema.get_field_index(expr.name)))
    # The state columns are the last columns of both schemas. ``states`` may have another number of keys before them.
    width = len(states.schema)
    vectors += [states.vector(i) for i in range(width - len(schema) + len(chosen), width)]
    return from_vectors(schema, vectors, states.num_rows)
