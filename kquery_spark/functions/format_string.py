"""FORMAT_STRING for formats of the common directives, each rendered as a column of its own and then joined."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.casts.floats import java_text
from kquery_spark.functions.distinct import per_distinct
from kquery_spark.functions.registry import COLUMN, CallContext, Function, depends_on_values, register
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

_DIRECTIVE = re.compile(r"%(?:([1-9][0-9]?)\$)?([-+ 0,]*)([1-9][0-9]{0,3})?(?:\.([0-9]{1,2}))?([a-zA-Z%])")
_EXACT = Context(prec=800)
_CERTAIN_DIGITS = 15  # significant digits of a double on which all releases of Java agree
_DEFAULT_DECIMALS = 6


@dataclass(frozen=True)
class Directive:
    """One directive of a format. argument: its position. precision: characters or decimals, None where it says none."""

    argument: int
    flags: str
    width: int
    precision: int | None
    conversion: str

    def padded(self, text: str) -> str:
        """The text in its width, which counts Java's characters of 16 bits, filled with spaces."""
        width = self.width if text.isascii() else self.width - sum(c > "\uffff" for c in text)
        return text.ljust(width) if "-" in self.flags else text.rjust(width)

    def cut(self, text: str) -> str:
        """The first characters of a text, where the format says how many."""
        if self.precision is None or len(text) < self.precision:
            return text
        if not text.isascii() and max(text) > "\uffff":
            raise Unsupported("FORMAT_STRING does not cut texts with characters beyond 16 bits.")
        return text[: self.precision]

    def signed(self, digits: str, negative: bool) -> str:
        """Digits with their sign in their width, filled with zeros where the format says so."""
        sign = "-" if negative else "+" if "+" in self.flags else " " if " " in self.flags else ""
        if "0" in self.flags:
            digits = digits.rjust(self.width - len(sign), "0")
        return self.padded(sign + digits)


@functools.lru_cache(maxsize=256)
def _parts(source: str) -> tuple[str | Directive, ...]:
    """Texts and directives of a format; Unsupported for a directive that the engine does not know."""
    parts: list[str | Directive] = []
    at, ordinary = 0, 0
    while at < len(source):
        following = source.find("%", at)
        if following != at:
            parts.append(source[at:] if following < 0 else source[at:following])
            at = len(source) if following < 0 else following
            continue
        match = _DIRECTIVE.match(source, at)
        if match is None:
            raise _unknown(source)
        at = match.end()
        if match[0] in ("%%", "%n"):
            parts.append("%" if match[0] == "%%" else "\n")
            continue
        position = int(match[1]) if match[1] else (ordinary := ordinary + 1)
        parts.append(_directive(match, position, source))
    return tuple(parts)


def _directive(match: re.Match[str], position: int, source: str) -> Directive:
    flags, conversion = match[2], match[5]
    allowed = {"s": "-", "b": "-", "d": "-+ 0,", "f": "-+ 0,", "x": "-0", "X": "-0"}.get(conversion)
    if allowed is None or set(flags) - set(allowed) or len(set(flags)) < len(flags):
        raise _unknown(source)
    if {"-", "0"} <= set(flags) or {"+", " "} <= set(flags) or (match[3] is None and set("-0") & set(flags)):
        raise _unknown(source)  # an error in Java
    if match[4] is not None and conversion not in "sf":
        raise _unknown(source)
    precision = None if match[4] is None else int(match[4])
    return Directive(position, flags, int(match[3] or 0), precision, conversion)


def _unknown(source: str) -> Unsupported:
    return Unsupported(
        f"The format {source!r} of FORMAT_STRING has a directive that the engine does not know."
    )


