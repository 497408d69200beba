"""Functions that search strings, and replace parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.functions.call_form import TWO_COLUMNS, CallForm
from kquery_spark.functions.core.distinct import each_distinct, per_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8, RowRule
from kquery_spark.functions.registry import (
    COLUMN,
    CallContext,
    Function,
    Kernel,
    Nullability,
    VersionChange,
    register,
)
from kquery_spark.functions.strings.entry import STRING_MATCH_SELECTIVITY, string_function
from kquery_spark.kernels import substrings, utf8_string
from kquery_spark.kernels.edit_distance import edit_distance
from kquery_spark.kernels.text import Characters, null_mask, replace_all
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector


def _find(array: pa.Array, needle: str, mask: Any) -> pa.Array:
    """The 1-based character position of the first occurrence; 0 if there is none."""
    byte_offsets = pc.find_substring(array, needle)
    at = np.asarray(byte_offsets.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
    characters = Characters(array)
    before = characters.characters_before(characters.offsets[:-1] + np.maximum(at, 0))
    return pa.array(np.where(at < 0, 0, before + 1).astype(np.int32), mask=mask)


def _instr(args: Sequence[Vector], context: CallContext) -> Data:
    text, needle = args
    if needle.is_scalar and needle.data.is_valid:
        array = text.array(context.num_rows)
        return _find(array, needle.data.as_py(), null_mask(array))
    return per_distinct(lambda s, sub: s.find(sub) + 1, args, context)


def _locate(args: Sequence[Vector], context: CallContext) -> Data:
    """``locate(sub, str, start)``: 0 if the start is NULL or less than 1."""
    needle, text = args[0], args[1]
    if len(args) == 2:
        return _instr([text, needle], context)
    start = args[2]
    if start.is_scalar and start.data.is_valid and start.data.as_py() == 1:
        return _instr([text, needle], context)

    def evaluate(sub: str, value: str, begin: int) -> int:
        if begin < 1:
            return 0
        if not sub:
            return 1  # UTF8String.indexOf returns 0 for the empty string, whatever the start
        return value.find(sub, begin - 1) + 1

    positions = per_distinct(evaluate, args, context)
    if start.null_count:
        return pc.if_else(pc.is_null(start.array(context.num_rows)), pa.scalar(0, t.INT), positions)
    return positions


def _replace(args: Sequence[Vector], context: CallContext) -> Data:
    text, search = args[0], args[1]
    by = args[2] if len(args) > 2 else Vector(t.STRING, pa.scalar(""))
    if search.is_scalar and by.is_scalar and search.data.is_valid and by.data.is_valid:
        if not search.data.as_py():
            return text.data
        old, new = search.data.as_py(), by.data.as_py()
        return replace_all(text.data, old, new)
    return per_distinct(lambda s, old, new: s.replace(old, new) if old else s, [text, search, by], context)


def _translate(value: str, source: str, target: str) -> str:
    table: dict[int, str | None] = {}
    for i, character in enumerate(source):
        table.setdefault(ord(character), target[i] if i < len(target) else None)
    return value.translate(table)


def _contains(args: Sequence[Vector], context: CallContext) -> Data:
    text, needle = args
    if needle.is_scalar and needle.data.is_valid:
        return substrings.contains(text.data, needle.data.as_py())
    return per_distinct(lambda s, sub: sub in s, args, context)


def _starts_with(args: Sequence[Vector], context: CallContext) -> Data:
    text, needle = args
    if needle.is_scalar and needle.data.is_valid:
        return pc.starts_with(text.data, needle.data.as_py())
    return per_distinct(lambda s, sub: s.startswith(sub), args, context)


def _ends_with(args: Sequence[Vector], context: CallContext) -> Data:
    text, needle = args
    if needle.is_scalar and needle.data.is_valid:
        return pc.ends_with(text.data, needle.data.as_py())
    return per_distinct(lambda s, sub: s.endswith(sub), args, context)


def _substring_index(value: str, delimiter: str, count: int) -> str:
    if not delimiter or count == 0:
        return ""
    if count > 0:
        offset = -1
        for _ in range(min(count, len(value) + 1)):
            offset = value.find(delimiter, offset + 1)
            if offset < 0:
                return value
        return value[:offset]
    offset = len(value) - len(delimiter) + 1
    for _ in range(min(-count, len(value) + 1)):
        if offset - 1 < 0:
            return value
        offset = value.rfind(delimiter, 0, offset - 1 + len(delimiter))
        if offset < 0:
            return value
    return value[offset + len(delimiter) :]


def _levenshtein(left: str, right: str) -> int:
    return edit_distance([*map(ord, left)], [*map(ord, right)])


def _find_in_set(value: str, members: str) -> int:
    if "," in value:
        return 0
    parts = members.split(",")
    return parts.index(value) + 1 if value in parts else 0


_S, _I = t.STRING, t.INT


def _test(name: str, kernel: Kernel, catalyst: str, invalid_utf8: RowRule) -> Function:
    """Build the entry of a predicate such as CONTAINS, which tests the position of one string in another."""
    return string_function(
        name,
        kernel,
        t.BOOL,
        catalyst,
        (_S, _S),
        selectivity=STRING_MATCH_SELECTIVITY,
        calls=TWO_COLUMNS,
        invalid_utf8=invalid_utf8,
    )


def _may_put_in_nul(types: Sequence[pa.DataType], values: Sequence[object]) -> bool:
    replacements = values[2]
    return replacements is COLUMN or "\0" in str(replacements or "")


_NUL_CHANGE = VersionChange(
    "drops the characters that translate is to replace by the character NUL", _may_put_in_nul
)

register(
    string_function("instr", _instr, _I, "StringInstr", (_S, _S), invalid_utf8=utf8_string.instr),
    string_function(
        "locate",
        _locate,
        _I,
        "StringLocate",
        (_S, _S, _I),
        (2, 3),
        nullable=Nullability.FIRST_TWO_ARGUMENTS,
        evaluates=(2, 0, 1),
        aliases=("position",),
        calls=CallForm(columns=(1,), adds=(2, ", 1")),
        alias_calls=(("position", CallForm(columns=(0, 1, 2), adds=(2, ", 1"))),),
        invalid_utf8=utf8_string.locate,
    ),
    string_function(
        "replace",
        _replace,
        _S,
        "StringReplace",
        (_S, _S, _S),
        (2, 3),
        calls=CallForm(columns=(0, 1, 2), adds=(2, ", ")),
        invalid_utf8=utf8_string.replace,
    ),
    string_function(
        "translate",
        each_distinct(_translate),
        _S,
        "StringTranslate",
        (_S, _S, _S),
        changes=(_NUL_CHANGE,),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    _test("contains", _contains, "Contains", invalid_utf8=bytes.__contains__),
    _test("startswith", _starts_with, "StartsWith", invalid_utf8=bytes.startswith),
    _test("endswith", _ends_with, "EndsWith", invalid_utf8=bytes.endswith),
    string_function(
        "substring_index",
        each_distinct(_substring_index),
        _S,
        "SubstringIndex",
        (_S, _S, _I),
        invalid_utf8=utf8_string.substring_index,
    ),
    string_function(
        "find_in_set",
        each_distinct(_find_in_set),
        _I,
        "FindInSet",
        (_S, _S),
        calls=TWO_COLUMNS,
        invalid_utf8=utf8_string.find_in_set,
    ),
    string_function(
        "levenshtein",
        each_distinct(_levenshtein),
        _I,
        "Levenshtein",
        (_S, _S),
        calls=TWO_COLUMNS,
        invalid_utf8=utf8_string.levenshtein,
    ),
)
