"""Parses the output of ``show`` into cells, and renders these as an HTML table.

Only ``show`` formats every value exactly like Spark, whichever engine computes the rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

# Characters that Spark's ``show`` counts as two columns wide.
_WIDE = re.compile("[ᄀ-ᅟ⺀-꓏가-힣豈-﫿︰-﹯＀-｠￠-￦]")
# Text has the color of the notebook's theme; rules are a gray that is visible in light and dark themes.
_TABLE = "border-collapse:collapse;font-size:0.92em;font-variant-numeric:tabular-nums"
_CELL = "padding:0.2em 0.7em;border-bottom:1px solid rgba(128,128,128,0.3);white-space:pre-wrap;vertical-align:top"
_HEAD = f"{_CELL};border-bottom:2px solid rgba(128,128,128,0.6);font-weight:600"


@dataclass(frozen=True)
class Grid:
    """The column names and the first rows of a result, as strings. is_cut: True if there are more rows."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_cut: bool

    def html(self, right: tuple[bool, ...]) -> str:
        """Return the grid as an HTML table. right: whether each column is right-aligned, as numbers are."""
        aligns = ["text-align:right" if r else "text-align:left" for r in right]
        head = "".join(_cell("th", _HEAD, align, n) for n, align in zip(self.names, aligns, strict=True))
        lines = (
            "".join(_cell("td", _CELL, align, c) for c, align in zip(row, aligns, strict=True))
            for row in self.rows
        )
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def read_grid(text: str) -> Grid:
    """Parse the output of ``show(truncate=False)``. Raises ValueError for any other string.

    The first line, such as ``+---+------+``, is the rule. Its dashes give the widths of the columns, so cells can contain
    ``|``. The rule is repeated below the names and after the last row; a line after that says that there are more rows.
    """
    rule, *lines = text.rstrip("\n").split("\n")
    if rule not in lines:
        raise ValueError("no rows of show")
    end = len(lines) - 1 - lines[::-1].index(rule)
    is_cut = end + 1 < len(lines)
    widths = [len(dashes) for dashes in rule.split("+")[1:-1]]
    if not any(widths):  # a result without columns
        return Grid((), ((),) * (end - 2), is_cut)
    names, *rows = [_cells(line, widths) for i, line in enumerate(lines[:end]) if i != 1]
    return Grid(names, tuple(rows), is_cut)


def _cells(line: str, widths: list[int]) -> tuple[str, ...]:
    """Return the cells of a line, without their padding."""
    cells, start = [], 1
    for width in widths:
        end, left = start, width
        while left > 0 and end < len(line):
            left -= _width(line[end])
            end += 1
        if left or line[end : end + 1] != "|":
            raise ValueError("a line is not as wide as the rule above it")
        cells.append(line[start:end].rstrip(" "))
        start = end + 1
    return tuple(cells)


def _width(character: str) -> int:
    """Return Spark's width of a character: the number of its UTF-16 units, plus one for wide characters."""
    return (2 if ord(character) > 0xFFFF else 1) + (1 if _WIDE.match(character) else 0)


def _cell(tag: str, style: str, align: str, text: str) -> str:
    return f'<{tag} style="{style};{align}">{escape(text)}</{tag}>'
