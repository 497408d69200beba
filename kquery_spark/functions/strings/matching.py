"""RLIKE, SPLIT and the regular expression functions, on patterns that are constants of the plan."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    COLUMN,
    CallContext,
    Function,
    Kernel,
    accept,
    cast_to,
    register,
)
from kquery_spark.functions.strings.entry import STRING_MATCH_SELECTIVITY
from kquery_spark.functions.strings.patterns import Pattern, translate
from kquery_spark.kernels import substrings
from kquery_spark.kernels.text import if_else
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_replacements
from kquery_spark.types.vector import Data, Vector


def literal_value(vector: Vector, what: str) -> Any:
    """Return the value of an argument; raises Unsupported if it is not a literal."""
    if not vector.is_scalar:
        raise Unsupported(f"{what} must be a literal")
    return vector.data.as_py()


def has_null_constant(args: Sequence[Vector]) -> bool:
    """Return whether an argument is a literal NULL."""
    return any(a.is_scalar and not a.data.is_valid for a in args)


def check_line_ends(pattern: Pattern, data: Data) -> None:
    """Raise Unsupported if a string has a position that RE2 but not Java may match by ``$``: between \\r and \\n."""
    if pattern.splits_line_end and pc.any(pc.ends_with(data, "\r\n")).as_py():
        raise Unsupported(
            "patterns whose last character before $ can be \\r are not supported for strings that end with \\r\\n"
        )


def _rlike(args: Sequence[Vector], context: CallContext) -> Data:
    if has_null_constant(args):
        return pa.scalar(None, t.BOOL)
    pattern = translate(literal_value(args[1], "The pattern of RLIKE"))
    if pattern.literal is not None:
        return substrings.contains(args[0].data, pattern.literal)
    check_line_ends(pattern, args[0].data)
    return pc.match_substring_regex(args[0].data, pattern.text)


_REPLACEMENT = re.compile(r"\\(.)|\$([0-9])(?![0-9])|(.)", re.DOTALL)


def _replacement(source: str, groups: int) -> str:
    """Translate a replacement string of Java (``$1``, ``\\$``) to one of RE2 (``\\1``)."""
    result = ""
    for match in _REPLACEMENT.finditer(source):
        if match[3] == "\\":
            raise Unsupported("a replacement ending with a backslash is an error in Java")
        if match[3] == "$":
            raise Unsupported("a replacement with a named or two-digit group is not supported")
        if match[2]:
            if int(match[2]) > groups:
                raise Unsupported("a replacement refers to a group that does not exist")
            result += "\\" + match[2]
        else:
            character = match[1] or match[3]
            result += "\\\\" if character == "\\" else character
    return result


def _regexp_replace(args: Sequence[Vector], context: CallContext) -> Data:
    if has_null_constant(args):
        return pa.scalar(None, t.STRING)
    if len(args) > 3 and literal_value(args[3], "The position of REGEXP_REPLACE") != 1:
        raise Unsupported("REGEXP_REPLACE from a position other than 1 is not supported")
    pattern = translate(literal_value(args[1], "The pattern of REGEXP_REPLACE"))
    by = _replacement(literal_value(args[2], "The replacement of REGEXP_REPLACE"), pattern.groups)
    if pattern.matches_empty or pattern.anchored_end or (pattern.repeated_group and "\\" in by):
        raise Unsupported(
            "REGEXP_REPLACE with a pattern that can match nothing or ends in $ is not supported"
        )
    if len(by.encode()) > 1:
        # a reference to a group begins with a backslash
        reserve_matches(args[0].data, pattern, len(by.encode()), copies=by.count("\\"))
    return pc.replace_substring_regex(args[0].data, pattern.text, by)


def reserve_matches(strings: Data, pattern: Pattern, replacement_bytes: int, copies: int = 0) -> None:
    """Call ``reserve_replacements`` for the matches of a pattern that cannot match the empty string."""
    reserve_replacements(
        strings, replacement_bytes, lambda: pc.count_substring_regex(strings, pattern.text), copies
    )


def bad_group(function: str, pattern: Pattern, group: int) -> ExecutionError:
    """Return Spark's error for a group that a pattern does not have."""
    return ExecutionError(
        "INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX",
        f"The value of parameter(s) `idx` in `{function}` is invalid: Expects group index between 0 and "
        f"{pattern.groups}, but got {group}.",
    )


def _regexp_extract(args: Sequence[Vector], context: CallContext) -> Data:
    if has_null_constant(args):
        return pa.scalar(None, t.STRING)
    group = literal_value(args[2], "The group of REGEXP_EXTRACT") if len(args) > 2 else 1
    source = literal_value(args[1], "The pattern of REGEXP_EXTRACT")
    plain = translate(source)
    array = args[0].array(context.num_rows)
    if not 0 <= group <= plain.groups:
        check_line_ends(plain, array)
        matches = pc.match_substring_regex(array, plain.text)
        if not pc.any(matches).as_py():  # Spark reads the group only if there is a match
            return pc.if_else(pc.is_valid(array), "", pa.scalar(None, t.STRING))
        raise bad_group("regexp_extract", plain, group)
    if plain.repeated_group or (plain.anchored_end and group == 0):
        raise Unsupported(
            "REGEXP_EXTRACT with a repeated group, or of a whole match that ends in $, is not supported"
        )
    check_line_ends(plain, array)
    captured = pc.struct_field(pc.extract_regex(array, translate(source, group).text), "g")
    return if_else(pc.is_valid(array), pc.fill_null(captured, ""), pa.scalar(None, t.STRING))


