"""Windows of OVER and of the WINDOW clause, with their frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.ast import windows as window_ast
from kquery_spark.frontends.sql.parser.select_items import parse_sort_item
from kquery_spark.frontends.sql.parser.tokens import Kind

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.parser.parser import Parser


def parse_window(parser: Parser) -> window_ast.Window:
    """Read a window: its name or ``(PARTITION BY ... ORDER BY ... frame)``."""
    pos = parser.token.pos
    if not parser.at_op("("):
        return window_ast.WindowName(parser.name("a window"), pos=pos)
    parser.advance()
    if parser.token.kind in (Kind.WORD, Kind.QUOTED) and parser.at_op(")", ahead=1):
        name = parser.advance().value
        parser.advance()
        return window_ast.WindowName(name, pos=pos)
    partition: tuple[e.Expression, ...] = ()
    order: tuple[e.SortItem, ...] = ()
    if parser.take_word("CLUSTER", "BY"):
        partition = parser.expressions()
    else:
        if parser.take_word("PARTITION", "BY") or parser.take_word("DISTRIBUTE", "BY"):
            partition = parser.expressions()
        if parser.take_word("ORDER", "BY") or parser.take_word("SORT", "BY"):
            order = parser.comma_separated(parse_sort_item)
    frame = _parse_frame(parser) if parser.at_any(("ROWS", "RANGE")) else None
    parser.expect_op(")", " to close the window")
    return window_ast.WindowSpec(partition, order, frame, pos=pos)


def _parse_frame(parser: Parser) -> window_ast.WindowFrame:
    unit = parser.advance()
    if parser.take_word("BETWEEN"):
        start = _parse_bound(parser)
        parser.expect_word("AND", " between the frame's bounds")
        return window_ast.WindowFrame(unit.upper, start, _parse_bound(parser), pos=unit.pos)
    return window_ast.WindowFrame(
        unit.upper, _parse_bound(parser), window_ast.FrameBound("CURRENT ROW", pos=unit.pos), pos=unit.pos
    )


def _parse_bound(parser: Parser) -> window_ast.FrameBound:
    pos = parser.token.pos
    if parser.take_word("CURRENT", "ROW"):
        return window_ast.FrameBound("CURRENT ROW", pos=pos)
    offset = None if parser.take_word("UNBOUNDED") else parser.expression()
    if not parser.at_any(("PRECEDING", "FOLLOWING")):
        parser.fail_expected("PRECEDING or FOLLOWING")
    side = parser.advance().upper
    return window_ast.FrameBound(side if offset is not None else f"UNBOUNDED {side}", offset, pos=pos)
