"""Formats numbers in numpy when the layout of a string depends only on the number's sign and its count of digits.

For example, all numbers from 1,000 to 9,999 have the layout "d,ddd", where d stands for a digit (``DIGIT``). Rows with the
same layout are formatted together by copying columns of their digits between the literal characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.kernels import civil
from kquery_spark.kernels.integer_order import runs
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_rows
from kquery_spark.types.vector import Int64s

DIGIT = "\u0661"
"""The placeholder of a digit in a layout. Python's format functions treat it as a digit, and numbers never contain it."""

Cells = npt.NDArray[np.uint8]
_PIECE = re.compile(f"({DIGIT}+)")
_POWERS = 10 ** np.arange(19, dtype=np.int64)


def digit_counts(values: Int64s) -> Int64s:
    """Return the number of decimal digits of non-negative integers; 0 has no digits."""
    return np.searchsorted(_POWERS, values, side="right")


def digit_cells(whole: Int64s, fraction: Int64s, scale: int) -> Cells:
    """Return a row of ASCII digits per number: the whole part with leading zeros, then ``scale`` digits of the fraction."""
    width = int(digit_counts(whole).max(initial=1))
    return np.hstack([civil.digits(whole, width), civil.digits(fraction, scale)])


def filled_layouts(keys: Int64s, layout: Callable[[int], str], cells: Cells, mask: Any) -> pa.Array:
    """Format each row by the layout of its key, whose placeholders take the last digits of the row; NULL where ``mask``.

    ``layout`` is called once for each distinct key, so there should be few of them.
    """
    if not len(keys):
        return pa.array([], t.STRING)
    same = runs(keys)
    strings = []
    for rows in np.split(same.rows, same.starts[1:]):
        template = layout(int(keys[rows[0]]))
        reserve_rows(len(rows), len(template))
        strings.append(civil.fixed_width_strings(_columns(template, cells[rows]), len(rows), None))
    positions = np.empty(len(keys), np.int64)
    positions[same.rows] = np.arange(len(keys))
    return pa.concat_arrays(strings).take(pa.array(positions, mask=mask))


def _columns(template: str, cells: Cells) -> list[Any]:
    """Split a layout into literal bytes and blocks of digits."""
    at = cells.shape[1] - template.count(DIGIT)
    columns: list[Any] = []
    for piece in filter(None, _PIECE.split(template)):
        if piece[0] == DIGIT:
            columns.append(cells[:, at : at + len(piece)])
            at += len(piece)
        else:
            columns.append(piece.encode())
    return columns
