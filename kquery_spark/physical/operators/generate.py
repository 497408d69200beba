"""GenerateExec: generates rows from arrays, maps or arguments (``explode``, ``inline``, ``stack``, ...)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.kernels.integer_order import stable_order
from kquery_spark.logical.generate import Generator
from kquery_spark.physical.expr import Program
from kquery_spark.physical.gathering import RowSizes, gather_slices
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.physical.pairs import max_pairs, pair_slices
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch, concat_arrays, run_in_parts
from kquery_spark.types.sizes import reserve_gather, reserve_rows
from kquery_spark.types.vector import Int64s, from_arrow

_ROW_NUMBER_BYTES = 40  # the memory for row numbers per generated row


@dataclass(frozen=True)
class GenerateExec(UnaryExec):
    """Implements ``logical.Generate``. ``output`` has the ``required`` columns of the child, then the generated columns."""

    child: PhysicalPlan
    generator: Generator
    args: tuple[Expr, ...]
    outer: bool
    required: tuple[str, ...]
    output: pa.Schema

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.output

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        program = Program(self.args, self.child.schema)
        fields = [self.child.schema.field(name) for name in self.required]
        fields += [pa.field(f"argument {i}", e.dtype) for i, e in enumerate(self.args)]
        schema = pa.schema([*fields, ("count", t.LONG)])
        places = [self.child.schema.get_field_index(name) for name in self.required]

        def evaluate(batch: Batch) -> Batch:
            args = [v.filled(batch.num_rows).data for v in program.run(batch)]
            counts = pa.array(self._counts(args[0], batch.num_rows))
            return Batch(schema, (*(batch.columns[i] for i in places), *args, counts), batch.num_rows)

        for batch in self.child.run(task):
            for _, evaluated in run_in_parts(evaluate, batch, repeatable=program.is_deterministic):
                yield from self._generated_batches(evaluated)

    def _counts(self, data: pa.Array, n: int) -> Int64s:
        """Return the number of rows that each input row generates, without those that ``outer`` adds.

        data: the first argument.
        """
        if self.generator is Generator.STACK:
            return np.full(n, -(-len(self.args) // self._width), np.int64)
        if self.generator is not Generator.REPLICATE:
            return _lengths(data)
        counts: Int64s = np.maximum(data.fill_null(0).to_numpy(zero_copy_only=False), 0)
        return counts

    @property
    def _width(self) -> int:
        """The number of generated columns."""
        return len(self.output) - len(self.required)

    def _generated_batches(self, evaluated: Batch) -> Iterator[Batch]:
        """Yield the generated rows in batches of at most ``max_pairs`` rows, or of a single input row that has more.

        evaluated: the required columns, the arguments, and the number of rows that each input row generates.
        """
        counts, limit = evaluated.columns[-1].to_numpy(), max_pairs()
        for start, stop in pair_slices(counts, limit):
            part, count = evaluated.slice(start, stop - start), int(counts[start:stop].sum())
            # A slice with more rows than the limit is one input row. Its copies are output in several batches.
            if self.generator is Generator.REPLICATE and count > limit:
                for first in range(0, count, limit):
                    owners = np.zeros(min(limit, count - first), np.int64)  # the only row of the slice
                    yield from self._with_required(part, owners, [])
                continue
            for rows, generated in run_in_parts(self._generate, part, repeatable=True):
                yield from self._with_required(rows, *generated)

    def _generate(self, evaluated: Batch) -> tuple[Int64s, list[pa.Array]]:
        """Generate the rows of a slice of input rows, including those that ``outer`` adds: see ``_generated_columns``."""
        *args, counts = evaluated.columns[len(self.required) :]
        return self._generated_columns(args, counts.to_numpy())

    def _with_required(self, evaluated: Batch, owners: Int64s, generated: list[pa.Array]) -> Iterator[Batch]:
        """Put the required columns before the generated ones. owners: the input row of each output row.

        Several batches are output if the required columns have long strings, which each generated row repeats.
        """
        required = evaluated.columns[: len(self.required)]
        for start, stop in gather_slices([(RowSizes(required), owners)], len(owners)):
            rows = owners[start:stop]
            reserve_gather(required, rows)
            index = pa.array(rows)
            parts = (g.slice(start, stop - start) for g in generated)
            yield Batch(self.output, (*(c.take(index) for c in required), *parts), len(rows))

    def _generated_columns(self, args: list[pa.Array], counts: Int64s) -> tuple[Int64s, list[pa.Array]]:
        """Return the input row of each generated row (its owner), and the generated columns. counts: as in ``_counts``.

        For ``explode`` of the arrays [7, 8], [] and [9], the owners are 0 0 2 and the values 7 8 9. With ``outer``, the
        empty array gives a row with NULL, and the owners are 0 0 1 2.
        """
        reserve_rows(int(counts.sum()), _ROW_NUMBER_BYTES)
        owners = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        if self.generator is Generator.REPLICATE:
            return owners, []
        if self.generator is Generator.STACK:
            return owners, self._stacked(args, owners)
        values = _entries(args[0], counts, self.generator is Generator.INLINE)
        position = np.arange(len(owners), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
        empty_rows = np.flatnonzero(counts == 0) if self.outer else np.zeros(0, np.int64)
        if len(empty_rows):
            # Add an output row for each input row without entries, and sort the rows by owner again. ``source`` has the
            # position among the generated values; NULL for an added row.
            order = stable_order(np.concatenate([owners, empty_rows]))
            owners = np.concatenate([owners, empty_rows])[order]
            source = pa.array(order, mask=order >= len(position))
            values = [v.take(source) for v in values]
            position = np.append(position, np.zeros(len(empty_rows), np.int64))[order]
        if self.generator is Generator.POSEXPLODE:
            mask = None if not len(empty_rows) else pc.is_null(source).to_numpy(zero_copy_only=False)
            values.insert(0, pa.array(position.astype(np.int32), mask=mask))
        fields = [self.output.field(i) for i in range(len(self.required), len(self.output))]
        return owners, [from_arrow(f.type, v).data for f, v in zip(fields, values, strict=True)]

    def _stacked(self, args: list[pa.Array], owners: Int64s) -> list[pa.Array]:
        """Return the columns of ``stack``: for each of the n input rows, ``depth`` rows of ``width`` arguments.

        ``stack(2, a, b, c)`` has the width 2 and gives the rows (a, b) and (c, NULL). Column 0 is the concatenation of the
        arrays a and c; ``order`` takes the first value of a, the first of c, the second of a, and so on.
        """
        width, n = self._width, len(args[0])
        depth = -(-len(args) // width)
        order = pa.array(np.tile(np.arange(depth, dtype=np.int64), n) * n + owners)
        columns = []
        for i in range(width):
            dtype = self.output.field(len(self.required) + i).type
            parts = args[i::width]
            if len(parts) < depth:
                parts.append(
                    pa.nulls(n, t.LONG if t.is_decimal(dtype) and pa.types.is_int64(parts[0].type) else dtype)
                )
            columns.append(concat_arrays(dtype, parts).take(order))
        return columns

    @override
    def label(self) -> str:
        outer = " outer" if self.outer else ""
        generated_names = ", ".join(self.output.names[len(self.required) :])
        return (
            f"GenerateExec:{outer} {self.generator}({', '.join(map(str, self.args))}) AS [{generated_names}]"
        )


def _entries(data: pa.Array, lengths: Int64s, inline: bool) -> list[pa.Array]:
    """Return the columns of the entries: the elements of an array, or the keys and values of a map.

    lengths: the number of entries per row. inline: return the fields of the elements, which are structs.
    """
    if pa.types.is_map(data.type):
        # The offsets refer to ``keys`` and ``items``, which pyarrow does not slice together with the map.
        offsets = data.offsets.to_numpy().astype(np.int64)
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        index = pa.array(np.repeat(offsets[:-1], lengths) + within)
        return [data.keys.take(index), data.items.take(index)]
    values = data.flatten()
    return list(values.flatten()) if inline else [values]


def _lengths(data: pa.Array) -> Int64s:
    """Return the number of entries of each array or map; 0 for NULL."""
    lengths: Int64s
    if pa.types.is_map(data.type):
        lengths = np.diff(data.offsets.to_numpy().astype(np.int64))
        if data.null_count:
            lengths = np.where(pc.is_valid(data).to_numpy(zero_copy_only=False), lengths, 0)
    else:
        lengths = pc.list_value_length(data).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths
