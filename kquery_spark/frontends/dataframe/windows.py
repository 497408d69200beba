"""``Window`` and the descriptions of windows that it builds, as in PySpark."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kquery_spark.errors import PlanError
from kquery_spark.frontends.dataframe.column import Column, SortOrder, lit, sort_items, to_column
from kquery_spark.frontends.sql.ast import windows as window_ast


@dataclass(frozen=True)
class WindowBuilder:
    """The description of a window; each method returns a new one."""

    spec: window_ast.WindowSpec = field(default_factory=window_ast.WindowSpec)

    def partitionBy(self, *columns: Column | str) -> WindowBuilder:
        """Rows with equal values form a partition."""
        return WindowBuilder(replace(self.spec, partition_by=tuple(to_column(c).node for c in columns)))

    def orderBy(self, *keys: Column | SortOrder | str) -> WindowBuilder:
        """The order inside a partition."""
        return WindowBuilder(replace(self.spec, order_by=sort_items(keys)))

    def rowsBetween(self, start: int, end: int) -> WindowBuilder:
        """A frame of rows counted from the current one."""
        return self._frame("ROWS", start, end)

    def rangeBetween(self, start: int, end: int) -> WindowBuilder:
        """A frame of values counted from the current row's."""
        return self._frame("RANGE", start, end)

    def _frame(self, unit: str, start: int, end: int) -> WindowBuilder:
        frame = window_ast.WindowFrame(unit, _bound(unit, start), _bound(unit, end))
        return WindowBuilder(replace(self.spec, frame=frame))


class Window:
    """Entry points as in PySpark: ``Window.partitionBy("a").orderBy("b")``."""

    unboundedPreceding = -(2**63)
    unboundedFollowing = 2**63 - 1
    currentRow = 0

    @staticmethod
    def partitionBy(*columns: Column | str) -> WindowBuilder:
        """A window of partitions."""
        return WindowBuilder().partitionBy(*columns)

    @staticmethod
    def orderBy(*keys: Column | SortOrder | str) -> WindowBuilder:
        """A window of all rows in an order."""
        return WindowBuilder().orderBy(*keys)


def _bound(unit: str, offset: int) -> window_ast.FrameBound:
    """Convert an offset from the current row; the offsets at which PySpark's frames are unbounded are the same."""
    if offset <= -Window.unboundedFollowing:
        return window_ast.FrameBound("UNBOUNDED PRECEDING")
    if offset >= Window.unboundedFollowing:
        return window_ast.FrameBound("UNBOUNDED FOLLOWING")
    if unit == "ROWS" and not -(2**31) <= offset < 2**31:
        raise PlanError(f"the bound {offset} of rowsBetween is outside the range of int")
    if offset == 0:
        return window_ast.FrameBound("CURRENT ROW")
    return window_ast.FrameBound("FOLLOWING", lit(offset).node)
