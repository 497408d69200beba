"""Evaluates the residual condition of a join over pairs of rows whose keys match."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kquery_spark.expr import Expr, columns_of
from kquery_spark.physical.expr import Program
from kquery_spark.physical.gathering import RowSizes, gather_slices
from kquery_spark.physical.joins.join_table import Matches
from kquery_spark.types.batch import Batch
from kquery_spark.types.sizes import reserve_gather
from kquery_spark.types.vector import Flags, Int64s, true_flags


class PairCondition:
    """A condition compiled for pairs of rows. Only the columns that it reads are gathered for the pairs."""

    def __init__(self, condition: Expr, probe: pa.Schema, build: pa.Schema) -> None:
        needed = columns_of(condition)
        self._probe_columns = [i for i, n in enumerate(probe.names) if n in needed]
        self._build_columns = [i for i, n in enumerate(build.names) if n in needed]
        fields = [probe.field(i) for i in self._probe_columns] + [build.field(i) for i in self._build_columns]
        self._schema = pa.schema(fields)
        self._program = Program([condition], self._schema)
        self._build: Batch | None = None
        self._build_sizes = RowSizes([])

    def passing(self, probe: Batch, build: Batch, pairs: Matches) -> Matches:
        """Return the pairs for which the condition is TRUE. A NULL drops the pair, as FALSE does."""
        if build is not self._build:
            self._build, self._build_sizes = build, RowSizes(build.columns[i] for i in self._build_columns)
        sizes = RowSizes(probe.columns[i] for i in self._probe_columns)
        sources = (sizes, pairs.probe), (self._build_sizes, pairs.build)
        flags = [
            self._flags(probe, build, pairs.probe[start:stop], pairs.build[start:stop])
            for start, stop in gather_slices(sources, len(pairs.probe))
        ]
        if not flags:
            return pairs
        passes = flags[0] if len(flags) == 1 else np.concatenate(flags)
        return Matches(pairs.probe[passes], pairs.build[passes])

    def _flags(self, probe: Batch, build: Batch, probe_rows: Int64s, build_rows: Int64s) -> Flags:
        """Evaluate the condition for pairs of rows."""
        left, right = pa.array(probe_rows), pa.array(build_rows)
        reserve_gather([probe.columns[i] for i in self._probe_columns], probe_rows)
        reserve_gather([build.columns[i] for i in self._build_columns], build_rows)
        columns = [probe.columns[i].take(left) for i in self._probe_columns]
        columns += [build.columns[i].take(right) for i in self._build_columns]
        count = len(probe_rows)
        return true_flags(self._program.run(Batch(self._schema, tuple(columns), count))[0].physical(count))
