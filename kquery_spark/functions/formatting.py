"""DATE_FORMAT and FROM_UNIXTIME for patterns of numeric fields and plain separators."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.date_fields import coerce_stamp, is_stamp, local
from kquery_spark.functions.registry import COLUMN, CallContext, Function, accept, cast_to, register
from kquery_spark.functions.strings import joint_mask, numbers
from kquery_spark.kernels import civil, zones
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS
from kquery_spark.types.vector import Data, Int64s, Vector

_WIDTHS = {"yyyy": 4, "MM": 2, "dd": 2, "HH": 2, "mm": 2, "ss": 2, "SSS": 3, "SSSSSS": 6}
_PIECE = re.compile(r"'([^']+)'|([A-Za-z])\2*|([^A-Za-z'\[\]#{}]+)")


def _pieces(pattern: str) -> list[str | bytes]:
    """Field letters (str) and literal text (bytes); Unsupported for anything else."""
    pieces: list[str | bytes] = []
    at = 0
    while at < len(pattern):
        match = _PIECE.match(pattern, at)
        if match is None or not _is_known(match):
            raise Unsupported(f"The date format {pattern!r} is not supported.")
        literal = match[1] or match[3]
        pieces.append(literal.encode() if literal else match[0])
        at = match.end()
    neighbours = itertools.pairwise(pieces)
    if any(isinstance(a, str) and isinstance(b, str) and "S" in a + b for a, b in neighbours):
        raise Unsupported(f"The date format {pattern!r} is not supported.")
    return pieces


def _is_known(piece: re.Match[str]) -> bool:
    is_field = piece[2] is not None
    return piece[0] in _WIDTHS if is_field else piece[0].isascii()


def _render(wall: Int64s, pattern: str, mask: Any) -> pa.Array:
    days, micros = wall // DAY_MICROS, wall % DAY_MICROS
    year, month, day = civil.split(days)
    if mask is not None:
        year = np.where(mask, 1970, year)
    if ((year < 1) | (year > 9999)).any():
        raise Unsupported("Dates outside the years 1 to 9999 are not formatted by the engine.")
    second = micros // 1_000_000
    fields = {
        "yyyy": year,
        "MM": month,
        "dd": day,
        "HH": second // 3600,
        "mm": second // 60 % 60,
        "ss": second % 60,
        "SSS": micros % 1_000_000 // 1000,
        "SSSSSS": micros % 1_000_000,
    }
    columns = [p if isinstance(p, bytes) else civil.digits(fields[p], _WIDTHS[p]) for p in _pieces(pattern)]
    return civil.fixed_text(columns, len(wall), mask)


def _date_format(args: Sequence[Vector], context: CallContext) -> Data:
    if not args[1].data.is_valid:
        return pa.nulls(context.num_rows, t.STRING)
    wall, mask = local(args[0], context)
    return _render(wall, args[1].data.as_py(), mask)


def _from_unixtime(args: Sequence[Vector], context: CallContext) -> Data:
    pattern = args[1].data.as_py() if len(args) > 1 else "yyyy-MM-dd HH:mm:ss"
    if pattern is None:
        return pa.nulls(context.num_rows, t.STRING)
    instants = numbers(args[0], context.num_rows) * 1_000_000
    return _render(zones.to_local(instants, context.tz), pattern, joint_mask(args[:1], context.num_rows))


def _check(values: Sequence[object]) -> None:
    if len(values) < 2:
        return
    if values[1] is COLUMN:
        raise Unsupported("The date format must be a literal.")
    if isinstance(values[1], str) and not values[1]:
        raise Unsupported("An empty date format is not supported.")
    if isinstance(values[1], str):
        _pieces(values[1])


register(
    # children (timestamp, format literal); a date arrives below a cast; timeZoneId is the Call's tz
    Function(
        "date_format",
        _date_format,
        accept(t.STRING, is_stamp, t.STRING),
        catalyst=("DateFormatClass",),
        arity=(2, 2),
        coerce=lambda types: [*coerce_stamp(types[:1]), t.STRING],
        check_values=_check,
    ),
    # children (bigint seconds, format literal); timeZoneId is the Call's tz
    Function(
        "from_unixtime",
        _from_unixtime,
        accept(t.STRING, t.LONG, t.STRING),
        catalyst=("FromUnixTime",),
        calls=CallForm(adds=(1, ", yyyy-MM-dd HH:mm:ss")),
        arity=(1, 2),
        nullable="always",
        evaluates=(0, 1),
        coerce=cast_to(t.LONG, t.STRING),
        check_values=_check,
    ),
)