def _split(args: Sequence[Vector], context: CallContext) -> Data:
    dtype = context.dtype
    if has_null_constant(args):
        return pa.scalar(None, dtype)
    limit = literal_value(args[2], "The limit of SPLIT") if len(args) > 2 else -1
    pattern = translate(literal_value(args[1], "The pattern of SPLIT"))
    if pattern.matches_empty or pattern.anchored_end or pattern.anchored_start:
        raise Unsupported("SPLIT by a pattern that can match nothing or has ^ or $ is not supported")
    options = {"max_splits": limit - 1} if limit > 0 else {}
    if limit == 1:
        array = args[0].array(context.num_rows)
        whole = pa.ListArray.from_arrays(pa.array(range(len(array) + 1), t.INT), array)
        return if_else(pc.is_valid(array), whole, pa.scalar(None, whole.type)).cast(dtype)
    if pattern.literal is not None:
        return pc.split_pattern(args[0].data, pattern=pattern.literal, **options).cast(dtype)
    return pc.split_pattern_regex(args[0].data, pattern=pattern.text, **options).cast(dtype)


def pattern_function(
    kernel: Callable[..., Data], name: str, arity: tuple[int, int], catalyst: str, **options: Any
) -> Function:
    """Define the entry of a function of a string and a pattern; ``kinds`` are the types of its arguments."""
    result = options.pop("result", t.BOOL)
    kinds = options.pop("kinds", (t.STRING,))
    return Function(
        name,
        kernel,
        accept(result, *kinds),
        catalyst=(catalyst,) if catalyst else (),
        arity=arity,
        coerce=cast_to(*kinds),
        **options,
    )


def check_literal(value: object, what: str) -> None:
    """Raise Unsupported unless an argument is a literal; ``value`` is COLUMN if it is not."""
    if value is COLUMN:
        raise Unsupported(f"{what} must be a literal")


def constants_check(
    kernel: Kernel, name: str, words: Sequence[str], result: pa.DataType = t.STRING
) -> Callable[[Sequence[object]], None]:
    """Build a check that all arguments but the first are literals which the kernel supports.

    The check runs the kernel on one empty string, so that unsupported patterns are known before execution. ``words`` name
    the arguments in messages.
    """

    def check(values: Sequence[object]) -> None:
        for value, word in zip(values[1:], words, strict=False):
            check_literal(value, f"The {word} of {name}")
        if not any(value is None for value in values[1:]):
            row = [Vector(t.STRING, pa.array([""])), *(Vector(t.NULL, pa.scalar(v)) for v in values[1:])]
            with contextlib.suppress(ExecutionError):
                kernel(row, CallContext(result, num_rows=1))

    return check


def _check_rlike(values: Sequence[object]) -> None:
    check_literal(values[1], "The pattern of RLIKE")
    if isinstance(values[1], str):
        translate(values[1])


register(
    pattern_function(
        _rlike,
        "rlike",
        (2, 2),
        "RLike",
        check_values=_check_rlike,
        aliases=("regexp", "regexp_like"),
        selectivity=STRING_MATCH_SELECTIVITY,
        calls=CallForm(columns=(0, 1), upper=True),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    pattern_function(
        _regexp_replace,
        "regexp_replace",
        (3, 4),
        "RegExpReplace",
        check_values=constants_check(
            _regexp_replace, "REGEXP_REPLACE", ("pattern", "replacement", "position")
        ),
        result=t.STRING,
        kinds=(t.STRING, t.STRING, t.STRING, t.INT),
        calls=CallForm(adds=(3, ", 1")),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    pattern_function(
        _regexp_extract,
        "regexp_extract",
        (2, 3),
        "RegExpExtract",
        check_values=constants_check(_regexp_extract, "REGEXP_EXTRACT", ("pattern", "group")),
        result=t.STRING,
        kinds=(t.STRING, t.STRING, t.INT),
        raises=ALWAYS_RAISES,
        calls=CallForm(adds=(2, ", 1")),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    pattern_function(
        _split,
        "split",
        (2, 3),
        "StringSplit",
        check_values=constants_check(_split, "SPLIT", ("pattern", "limit"), pa.list_(t.STRING)),
        result=pa.list_(pa.field("element", t.STRING, False)),
        kinds=(t.STRING, t.STRING, t.INT),
        calls=CallForm(columns=(0, 2), adds=(2, ", -1")),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
