"""Windows as written: ``OVER w``, ``OVER (PARTITION BY ... ORDER BY ... frame)``, and the bounds of frames."""

from __future__ import annotations

from dataclasses import dataclass

from kquery_spark.frontends.sql.ast.expressions import Expression, SortItem
from kquery_spark.frontends.sql.ast.node import Node


@dataclass(frozen=True)
class FrameBound(Node):
    """One end of a window frame.

    ``kind`` is ``UNBOUNDED PRECEDING``, ``PRECEDING``, ``CURRENT ROW``, ``FOLLOWING`` or
    ``UNBOUNDED FOLLOWING``; ``offset`` belongs to PRECEDING and FOLLOWING.
    """

    kind: str
    offset: Expression | None = None


@dataclass(frozen=True)
class WindowFrame(Node):
    """``ROWS | RANGE BETWEEN start AND end``; a frame written with one bound ends at CURRENT ROW."""

    unit: str
    start: FrameBound
    end: FrameBound


@dataclass(frozen=True)
class WindowName(Node):
    """``OVER w``."""

    name: str


@dataclass(frozen=True)
class WindowSpec(Node):
    """``(PARTITION BY ... ORDER BY ... frame)``."""

    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[SortItem, ...] = ()
    frame: WindowFrame | None = None


Window = WindowName | WindowSpec
