"""REGEXP_EXTRACT_ALL and REGEXP_INSTR: all matches of a pattern, and the position of the first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.core.arguments import joint_mask
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import ALWAYS_RAISES, CallContext, VersionChange, register
from kquery_spark.functions.strings.matching import (
    bad_group,
    check_line_ends,
    check_literal,
    constants_check,
    has_null_constant,
    literal_value,
    pattern_function,
    reserve_matches,
)
from kquery_spark.functions.strings.patterns import Pattern, translate
from kquery_spark.kernels.text import Bytes, layout
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s, Vector

_MARKS = [*range(1, 9), *range(14, 32), 127, 0]  # control characters that rarely occur in strings
_MAX_REPLACED_GROUP = 9  # in replacement strings of RE2, a group number has one digit


def _extract_all(args: Sequence[Vector], context: CallContext) -> Data:
    """Return a group of every match: replaces each match by the group between two marks, and splits the string there.

    The mark is a control character that does not occur in the strings. For the pattern ``a(b)`` and the mark ``|``, the
    string ``xabyab`` becomes ``x|b|y|b|``; the second, fourth, ... pieces are the groups.
    """
    n = context.num_rows
    if has_null_constant(args):
        return pa.nulls(n, context.dtype)
    group = literal_value(args[2], "The group of REGEXP_EXTRACT_ALL") if len(args) > 2 else 1
    pattern = translate(literal_value(args[1], "The pattern of REGEXP_EXTRACT_ALL"))
    array = args[0].array(n)
    if not 0 <= group <= pattern.groups:
        return _without_group(array, pattern, group)
    if group > _MAX_REPLACED_GROUP:
        raise Unsupported("REGEXP_EXTRACT_ALL of a group with a number of two digits is not supported")
    if pattern.matches_empty or pattern.anchored_end or (pattern.repeated_group and group):
        raise Unsupported(
            "REGEXP_EXTRACT_ALL with a pattern that can match nothing, ends in $ or repeats a group is not supported"
        )
    mark = _unused_mark(array)
    reserve_matches(array, pattern, 4 + 2 * len(mark.encode()))
    marked = pc.replace_substring_regex(array, pattern.text, f"{mark}\\{group}{mark}")
    return _second_pieces(pc.split_pattern(marked, mark))


def _without_group(array: pa.Array, pattern: Pattern, group: int) -> pa.Array:
    """Handle a group that the pattern does not have: an error only if a string matches, because Spark checks it then."""
    check_line_ends(pattern, array)
    if pc.any(pc.match_substring_regex(array, pattern.text)).as_py():
        raise bad_group("regexp_extract_all", pattern, group)
    offsets = pa.array(np.zeros(len(array) + 1, np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array([], t.STRING), mask=array.is_null())


def _unused_mark(array: pa.Array) -> str:
    offsets, raw = layout(array)
    seen = np.bincount(raw[offsets[0] : offsets[-1]], minlength=256)
    for mark in _MARKS:
        if not seen[mark]:
            return chr(mark)
    raise Unsupported("REGEXP_EXTRACT_ALL of strings with every control character is not supported")


def _second_pieces(lists: pa.ListArray) -> pa.ListArray:
    """Return the second element, the fourth and so on of each list; lists have an odd number of elements, or are NULL."""
    sizes = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    ordinals = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
    offsets = np.zeros(len(lists) + 1, np.int32)
    np.cumsum(sizes // 2, out=offsets[1:])
    values = lists.flatten().take(pa.array(np.flatnonzero(ordinals & 1)))
    mask = lists.is_null() if lists.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=mask)


def _instr(args: Sequence[Vector], context: CallContext) -> Data:
    """The 1-based character position of the first match; 0 if there is none."""
    n = context.num_rows
    if has_null_constant(args):
        return pa.nulls(n, t.INT)
    pattern = translate(literal_value(args[1], "The pattern of REGEXP_INSTR"))
    array = args[0].array(n)
    check_line_ends(pattern, array)
    match_starts = pc.find_substring_regex(array, pattern.text).fill_null(-1).to_numpy(zero_copy_only=False)
    offsets, raw = layout(array)
    characters_before = _characters_before(raw[offsets[0] : offsets[-1]])
    text_starts = offsets[:-1] - offsets[0]
    ordinals = (
        characters_before[text_starts + np.maximum(match_starts, 0)] - characters_before[text_starts] + 1
    )
    return pa.array(np.where(match_starts < 0, 0, ordinals).astype(np.int32), mask=joint_mask(args, n))


def _characters_before(raw: Bytes) -> Int64s:
    """Return the number of characters that begin before each byte, and before the end."""
    counts = np.zeros(len(raw) + 1, np.int64)
    np.cumsum((raw & 0xC0) != 0x80, out=counts[1:])
    return counts


def _has_group(source: object, group: object) -> bool:
    if not isinstance(source, str) or not isinstance(group, int):
        return source is None or group is None
    return 0 <= group <= translate(source).groups


def _check_instr(values: Sequence[object]) -> None:
    check_literal(values[1], "The pattern of REGEXP_INSTR")
    if isinstance(values[1], str):
        translate(values[1])


register(
    pattern_function(
        _extract_all,
        "regexp_extract_all",
        (2, 3),
        "RegExpExtractAll",
        check_values=constants_check(
            _extract_all, "REGEXP_EXTRACT_ALL", ("pattern", "group"), pa.list_(t.STRING)
        ),
        result=pa.list_(t.STRING),
        kinds=(t.STRING, t.STRING, t.INT),
        raises=ALWAYS_RAISES,
        safe_for=lambda _, values, mode: _has_group(values[1], values[2] if len(values) > 2 else 1),
        calls=CallForm(columns=(0, 1), adds=(2, ", 1")),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    # Spark uses the third argument, a group, only to return NULL if it is NULL
    pattern_function(
        _instr,
        "regexp_instr",
        (2, 3),
        "RegExpInStr",
        check_values=_check_instr,
        result=t.INT,
        kinds=(t.STRING, t.STRING, t.INT),
        calls=CallForm(columns=(0, 1), adds=(2, ", 0")),
        changes=(
            VersionChange(
                "counts a character past 16 bits as two", patches=((4, 0, 5), (4, 1, 4), (4, 2, 1))
            ),
        ),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
