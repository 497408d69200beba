"""Scan columns that a query's joins equate, and those that it groups by."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.expr import Expr
from kquery_spark.logical import (
    Aggregate,
    Join,
    LogicalPlan,
    Scan,
    Window,
    WindowGroupLimit,
    origin,
    walk_plan,
)
from kquery_spark.logical.node_map import NodeMap

ScanColumn = tuple[Scan, str]


class KeyClasses:
    """Scan columns in classes of equal ones: a union-find structure over numbered columns."""

    def __init__(self) -> None:
        self._columns: list[ScanColumn] = []
        self._parents: list[int] = []
        self._numbers: NodeMap[dict[str, int]] = NodeMap()

    def add(self, column: ScanColumn) -> int:
        """The number of the column that stands for the column's class; a new column is a class of its own."""
        scan, name = column
        number = self._numbers.setdefault(scan, dict).setdefault(name, len(self._columns))
        if number == len(self._columns):
            self._columns.append(column)
            self._parents.append(number)
        while self._parents[number] != number:
            number = self._parents[number]
        return number

    def unite(self, column: ScanColumn, other: ScanColumn) -> None:
        """Make one class of two."""
        parent = self.add(other)
        self._parents[self.add(column)] = parent

    def scans(self) -> list[Scan]:
        """The scans that have a column in some class."""
        return list(self._numbers)

    def of_columns(self, scan: Scan, columns: Sequence[str]) -> tuple[int, ...] | None:
        """The numbers of the classes of a scan's columns; None if one of the columns is in no class."""
        known = self._numbers.get(scan)
        if known is None or not set(columns) <= known.keys():
            return None
        return tuple(self.add((scan, column)) for column in columns)

    def classes(self) -> list[list[ScanColumn]]:
        """All classes; of each scan the first column in it."""
        classes: dict[int, NodeMap[ScanColumn]] = {}
        for column in self._columns:
            members = classes.setdefault(self.add(column), NodeMap())
            if column[0] not in members:
                members[column[0]] = column
        return [[members[scan] for scan in members] for members in classes.values()]


def key_classes(plan: LogicalPlan) -> KeyClasses:
    """Scan columns that equal each other by join keys, and single ones that are grouped or partitioned by."""
    classes = KeyClasses()
    for node in walk_plan(plan):
        if isinstance(node, Join):
            for key in node.keys:
                left, right = origin(node.left, key.left), origin(node.right, key.right)
                if left is not None and right is not None:
                    classes.unite(left, right)
        elif isinstance(node, Aggregate | Window | WindowGroupLimit):
            for column in (origin(node.child, key) for key in _grouping_keys(node)):
                if column is not None:
                    classes.add(column)
    return classes


def _grouping_keys(node: Aggregate | Window | WindowGroupLimit) -> tuple[Expr, ...]:
    return tuple(named.expr for named in node.keys) if isinstance(node, Aggregate) else node.partition
