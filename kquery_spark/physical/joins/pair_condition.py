"""Evaluates the residual condition of a join over pairs of rows whose keys match."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.expr import Expr, columns_of
from kquery_spark.physical.expr import Program
from kquery_spark.physical.joins.join_table import Matches
from kquery_spark.types.batch import Batch
from kquery_spark.types.sizes import reserve_gather
from kquery_spark.types.vector import true_flags


class PairCondition:
    """A condition compiled for pairs of rows. Only the columns that it reads are gathered for the pairs."""

    def __init__(self, condition: Expr, probe: pa.Schema, build: pa.Schema) -> None:
        needed = columns_of(condition)
        self._probe_columns = [i for i, n in enumerate(probe.names) if n in needed]
        self._build_columns = [i for i, n in enumerate(build.names) if n in needed]
        fields = [probe.field(i) for i in self._probe_columns] + [build.field(i) for i in self._build_columns]
        self._schema = pa.schema(fields)
        self._program = Program([condition], self._schema)

    def passing(self, probe: Batch, build: Batch, pairs: Matches) -> Matches:
        """Return the pairs for which the condition is TRUE. A NULL drops the pair, as FALSE does."""
        count = len(pairs.probe)
        if not count:
            return pairs
        left, right = pa.array(pairs.probe), pa.array(pairs.build)
        reserve_gather([probe.columns[i] for i in self._probe_columns], pairs.probe)
        reserve_gather([build.columns[i] for i in self._build_columns], pairs.build)
        columns = [probe.columns[i].take(left) for i in self._probe_columns]
        columns += [build.columns[i].take(right) for i in self._build_columns]
        verdict = self._program.run(Batch(self._schema, tuple(columns), count))[0]
        flags = true_flags(verdict.physical(count))
        return Matches(pairs.probe[flags], pairs.build[flags])
