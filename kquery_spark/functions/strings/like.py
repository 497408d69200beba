"""LIKE and ILIKE.

A constant pattern runs as an Arrow kernel on the whole column: a comparison, a search, or an RE2 expression. If the patterns
are in a column, each distinct pair of a value and a pattern is matched in Python.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    CallContext,
    EvalMode,
    VersionChange,
    register,
)
from kquery_spark.functions.strings.case_mapping import lower
from kquery_spark.functions.strings.entry import STRING_MATCH_SELECTIVITY
from kquery_spark.functions.strings.matching import check_literal, pattern_function
from kquery_spark.kernels import substrings
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector


def _escape_error(pattern: str, kind: str, misuse: str) -> ExecutionError:
    return ExecutionError(
        f"INVALID_FORMAT.{kind}",
        f"The format is invalid: {pattern!r}. The escape character is not allowed to {misuse}.",
    )


@functools.lru_cache(maxsize=512)
def _like_tokens(pattern: str, escape: str) -> tuple[str | None, ...]:
    """Split a LIKE pattern into tokens: None for ``%``, ``""`` for ``_``, and strings for the characters between them.

    Example: ``a\\_b%_`` becomes ``("a_b", None, "")``. Raises Spark's error for a malformed escape.
    """
    tokens: list[str | None] = []
    literal = ""

    def flush() -> None:
        nonlocal literal
        if literal:
            tokens.append(literal)
            literal = ""

    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == escape:
            if at + 1 == len(pattern):
                raise _escape_error(pattern, "ESC_AT_THE_END", "end with")
            following = pattern[at + 1]
            if following not in ("_", "%", escape):
                raise _escape_error(pattern, "ESC_IN_THE_MIDDLE", f"precede {following!r}")
            literal += following
            at += 2
            continue
        if character in "%_":
            flush()
            tokens.append(None if character == "%" else "")
        else:
            literal += character
        at += 1
    flush()
    return tuple(tokens)


def _like_regex(tokens: tuple[str | None, ...]) -> str:
    parts = [".*" if p is None else "." if p == "" else _escape_for_re2(p) for p in tokens]
    return rf"(?s)\A{''.join(parts)}\z"


@functools.lru_cache(maxsize=512)
def _like_segments(pattern: str, escape: str) -> tuple[tuple[re.Pattern[str], int], ...]:
    """Return the segments between the ``%`` of a LIKE pattern with their widths in characters.

    A segment has no repetitions, so matching it never backtracks.
    """
    segments: list[list[str | None]] = [[]]
    for token in _like_tokens(pattern, escape):
        if token is None:
            segments.append([])
        else:
            segments[-1] += [None] if token == "" else [re.escape(c) for c in token]
    return tuple(
        (re.compile("".join("." if c is None else c for c in segment), re.DOTALL), len(segment))
        for segment in segments
    )


def _like_string(value: str, pattern: str, escape: str) -> bool:
    """Match one string with a LIKE pattern in linear passes.

    The first and the last segment are anchored at the ends. Each segment between them takes its leftmost match, which leaves
    the most room for the following ones. A single regular expression for ``%a%a%a%b`` would try all combinations of
    positions.
    """
    (first, _), *middle = _like_segments(pattern, escape)
    if not middle:
        return first.fullmatch(value) is not None
    last, width = middle.pop()
    match = first.match(value)
    for segment, _ in middle:
        if match is None:
            return False
        match = segment.search(value, match.end())
    start = len(value) - width
    return match is not None and start >= match.end() and last.match(value, start) is not None


def _escape_for_re2(text: str) -> str:
    return "".join("\\" + c if c in r"\.[]{}()*+?^$|" else c for c in text)


def _like_constant(data: Data, pattern: str, escape: str) -> Data:
    """Match a column with one pattern. The patterns of the cases below need no regular expression."""
    tokens = _like_tokens(pattern, escape)
    match tokens:
        case ():
            return pc.equal(data, "")
        case (None,):
            return pc.if_else(pc.is_valid(data), True, pa.scalar(None, t.BOOL))
        case (str(text),) if text:
            return pc.equal(data, text)
        case (str(text), None) if text:
            return pc.starts_with(data, text)
        case (None, str(text)) if text:
            return pc.ends_with(data, text)
        case (None, str(text), None) if text:
            return substrings.contains(data, text)
    literals = [text for text in tokens if text]
    if "" not in tokens and len(literals) > 1:
        found = substrings.contains_in_order(data, literals, tokens[0] is not None, tokens[-1] is not None)
        if found is not None:
            return found
    return substrings.matches(data, _like_regex(tokens), literals)


def _like(args: Sequence[Vector], context: CallContext) -> Data:
    value, pattern = args[:2]
    escape = args[2].data.as_py() if len(args) > 2 else "\\"
    if pattern.is_scalar and pattern.data.is_valid:
        array = value.array(context.num_rows)
        if array.null_count == len(array):
            return pa.nulls(len(array), t.BOOL)
        return _like_constant(array, pattern.data.as_py(), escape)

    return per_distinct(lambda string, form: _like_string(string, form, escape), args[:2], context)


def _ilike(args: Sequence[Vector], context: CallContext) -> Data:
    value, pattern, *escape = args
    lower_value = Vector(t.STRING, lower(value.array(context.num_rows), context))
    if not pattern.is_scalar:
        pattern = Vector(t.STRING, lower(pattern.array(context.num_rows), context))
    elif pattern.data.is_valid:  # stays a scalar, so that it is matched as a constant pattern
        pattern = Vector(t.STRING, lower(pattern.array(1), context)[0])
    return _like([lower_value, pattern, *escape], context)


def _check_escape(values: Sequence[object]) -> None:
    if len(values) > 2:
        check_literal(values[2], "The escape character of LIKE")


def _is_valid_like_literal(types: Sequence[pa.DataType], values: Sequence[object], mode: EvalMode) -> bool:
    """Return whether a LIKE pattern is a literal (or NULL) with valid escapes, so that LIKE cannot raise."""
    pattern, escape = values[1], values[2] if len(values) > 2 else "\\"
    if not isinstance(pattern, str) or not isinstance(escape, str):
        return pattern is None
    try:
        _like_tokens(pattern, escape)
    except ExecutionError:
        return False
    return True


def _may_have_wide_character(_: Sequence[pa.DataType], values: Sequence[object]) -> bool:
    """Return whether a LIKE pattern is not a literal, or has a character that is a surrogate pair in UTF-16."""
    return values[1] is not None and not (
        isinstance(values[1], str) and max(values[1], default="") <= "\uffff"
    )


_LIKE: dict[str, Any] = {
    "raises": ALWAYS_RAISES,
    "safe_for": _is_valid_like_literal,
    "check_values": _check_escape,
    "changes": (
        VersionChange(
            "treats a character above U+FFFF in a LIKE pattern as two",
            _may_have_wide_character,
            since=(4, 2),
            patches=((3, 5, 9), (4, 0, 4), (4, 1, 2)),
        ),
    ),
}

register(
    # Catalyst's Like has a field escapeChar. The importer passes it as a third argument, a literal, unless it is '\'.
    pattern_function(
        _like,
        "like",
        (2, 3),
        "Like",
        **_LIKE,
        selectivity=STRING_MATCH_SELECTIVITY,
        calls=CallForm(columns=(0, 1), shape=(2, "{0} LIKE {1}")),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    # Catalyst turns ILIKE into Like(Lower(s), lower(pattern))
    pattern_function(
        _ilike,
        "ilike",
        (2, 3),
        "ILike",
        **_LIKE,
        calls=CallForm(columns=(0, 1), shape=(3, "ilike({0}, {1})")),
        invalid_utf8=InvalidUtf8.VALIDATED,
    ),
)
