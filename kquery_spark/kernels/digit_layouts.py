"""Formatted numbers in numpy: strings whose layout depends only on a number's sign and how many digits it has."""

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
"""Stands for a digit in a layout: a digit to Python, but not one that numbers are written with."""

Cells = npt.NDArray[np.uint8]
_PIECE = re.compile(f"({DIGIT}+)")
_POWERS = 10 ** np.arange(19, dtype=np.int64)


def digit_counts(values: Int64s) -> Int64s:
    """How many decimal digits non-negative integers have; 0 has none."""
    return np.searchsorted(_POWERS, values, side="right")


def digit_cells(whole: Int64s, fraction: Int64s, scale: int) -> Cells:
    """The ASCII digits of numbers, a row each: of the whole part, with leading zeros, then ``scale`` of the fraction."""
    width = int(digit_counts(whole).max(initial=1))
    return np.hstack([civil.digits(whole, width), civil.digits(fraction, scale)])


def filled_layouts(keys: Int64s, layout: Callable[[int], str], cells: Cells, mask: Any) -> pa.Array:
    """A text for each row: the layout of its key with the last of the row's ``cells`` for its digits, NULL where ``mask``.

    ``layout`` is called once for each distinct key, so there should be few of them.
    """
    if not len(keys):
        return pa.array([], t.STRING)
    same = runs(keys)
    strings = []
    for rows in np.split(same.rows, same.starts[1:]):
        text = layout(int(keys[rows[0]]))
        reserve_rows(len(rows), len(text))
        strings.append(civil.fixed_text(_columns(text, cells[rows]), len(rows), None))
    positions = np.empty(len(keys), np.int64)
    positions[same.rows] = np.arange(len(keys))
    return pa.concat_arrays(strings).take(pa.array(positions, mask=mask))


def _columns(text: str, cells: Cells) -> list[Any]:
    """The pieces of a layout: bytes of its own, and cells of its digits."""
    at = cells.shape[1] - text.count(DIGIT)
    columns: list[Any] = []
    for piece in filter(None, _PIECE.split(text)):
        if piece[0] == DIGIT:
            columns.append(cells[:, at : at + len(piece)])
            at += len(piece)
        else:
            columns.append(piece.encode())
    return columns
