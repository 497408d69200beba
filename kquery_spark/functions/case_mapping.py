"""UPPER, LOWER and INITCAP by ICU's full case mapping (``spark.sql.icu.caseMappings.enabled``, the default)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow.compute as pc

from kquery_spark.functions.distinct import per_distinct
from kquery_spark.functions.registry import CallContext, Function, accept, cast_to, register
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector


def _mapped(ascii_kernel: Any, one: Callable[[str], str], args: Sequence[Vector], context: CallContext) -> Data:
    """ASCII strings at once by Arrow, the others one distinct value at a time by Python's full mapping."""
    data = args[0].data
    plain = pc.string_is_ascii(data)
    if pc.all(plain).as_py() is not False:
        return ascii_kernel(data)
    odd = pc.fill_null(pc.invert(plain), False)
    rest = data.filter(odd)
    inner = CallContext(t.STRING, context.mode, context.tz, len(rest))
    mapped = per_distinct(one, [Vector(t.STRING, rest)], inner)
    return pc.replace_with_mask(ascii_kernel(pc.if_else(odd, "", data)), odd, mapped)


def _upper(args: Sequence[Vector], context: CallContext) -> Data:
    return _mapped(pc.ascii_upper, str.upper, args, context)


def lower(data: Data, context: CallContext) -> Data:
    """LOWER of a string array."""
    return _mapped(pc.ascii_lower, str.lower, [Vector(t.STRING, data)], context)


def _lower(args: Sequence[Vector], context: CallContext) -> Data:
    return _mapped(pc.ascii_lower, str.lower, args, context)


def _title(value: str) -> str:
    """Each word between spaces with its first character in title case and the rest in lower case."""
    return " ".join(word[:1].title() + _rest(word) for word in value.split(" "))


def _rest(word: str) -> str:
    # lower() must see the first character too: a final sigma depends on what stands before it
    lowered = word.lower()
    return lowered[len(word[:1].lower()) :]


def _initcap(args: Sequence[Vector], context: CallContext) -> Data:
    return per_distinct(_title, args, context)


_RULE = accept(t.STRING, t.STRING)

register(
    Function("upper", _upper, _RULE, catalyst=("Upper",), coerce=cast_to(t.STRING), aliases=("ucase",)),
    Function("lower", _lower, _RULE, catalyst=("Lower",), coerce=cast_to(t.STRING), aliases=("lcase",)),
    Function("initcap", _initcap, _RULE, catalyst=("InitCap",), coerce=cast_to(t.STRING)),
)