def _format_string(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    scalar = args[0].data if args[0].is_scalar else args[0].data[0]
    if not scalar.is_valid:
        return pa.nulls(n, t.STRING)
    parts = [
        pa.scalar(part) if isinstance(part, str) else _rendered(part, args[part.argument], context)
        for part in _parts(scalar.as_py())
    ]
    if not any(isinstance(part, pa.Array) for part in parts):
        return pa.repeat(pa.scalar("".join(part.as_py() for part in parts)), n)
    return pc.binary_join_element_wise(*parts, "")


def _rendered(directive: Directive, vector: Vector, context: CallContext) -> pa.Array:
    """An argument's texts, in which NULL is a text, too."""
    absent = {"b": "false", "X": "NULL"}.get(directive.conversion, "null")
    absent = directive.padded(directive.cut(absent))
    if vector.dtype == t.NULL:
        return pa.repeat(pa.scalar(absent), context.num_rows)
    is_plain = directive.conversion in "sd" and not (directive.flags or directive.width)
    if is_plain and directive.precision is None and (vector.dtype == t.STRING or t.is_integral(vector.dtype)):
        return pc.fill_null(vector.array(context.num_rows).cast(t.STRING), absent)
    render = _RENDERERS[directive.conversion](directive, vector.dtype)
    return pc.fill_null(per_distinct(render, [vector], context), absent)


Render = Callable[[Any], str]


def _text(directive: Directive, dtype: pa.DataType) -> Render:
    """``%s``: what Java's toString gives."""
    if dtype in (t.FLOAT, t.DOUBLE):
        return lambda value: directive.padded(directive.cut(java_text(value, dtype == t.FLOAT)))
    if dtype == t.BOOL:
        return lambda value: directive.padded(directive.cut("true" if value else "false"))
    return lambda value: directive.padded(directive.cut(str(value)))


def _boolean(directive: Directive, dtype: pa.DataType) -> Render:
    """``%b``: whether it is true, or is anything at all."""
    return lambda value: directive.padded("false" if value is False else "true")


def _whole(directive: Directive, dtype: pa.DataType) -> Render:
    form = ",d" if "," in directive.flags else "d"
    return lambda value: directive.signed(format(abs(value), form), value < 0)


def _hexadecimal(directive: Directive, dtype: pa.DataType) -> Render:
    """``%x``: the bits of a number of its type's width."""
    mask = (1 << dtype.bit_width) - 1
    return lambda value: directive.signed(format(value & mask, directive.conversion), False)


def _decimals(directive: Directive, dtype: pa.DataType) -> Render:
    """``%f``: the decimal number that Java prints, rounded half up."""
    places = _DEFAULT_DECIMALS if directive.precision is None else directive.precision
    form = f",.{places}f" if "," in directive.flags else f".{places}f"

    def render(value: float) -> str:
        negative = math.copysign(1, value) < 0
        if math.isnan(value):
            return directive.padded("NaN")
        if math.isinf(value):
            sign = (
                "-" if negative else "+" if "+" in directive.flags else " " if " " in directive.flags else ""
            )
            return directive.padded(f"{sign}Infinity")
        shown = abs(Decimal(repr(value)))
        digits = len(shown.normalize(_EXACT).as_tuple().digits)
        if digits > _CERTAIN_DIGITS and shown.adjusted() + 1 + places > _CERTAIN_DIGITS:
            raise Unsupported("More than 15 digits of a double are not formatted by the engine.")
        rounded = shown.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _EXACT)
        return directive.signed(format(rounded, form), negative)

    return render


_RENDERERS: dict[str, Callable[[Directive, pa.DataType], Render]] = {
    "s": _text,
    "b": _boolean,
    "d": _whole,
    "x": _hexadecimal,
    "X": _hexadecimal,
    "f": _decimals,
}


def _accepts(conversion: str, dtype: pa.DataType) -> bool:
    """Whether the engine renders values of a type by a conversion as Java does."""
    if dtype == t.NULL or conversion == "b":
        return True
    if conversion == "s":
        return t.is_numeric(dtype) or dtype in (t.STRING, t.BOOL)
    return dtype in (t.FLOAT, t.DOUBLE) if conversion == "f" else t.is_integral(dtype)


def _type(types: Sequence[pa.DataType], values: Sequence[object]) -> pa.DataType:
    """A string; Unsupported for a format that does not fit the arguments."""
    if types[0] not in (t.STRING, t.NULL):
        raise PlanError("the format of FORMAT_STRING is a string")
    if values[0] is COLUMN:
        raise Unsupported("The format of FORMAT_STRING must be a literal.")
    for part in _parts(values[0]) if isinstance(values[0], str) else ():
        if isinstance(part, str):
            continue
        if part.argument >= len(types):
            raise Unsupported(
                "A format of FORMAT_STRING with more directives than arguments stays with Spark."
            )
        if not _accepts(part.conversion, types[part.argument]):
            raise Unsupported(
                f"{t.spark_name(types[part.argument])} as %{part.conversion} is not formatted by the engine."
            )
    return t.STRING


register(
    Function(
        "format_string",
        _format_string,
        depends_on_values,
        catalyst=("FormatString",),
        arity=(1, None),
        nullable="first",
        result_of=_type,
        aliases=("printf",),
        calls=CallForm(columns_from=1),
        alias_calls=(("printf", CallForm(columns_from=0)),),
    )
)
