"""Year-month intervals: building them from numbers and strings, converting them back, and extracting their fields.

Spark has three types of them, which differ in their fields: YEAR, MONTH, and YEAR TO MONTH. To the engine they are one type,
so functions that depend on the fields take Spark's name of the type as a literal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.functions.call_form import TWO_COLUMNS
from kquery_spark.functions.core.arguments import joint_mask, numbers
from kquery_spark.functions.datetime.intervals import interval_counts
from kquery_spark.functions.math.overflow import as_intervals
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    CallContext,
    Function,
    Nullability,
    accept,
    cast_to,
    register_internal,
)
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s, Vector

YEAR, MONTH, YEAR_TO_MONTH = "interval year", "interval month", "interval year to month"
"""Spark's names of the types."""
_MONTHS_A_YEAR = 12
# The forms that the engine parses; Spark's parser also accepts longer and more unusual spellings.
_PLAIN_TEXT = r"^(?P<sign>[+-]?)(?P<years>[0-9]{1,9})-(?P<months>[0-9]|0[0-9]|1[01])$"
_PLAIN_NUMBER = r"^[+-]?[0-9]{1,9}$"


def _make(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    mask = joint_mask(args, n)
    years, months = (numbers(a, n).astype(np.int64) for a in args)
    years = years * _MONTHS_A_YEAR
    too_long = ExecutionError(
        "INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION", "Integer overflow in make_ym_interval."
    )
    as_intervals(pa.array(years, mask=mask), t.YEAR_MONTH, too_long)  # to Spark they are an int, too
    return as_intervals(pa.array(years + months, mask=mask), t.YEAR_MONTH, too_long)


def _number(
    of: Callable[[Int64s], Int64s], dtype: pa.DataType
) -> Callable[[Sequence[Vector], CallContext], Data]:
    """Build the kernel that computes a number from the months of an interval."""

    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        return pa.array(of(interval_counts(args[0], n)), mask=joint_mask(args, n)).cast(dtype)

    return run


def _years(months: Int64s) -> Int64s:
    return np.asarray((months - np.fmod(months, _MONTHS_A_YEAR)) // _MONTHS_A_YEAR, np.int64)


def _whole_years(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    months = interval_counts(args[0], n)
    whole = months - np.fmod(months, _MONTHS_A_YEAR)
    return pa.array(whole, mask=joint_mask(args, n)).view(t.YEAR_MONTH)


def _text(args: Sequence[Vector], context: CallContext) -> Data:
    n, fields = context.num_rows, args[1].data.as_py()
    months, mask = interval_counts(args[0], n), joint_mask(args, n)
    if fields == MONTH:
        number = pa.array(months, mask=mask).cast(t.STRING)
    else:
        sign = pc.if_else(pa.array(months < 0), "-", "")
        years = pa.array(np.abs(months) // _MONTHS_A_YEAR, mask=mask).cast(t.STRING)
        number = pc.binary_join_element_wise(sign, years, "")
        if fields == YEAR_TO_MONTH:
            rest = pa.array(np.abs(months) % _MONTHS_A_YEAR).cast(t.STRING)
            number = pc.binary_join_element_wise(number, rest, "-")
    unit = fields.removeprefix("interval ").upper()
    return pc.binary_join_element_wise("INTERVAL '", number, f"' {unit}", "")


def _parse_interval(args: Sequence[Vector], context: CallContext) -> Data:
    """Parse the interval of each string; raises Unsupported for Spark's longer spellings and for malformed strings."""
    fields = args[1].data.as_py()
    strings = args[0].array(context.num_rows)
    pattern = _PLAIN_TEXT if fields == YEAR_TO_MONTH else _PLAIN_NUMBER
    if pc.all(pc.match_substring_regex(strings, pattern)).as_py() is False:
        raise Unsupported(f"strings that are not a plain {fields} are not supported")
    if fields == YEAR_TO_MONTH:
        parts = pc.extract_regex(strings, _PLAIN_TEXT)
        years, rest = (pc.struct_field(parts, [i]).cast(t.LONG) for i in (1, 2))
        total = pc.add(pc.multiply(years, _MONTHS_A_YEAR), rest)
        total = pc.if_else(pc.equal(pc.struct_field(parts, [0]), "-"), pc.negate(total), total)
    else:
        total = pc.replace_substring_regex(strings, r"^\+", "").cast(t.LONG)
        total = pc.multiply(total, _MONTHS_A_YEAR) if fields == YEAR else total
    too_long = ExecutionError(
        "INVALID_INTERVAL_FORMAT.INTERVAL_PARSING", f"A string is not a valid {fields}: integer overflow."
    )
    return as_intervals(total, t.YEAR_MONTH, too_long)


def _field(
    name: str, of: Callable[[Int64s], Int64s], dtype: pa.DataType, catalyst: tuple[str, ...] = ()
) -> Function:
    return Function(name, _number(of, dtype), accept(dtype, t.YEAR_MONTH), catalyst=catalyst)


register_internal(
    Function(
        "make_ym_interval",
        _make,
        accept(t.YEAR_MONTH, t.INT, t.INT),
        catalyst=("MakeYMInterval",),
        makes_months=True,
        arity=(2, 2),
        raises=ALWAYS_RAISES,
        coerce=cast_to(t.INT),
        calls=TWO_COLUMNS,
    ),
    _field("interval_total_months", lambda months: months, t.INT),
    _field("interval_years", _years, t.INT, ("ExtractANSIIntervalYears",)),
    _field("interval_months", lambda m: np.fmod(m, _MONTHS_A_YEAR), t.BYTE, ("ExtractANSIIntervalMonths",)),
    # what a cast to INTERVAL YEAR leaves
    Function("interval_whole_years", _whole_years, accept(t.YEAR_MONTH, t.YEAR_MONTH)),
    Function("interval_text", _text, accept(t.STRING, t.YEAR_MONTH, t.STRING), arity=(2, 2)),
    Function(
        "interval_of_text",
        _parse_interval,
        accept(t.YEAR_MONTH, t.STRING, t.STRING),
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        raises=ALWAYS_RAISES,
    ),
)
