"""Equivalence classes of scan columns: columns that the joins of a query equate, and columns that it groups by.

``lines JOIN orders ON l.order_id = o.id JOIN returns ON r.order_id = l.order_id`` gives the class {lines.order_id,
orders.id, returns.order_id}. If tasks share the files of all three by this class, neither join needs a shuffle.
"""

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
    """A union-find structure of scan columns.

    Each column has a number, and ``_parents`` has the number of its parent; the root of a class is its own parent. After
    unite(a, b) and unite(c, b), the parents of a, b, c are b, b, b: they form one class with the root b.
    """

    def __init__(self) -> None:
        self._columns: list[ScanColumn] = []
        self._parents: list[int] = []
        self._numbers: NodeMap[dict[str, int]] = NodeMap()

    def add(self, column: ScanColumn) -> int:
        """Return the number of the root of the column's class. A new column becomes a class of its own."""
        scan, name = column
        number = self._numbers.setdefault(scan, dict).setdefault(name, len(self._columns))
        if number == len(self._columns):
            self._columns.append(column)
            self._parents.append(number)
        # Follow the parents to the root. Queries have few columns, so paths are not compressed.
        while self._parents[number] != number:
            number = self._parents[number]
        return number

    def unite(self, column: ScanColumn, other: ScanColumn) -> None:
        """Merge the classes of two columns."""
        parent = self.add(other)
        self._parents[self.add(column)] = parent

    def scans(self) -> list[Scan]:
        """Return the scans that have a column in some class."""
        return list(self._numbers)

    def of_columns(self, scan: Scan, columns: Sequence[str]) -> tuple[int, ...] | None:
        """Return the numbers of the classes of a scan's columns; None if one of the columns is not in any class."""
        known = self._numbers.get(scan)
        if known is None or not set(columns) <= known.keys():
            return None
        return tuple(self.add((scan, column)) for column in columns)

    def classes(self) -> list[list[ScanColumn]]:
        """Return all classes, each with at most one column per scan: the first that was added."""
        classes: dict[int, NodeMap[ScanColumn]] = {}
        for column in self._columns:
            members = classes.setdefault(self.add(column), NodeMap())
            if column[0] not in members:
                members[column[0]] = column
        return [[members[scan] for scan in members] for members in classes.values()]


def key_classes(plan: LogicalPlan) -> KeyClasses:
    """Return the classes of scan columns that join keys equate or that the query groups or partitions by."""
    classes = KeyClasses()
    for node in walk_plan(plan):
        if isinstance(node, Join):
            for key in node.keys:
                # Only columns that are copied from a scan can be matched with the files' statistics or buckets.
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
