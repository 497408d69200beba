"""UPPER, LOWER and INITCAP by ICU's full case mapping (``spark.sql.icu.caseMappings.enabled``, the default)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.functions.core.distinct import each_distinct, per_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    CallContext,
    Function,
    Simplification,
    VersionChange,
    accept,
    cast_to,
    register,
)
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

# Letters of Unicode 15 to 17, which ICU maps but an older Python does not: (first capital, first small, number of letters).
_NEW_LETTERS = (
    (0x1C89, 0x1C8A, 1),
    (0xA7CB, 0x264, 1),
    (0xA7CC, 0xA7CD, 1),
    (0xA7CE, 0xA7CF, 1),
    (0xA7D2, 0xA7D3, 1),
    (0xA7D4, 0xA7D5, 1),
    (0xA7DA, 0xA7DB, 1),
    (0xA7DC, 0x19B, 1),
    (0x10D50, 0x10D70, 22),
    (0x16EA0, 0x16EBB, 25),
)
_TO_SMALL = {a + i: b + i for a, b, n in _NEW_LETTERS for i in range(n)}
_TO_CAPITAL = {b: a for a, b in _TO_SMALL.items()}
_UNSETTLED = frozenset(map(chr, (*_TO_SMALL, *_TO_CAPITAL, 0x295)))


def _to_upper(value: str) -> str:
    return value.upper().translate(_TO_CAPITAL)


def _to_lower(value: str) -> str:
    if "Σ" in value and not _UNSETTLED.isdisjoint(value):
        raise Unsupported("a capital sigma beside letters newer than Unicode 14 has no settled small form")
    return value.lower().translate(_TO_SMALL)


def _map_case(
    ascii_kernel: Any, evaluate: Callable[[str], str], args: Sequence[Vector], context: CallContext
) -> Data:
    """Map ASCII strings at once with Arrow, and each other distinct string with Python's full case mapping."""
    data = args[0].data
    plain = pc.string_is_ascii(data)
    if pc.all(plain).as_py() is not False:
        return ascii_kernel(data)
    odd = pc.fill_null(pc.invert(plain), False)
    rest = data.filter(odd)
    inner = CallContext(t.STRING, context.mode, context.tz, len(rest))
    mapped = per_distinct(evaluate, [Vector(t.STRING, rest)], inner)
    return pc.replace_with_mask(ascii_kernel(pc.if_else(odd, "", data)), odd, mapped)


def lower(data: Data, context: CallContext) -> Data:
    """LOWER of a string array."""
    return _map_case(pc.ascii_lower, _to_lower, [Vector(t.STRING, data)], context)


def _title(value: str) -> str:
    """Convert each word between spaces: its first character to title case, the others to lower case."""
    return " ".join(word[:1].title().translate(_TO_CAPITAL) + _lower_tail(word) for word in value.split(" "))


def _lower_tail(word: str) -> str:
    # lower() needs the first character, too, because a final sigma depends on the characters before it
    lowered = _to_lower(word)
    return lowered[len(word[:1].lower()) :]


_RULE = accept(t.STRING, t.STRING)

register(
    Function(
        "upper",
        partial(_map_case, pc.ascii_upper, _to_upper),
        _RULE,
        catalyst=("Upper",),
        simplification=Simplification.CASE_CHANGE,
        coerce=cast_to(t.STRING),
        aliases=("ucase",),
        invalid_utf8=InvalidUtf8.VALIDATED,
    ),
    Function(
        "lower",
        partial(_map_case, pc.ascii_lower, _to_lower),
        _RULE,
        catalyst=("Lower",),
        simplification=Simplification.CASE_CHANGE,
        coerce=cast_to(t.STRING),
        aliases=("lcase",),
        invalid_utf8=InvalidUtf8.VALIDATED,
    ),
    Function(
        "initcap",
        each_distinct(_title),
        _RULE,
        catalyst=("InitCap",),
        coerce=cast_to(t.STRING),
        changes=(VersionChange("maps each first character to one character", since=(4, 0)),),
        invalid_utf8=InvalidUtf8.VALIDATED,
    ),
)
