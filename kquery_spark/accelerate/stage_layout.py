"""Lays out the stages of a picture in rows: each stage is above the stage that reads it, and the result is in the last row.

This is a layered graph drawing. ``_ranks`` assigns each box to a row, ``_rows`` orders the boxes of a row by the average
position of their readers, so that few edges cross. ``_routed`` reserves a narrow lane in each row that an edge passes
through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kquery_spark.cached_property import cached_property

_GAP = 28.0
"""Space between the boxes of a row."""
_ROW_GAP = 56.0
"""Space between rows, for the arrows and the labels of exchanges."""
_LANE_WIDTH = 14.0
"""Width that an edge reserves in a row that it crosses."""


@dataclass(frozen=True)
class Box:
    """A stage, or rows from Spark: its size, and the boxes that it reads."""

    key: str
    width: float
    height: float
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spot:
    """The top left corner and the size of a box, or of the lane of an edge."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The x coordinate of its center."""
        return self.x + self.width / 2


@dataclass(frozen=True)
class Layout:
    """Boxes in rows. Each box is in the lowest row above its readers, which keeps rows short."""

    boxes: Sequence[Box]

    @cached_property
    def spots(self) -> Mapping[str, Spot]:
        """Positions of boxes and of lanes, by key."""
        spots: dict[str, Spot] = {}
        widest = max((_row_width(row) for row in self._rows), default=0.0)
        y = 0.0
        for row in self._rows:
            x = (widest - _row_width(row)) / 2
            height = max(box.height for box in row)
            for box in row:
                own = box.height or height
                spots[box.key] = Spot(x, y + height - own, box.width, own)
                x += box.width + _GAP
            y += height + _ROW_GAP
        return spots

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the picture."""
        spots = self.spots.values()
        return max((s.x + s.width for s in spots), default=0.0), max(
            (s.y + s.height for s in spots), default=0.0
        )

    def route(self, source: str, target: str) -> list[tuple[float, float]]:
        """Return the points of the edge from a box to its reader, through its lanes in the rows between them."""
        start, end = self.spots[source], self.spots[target]
        points = [(start.middle, start.y + start.height)]
        for row in range(self._ranks[source] - 1, self._ranks[target], -1):
            lane = self.spots[_lane(source, target, row)]
            points += [(lane.middle, lane.y), (lane.middle, lane.y + lane.height)]
        readers = self._by_key[target].reads
        share = (readers.index(source) + 1) / (len(readers) + 1)
        return [*points, (end.x + end.width * share, end.y)]

    @cached_property
    def _by_key(self) -> Mapping[str, Box]:
        return {box.key: box for box in self.boxes}

    @cached_property
    def _ranks(self) -> Mapping[str, int]:
        """The number of rows below each box. ``boxes`` lists each box after those that it reads."""
        ranks = dict.fromkeys(self._by_key, 0)
        for box in reversed(self.boxes):
            for source in box.reads:
                ranks[source] = max(ranks[source], ranks[box.key] + 1)
        return ranks

    @cached_property
    def _rows(self) -> list[list[Box]]:
        """Boxes and lanes by row, from the top.

        The rows are ordered from the bottom up. A box or lane is placed at the average position of its readers, which are
        all in lower rows; ties keep the order of ``_routed``.
        """
        rows, readers = self._routed()
        position: dict[str, float] = {}  # between 0 and 1 within its row
        for row in rows:
            row.sort(key=lambda box: _mean([position[reader] for reader in readers[box.key]]))
            position.update({box.key: (i + 1) / (len(row) + 1) for i, box in enumerate(row)})
        return rows[::-1]

    def _routed(self) -> tuple[list[list[Box]], Mapping[str, Sequence[str]]]:
        """Return the boxes and lanes of each row, from the bottom up, and the keys of the boxes or lanes below each of them.

        A row is in the order of the boxes' numbers in ``boxes`` and the lanes' numbers in the row.
        """
        ranks = self._ranks
        rows: list[list[Box]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
        readers: dict[str, list[str]] = {box.key: [] for box in self.boxes}
        numbers = {box.key: i for i, box in enumerate(self.boxes)}
        for box in self.boxes:
            for source in box.reads:
                below = box.key
                for row in range(ranks[box.key] + 1, ranks[source]):
                    lane = Box(_lane(source, box.key, row), _LANE_WIDTH, 0.0)
                    readers[lane.key] = [below]
                    numbers[lane.key] = len(rows[row])
                    rows[row].append(lane)
                    below = lane.key
                readers[source].append(below)
        for box in self.boxes:
            rows[ranks[box.key]].append(box)
        for ordered_row in rows:
            ordered_row.sort(key=lambda box: numbers[box.key])
        return rows, readers


def _lane(source: str, target: str, row: int) -> str:
    return f"{source} to {target} in row {row}"


def _row_width(row: Sequence[Box]) -> float:
    return sum(box.width for box in row) + _GAP * (len(row) - 1)


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0
