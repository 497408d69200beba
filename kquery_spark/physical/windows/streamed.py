"""Computes windows over a partition that does not fit into memory, in two passes over pieces of its rows on disk.

The first pass writes the sorted rows in pieces, and computes the state of each aggregate over each piece (``Fold``). A piece
ends at the end of peers. Peers that are too many for one piece get pieces of their own, which form a group.

The second pass reads the pieces again. A row's frame consists of rows of its piece (and of neighboring pieces, for
``n PRECEDING``), and of whole pieces before or after these, whose states are known from the first pass. For example,
``sum(x)`` over UNBOUNDED PRECEDING to CURRENT ROW in the third piece is the merged state of two pieces plus a running sum.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kquery_spark.expr import Literal, Named, SortKey, WindowCall
from kquery_spark.expr.windows import FrameUnit
from kquery_spark.physical.expr import Program
from kquery_spark.physical.spill import SpillDirectory
from kquery_spark.physical.windows.aggregates import finished, state_types
from kquery_spark.physical.windows.folds import Fold, as_aggregate
from kquery_spark.physical.windows.frames import frame_rows
from kquery_spark.physical.windows.functions import WindowEvaluator
from kquery_spark.physical.windows.results import ComputedResult, WindowResult, gathered, with_results
from kquery_spark.physical.windows.segments import Segments, arrange
from kquery_spark.types.batch import Batch, concat
from kquery_spark.types.vector import Int64s, Vector


def streamable(call: WindowCall) -> bool:
    """Return True if a call can be computed from a few pieces of its partition at a time.

    These cannot: RANGE frames with an offset; lag and lead with IGNORE NULLS; and, over frames that are unbounded on a side,
    nth_value, first and last with a FILTER, and aggregates whose states are lists (``collect_list``, ``percentile``).
    """
    if call.entry is not None and call.entry.ordered:
        return not (call.entry.is_offset and call.ignore_nulls)
    bounds = call.frame.lower, call.frame.upper
    if call.frame.unit is FrameUnit.ROWS and None not in bounds:
        return True
    if call.frame.unit is FrameUnit.RANGE and any(b is not None and b.value for b in bounds):
        return False
    return _has_small_states(call)


def _has_small_states(call: WindowCall) -> bool:
    """Return True if the call is an aggregate whose states have a fixed size."""
    folded = as_aggregate(call)
    if folded.ignore_nulls or folded.entry is not None:
        return False
    return not any(pa.types.is_list(x) for x in state_types(folded))


@dataclass(frozen=True)
class _Piece:
    """The rows ``start`` to ``start + rows`` of the partition.

    peers_before: the number of distinct sort keys before the piece, for dense_rank. group: if all rows of the piece are
    peers that have pieces of their own, the index of these pieces in ``StreamedPartition._groups``; otherwise None.
    """

    start: int
    rows: int
    peers_before: int
    group: int | None

    @property
    def end(self) -> int:
        return self.start + self.rows


class StreamedPartition:
    """One large partition. First ``add`` its rows in the window's order, then ``run`` it.

    schemas: of the input and of the output. piece_rows: the number of rows of a piece, if peers allow it. max_bytes: the
    bytes of results that are built together.
    """

    def __init__(
        self,
        calls: Sequence[Named],
        order: Sequence[SortKey],
        schemas: tuple[pa.Schema, pa.Schema],
        spill: SpillDirectory,
        piece_rows: int,
        max_bytes: int,
    ) -> None:
        self._schema, self._output = schemas
        self._calls = [_as_call(n) for n in calls]
        self._order = list(order)
        self._program = Program([a for c in self._calls for a in c.args], self._schema)
        self._keys = Program([k.expr for k in order], self._schema)
        self._file = spill.file(self._schema)
        self._piece_rows = piece_rows
        self._max_bytes = max_bytes
        self._pieces: list[_Piece] = []
        # For each group of peers with pieces of their own: its first and its last piece.
        self._groups: list[tuple[int, int]] = []
        self._folds = [Fold.from_call(c) for c in self._calls]
        self._open: list[Batch] = []
        self._open_rows = 0
        self._last: Batch | None = None
        self._last_peers = 0
        self._frame_margins = _frame_margins(self._calls)

    def add(self, batch: Batch) -> None:
        """Add the next rows."""
        for start in range(0, batch.num_rows, self._piece_rows):
            piece = batch.slice(start, self._piece_rows)
            self._open.append(piece)
            self._open_rows += piece.num_rows
            if self._open_rows >= self._piece_rows:
                self._cut()

    def _cut(self, final: bool = False) -> None:
        """Write the complete part of the waiting rows as pieces.

        1. Rows before the first new sort key (``head``) are peers of the last row written, so they continue its group.
        2. Rows up to the last new sort key form an ordinary piece. The peers after it may continue in the next batch.
        3. If there is only one sort key and it fills a piece, its peers begin a new group.
        """
        batch = concat(self._schema, self._open)
        fresh = self._first_peers(batch)
        head = int(fresh[0]) if len(fresh) else batch.num_rows
        if head:
            self._write(batch.slice(0, head), len(self._groups) - 1)
        rest = batch.num_rows if final else (int(fresh[-1]) if len(fresh) else head)
        if rest > head:
            self._write(batch.slice(head, rest - head), None)
        elif batch.num_rows - rest >= self._piece_rows:
            self._groups.append((len(self._pieces), len(self._pieces)))
            rest = batch.num_rows
            self._write(batch.slice(head), len(self._groups) - 1)
        self._open = [batch.slice(rest)] if rest < batch.num_rows else []
        self._open_rows = batch.num_rows - rest

    def _first_peers(self, batch: Batch) -> np.ndarray:
        """Return the rows whose sort key differs from that of the row before; for the first row, of the last row written."""
        if self._last is None:
            return np.flatnonzero(_starts(self._segments(batch)))
        rows = np.flatnonzero(_starts(self._segments(concat(self._schema, [self._last, batch]))))
        return rows[rows > 0] - 1

    def _segments(self, batch: Batch) -> Segments:
        keys = [Vector(v.dtype, v.data) for v in self._keys.run(batch)]
        return arrange([], list(zip(self._order, keys, strict=True)), batch.num_rows)[1]

    def _write(self, batch: Batch, group: int | None) -> None:
        piece = self._next_piece(batch.num_rows, group)
        if group is not None:
            self._groups[group] = self._groups[group][0], len(self._pieces)
        self._last_peers = 1 if group is not None else int(_starts(self._segments(batch)).sum())
        self._pieces.append(piece)
        self._file.append(batch)
        self._last = batch.slice(batch.num_rows - 1)
        if any(f is not None for f in self._folds):
            for fold, args in zip(self._folds, self._args(batch), strict=True):
                if fold is not None:
                    fold.add(args, batch.num_rows)

    def _next_piece(self, rows: int, group: int | None) -> _Piece:
        """Return the piece after the last one. A piece of the same group adds no sort key."""
        if not self._pieces:
            return _Piece(0, rows, 0, group)
        before = self._pieces[-1]
        within = 0 if before.group is not None and before.group == group else self._last_peers
        return _Piece(before.end, rows, before.peers_before + within, group)

    def _args(self, batch: Batch) -> list[list[Vector]]:
        values = iter(self._program.run(batch))
        return [[next(values) for _ in c.args] for c in self._calls]

    def run(self) -> Iterator[Batch]:
        """Yield the output, piece by piece.

        ``held`` has the pieces from ``first`` on that the frames of the current piece can reach. They are read ahead and
        dropped as the current piece moves on.
        """
        if self._open:
            self._cut(final=True)
        if not self._pieces:
            return
        back, ahead = self._frame_margins
        total = self._pieces[-1].end
        reader = self._file.read()
        held: deque[Batch] = deque()
        first = 0
        for number, piece in enumerate(self._pieces):
            while first + len(held) <= number or (
                first + len(held) < len(self._pieces)
                and self._pieces[first + len(held) - 1].end < min(total, piece.end + ahead)
            ):
                held.append(next(reader))
            while self._pieces[first].end <= piece.start - back:
                held.popleft()
                first += 1
            yield from self._computed(number, first, list(held))
        self._file.remove()

    def _computed(self, number: int, first: int, held: list[Batch]) -> Iterator[Batch]:
        """Yield the output of one piece. held: the pieces from number ``first`` on that its frames can reach.

        There are four kinds of calls: those that reach into neighboring pieces, rankings, ROWS frames without an offset, and
        frames whose bounds are those of the partition or of peers.
        """
        piece, batch = self._pieces[number], held[number - first]
        around = concat(self._schema, held)
        offset = piece.start - self._pieces[first].start
        inside, near = self._args(batch), self._args(around)
        local = self._segments(batch)
        results = []
        for call, fold, own, wide in zip(self._calls, self._folds, inside, near, strict=True):
            offsets = _offsets(call)
            if any(offsets) or (offsets and fold is None):
                span = range(first, first + len(held))
                result = self._compute_rows_frame(call, fold, wide, around.num_rows, span)
                results.append(result.sliced(offset, batch.num_rows))
            elif fold is None:
                results.append(self._ranked(call, own, piece, local))
            elif call.frame.unit is FrameUnit.ROWS and not call.frame.whole:
                span = range(number, number + 1)
                results.append(self._compute_rows_frame(call, fold, own, batch.num_rows, span))
            else:
                results.append(self._compute_peer_frame(call, fold, own, number, local))
        yield from with_results(batch, results, self._output, batch.num_rows, self._max_bytes)

    def _ranked(
        self, call: WindowCall, args: Sequence[Vector], piece: _Piece, local: Segments
    ) -> WindowResult:
        """Compute a ranking function from segments whose boundaries are relative to the piece's first row.

        A partition of 100 rows whose second piece begins at row 40 has the start -40 and the end 60 in that piece.
        """
        n, total = piece.rows, self._pieces[-1].end
        at = _constants(n)
        peers = local.peer_start, local.peer_end
        before = piece.peers_before + np.cumsum(_starts(local))
        if piece.group is not None:
            low, high = self._groups[piece.group]
            peers = at(self._pieces[low].start - piece.start), at(self._pieces[high].end - piece.start)
            before = at(self._pieces[low].peers_before + 1)
        if call.entry is not None and call.entry.counts_distinct_keys:
            return ComputedResult(pa.array(before.astype(np.int32)))
        whole = Segments(n, at(0), 1, at(-piece.start), at(total - piece.start), *peers)
        return WindowEvaluator(whole, []).compute(call, args)

    def _compute_rows_frame(
        self, call: WindowCall, fold: Fold | None, args: Sequence[Vector], n: int, span: range
    ) -> WindowResult:
        """Compute a ROWS frame over the concatenated rows of the pieces ``span``."""
        at = _constants(n)
        here = Segments(n, at(0), 1, at(0), at(n), at(0), at(n))
        if fold is None:
            return WindowEvaluator(here, []).compute(call, args)
        low, high = frame_rows(call.frame, here, [])
        return fold.completed(call, args, (low, high), span)

    def _compute_peer_frame(
        self, call: WindowCall, fold: Fold, args: Sequence[Vector], number: int, local: Segments
    ) -> WindowResult:
        """Compute a frame whose bounds are those of the partition or of the row's peers.

        If the frame consists of whole pieces, all rows of the piece have the same result.
        """
        piece = self._pieces[number]
        frame = call.frame
        if piece.group is None and not frame.whole:
            return fold.completed(call, args, frame_rows(frame, local, []), range(number, number + 1))
        low, high = 0, len(self._pieces)
        if not frame.whole and piece.group is not None:
            begin, last = self._groups[piece.group]
            low = 0 if frame.lower is None else begin
            high = high if frame.upper is None else last + 1
        one = finished(fold.call, fold.between(low, high), 1)
        return gathered(Vector(call.dtype, one), np.zeros(piece.rows, np.int64))


def _as_call(named: Named) -> WindowCall:
    assert isinstance(named.expr, WindowCall)
    return named.expr


def _starts(segments: Segments) -> np.ndarray:
    return np.asarray(segments.peer_start == segments.rows)


def _constants(n: int) -> Callable[[int], Int64s]:
    """Return a function that returns a column of ``n`` rows with the given value."""
    return lambda value: np.full(n, value, np.int64)


def _offsets(call: WindowCall) -> list[int]:
    """Return the distances of the rows before (negative) or after a row on which its result depends."""
    ordered = call.entry is not None and call.entry.ordered
    if call.entry is not None and call.entry.is_offset:
        by = call.args[1] if len(call.args) > 1 else Literal(1, pa.int32())
        assert isinstance(by, Literal)
        return [call.entry.offset_sign * int(by.value)]
    if ordered or call.frame.unit is FrameUnit.RANGE:
        return []
    return [int(b.value) for b in (call.frame.lower, call.frame.upper) if b is not None]


def _frame_margins(calls: Sequence[WindowCall]) -> tuple[int, int]:
    """Return the numbers of rows before and after a piece that its frames can reach."""
    offsets = [o for c in calls for o in _offsets(c)]
    return max([0, *(-o for o in offsets)]), max([0, *offsets])
