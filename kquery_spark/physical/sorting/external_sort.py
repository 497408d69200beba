"""External merge sort: sorts in memory, or, beyond the memory budget, writes sorted runs to disk and merges them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import SortKey
from kquery_spark.physical.expr import Program
from kquery_spark.physical.sorting.row_order import sorted_rows
from kquery_spark.physical.sorting.sort_keys import key_steps
from kquery_spark.physical.spill import SpillDirectory, SpillFile
from kquery_spark.types.batch import Batch, concat, max_buffered_bytes
from kquery_spark.types.vector import Int64s

_SORTED_ROW_BYTES = 16
"""Memory of a row number while rows are sorted. Each sort key needs the same amount again."""

_PIECES_IN_MEMORY = 128
"""A merge holds one piece of each run. Pieces are so small that this number of them fits into the memory budget."""

_MIN_PIECE_ROWS = 1024


def sort_order(batch: Batch, keys: Sequence[SortKey], limit: int | None = None) -> Int64s:
    """Return the row numbers of the batch in sorted order. The sort is stable. limit: return only the first ones."""
    if not batch.num_rows:
        return np.empty(0, np.int64)
    vectors = Program([k.expr for k in keys], batch.schema).run(batch)
    return sorted_rows(key_steps(zip(keys, vectors, strict=True)), batch.num_rows, limit)


def sort_batch(batch: Batch, keys: Sequence[SortKey], limit: int | None = None) -> Batch:
    """Return the sorted batch; with a limit, only its first rows."""
    return batch.take(pa.array(sort_order(batch, keys, limit)))


def _sorted_pieces(
    batches: list[Batch], schema: pa.Schema, keys: Sequence[SortKey], piece_rows: int
) -> Iterator[Batch]:
    """Yield all rows of the batches in sorted order, in pieces of ``piece_rows`` rows. Empties the list ``batches``.

    Each piece is copied when it is used, so that memory never holds a second copy of all rows.
    """
    combined = concat(schema, batches)
    batches.clear()
    order = pa.array(sort_order(combined, keys))
    for start in range(0, combined.num_rows, piece_rows):
        yield combined.take(order.slice(start, piece_rows))


def sorted_batches(
    source: Iterator[Batch],
    schema: pa.Schema,
    keys: Sequence[SortKey],
    config: EngineConfig,
    spill: SpillDirectory,
) -> Iterator[Batch]:
    """Yield all rows in sorted order (stable). Beyond the memory budget, sorted runs are written to disk and merged."""
    buffered: list[Batch] = []
    size = 0
    runs: list[SpillFile] = []
    limit = max_buffered_bytes(schema, config.memory_bytes)
    for batch in source:
        buffered.append(batch)
        size += batch.nbytes + _SORTED_ROW_BYTES * (1 + len(keys)) * batch.num_rows
        if size > limit and batch.columns:
            run = spill.file(schema, share_store_with=runs[0] if runs else None)
            runs.append(_write_run(buffered, keys, config, run))
            size = 0
    if not runs:
        yield from _sorted_pieces(buffered, schema, keys, config.batch_rows)
        return
    if buffered:
        runs.append(_write_run(buffered, keys, config, spill.file(schema, share_store_with=runs[0])))
    yield from _merge_runs([run.read() for run in runs], schema, keys)


def _write_run(
    batches: list[Batch], keys: Sequence[SortKey], config: EngineConfig, run: SpillFile
) -> SpillFile:
    """Sort the batches and write them to ``run``, in pieces that are so small that a merge can hold one of each run.

    Empties the list ``batches``, and returns ``run``.
    """
    rows, nbytes = sum(b.num_rows for b in batches), sum(b.nbytes for b in batches)
    fitting = config.memory_bytes * rows // (_PIECES_IN_MEMORY * max(1, nbytes))
    piece_rows = max(_MIN_PIECE_ROWS, min(config.batch_rows // 8, fitting))
    for piece in _sorted_pieces(batches, run.schema, keys, piece_rows):
        run.append(piece)
    return run


def _refill(heads: list[Batch], runs: list[Iterator[Batch]], live: list[int]) -> None:
    """Read the next piece of each run whose current piece (``heads``) is empty. Runs that have ended leave ``live``."""
    for i in list(live):
        if not heads[i].num_rows:
            piece = next(runs[i], None)
            if piece is None:
                live.remove(i)
            else:
                heads[i] = piece


def _merge_runs(runs: list[Iterator[Batch]], schema: pa.Schema, keys: Sequence[SortKey]) -> Iterator[Batch]:
    """Merge sorted runs piece by piece.

    Each step sorts the current pieces of all runs together. The rows up to the first end of a piece are final, because all
    rows that are not read yet sort after the end of the piece of their run. For the pieces 1 4 9 and 2 3 5 of two runs, the
    sorted rows are 1 2 3 4 5 9, and the first end is 5: the step outputs 1 2 3 4 5, keeps 9, and reads the next piece of
    the second run. There is no loop over rows, unlike in a merge with a heap.
    """
    heads = [Batch.empty(schema) for _ in runs]
    live = list(range(len(runs)))
    while True:
        _refill(heads, runs, live)
        sizes = np.array([h.num_rows for h in heads], np.int64)
        if not sizes.sum():
            return
        pool = concat(schema, [h for h in heads if h.num_rows])
        order = sort_order(pool, keys)
        rank = np.empty(pool.num_rows, np.int64)
        rank[order] = np.arange(pool.num_rows)
        ends = np.cumsum(sizes)
        last_final = min((int(rank[ends[i] - 1]) for i in live), default=pool.num_rows - 1)
        yield pool.take(pa.array(order[: last_final + 1]))
        for i, end in enumerate(ends.tolist()):
            output_rows = int((rank[end - int(sizes[i]) : end] <= last_final).sum())
            heads[i] = heads[i].slice(output_rows)
