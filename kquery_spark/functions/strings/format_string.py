"""FORMAT_STRING for the common directives. Each directive is rendered as a column of strings, and the columns are joined."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.casts import cast
from kquery_spark.functions.casts.floats import round_scaled
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    COLUMN,
    CallContext,
    EvalMode,
    Function,
    Nullability,
    depends_on_values,
    register,
)
from kquery_spark.functions.strings.format_directives import Directive, directives
from kquery_spark.kernels.digit_layouts import DIGIT, digit_cells, digit_counts, filled_layouts
from kquery_spark.kernels.text import has_four_byte_characters, null_mask
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_rows
from kquery_spark.types.units import INT64_MAX
from kquery_spark.types.vector import Data, Vector, fill

_EXACT = Context(prec=800)
_CERTAIN_DIGITS = 15  # significant digits of a double on which all releases of Java agree
_DEFAULT_DECIMALS = 6


def _format_string(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    scalar = args[0].data if args[0].is_scalar else args[0].data[0]
    if not scalar.is_valid:
        return pa.nulls(n, t.STRING)
    parts = [
        pa.scalar(part) if isinstance(part, str) else _render_argument(part, args[part.argument], context)
        for part in directives(scalar.as_py())
    ]
    if not any(isinstance(part, pa.Array) for part in parts):
        return fill(pa.scalar("".join(part.as_py() for part in parts)), n)
    return pc.binary_join_element_wise(*parts, "")


def _render_argument(directive: Directive, vector: Vector, context: CallContext) -> pa.Array:
    """Render an argument; NULL becomes the string "null", for ``%X`` "NULL", and for ``%b`` "false"."""
    absent = {"b": "false", "X": "NULL"}.get(directive.conversion, "null")
    absent = directive.padded(directive.cut(absent))
    if vector.dtype == t.NULL:
        return fill(pa.scalar(absent), context.num_rows)
    strings = _RENDERERS[directive.conversion](directive, vector.array(context.num_rows), context)
    return pc.fill_null(strings, absent)


def _text(directive: Directive, array: pa.Array, context: CallContext) -> pa.Array:
    """``%s``: the result of Java's ``toString``, which equals Spark's cast to string outside of ANSI mode."""
    if array.type != t.STRING:
        values = Vector(array.type, array)
        array = cast(values, t.STRING, EvalMode.LEGACY, context.tz, len(array)).array(len(array))
    return _fit_to_width(directive, array, context)


def _boolean(directive: Directive, array: pa.Array, context: CallContext) -> pa.Array:
    """``%b``: the value of a Boolean; for other types, whether the value is not NULL."""
    is_true = array if array.type == t.BOOL else pc.is_valid(array)
    return _fit_to_width(directive, pc.if_else(is_true, "true", "false"), context)


def _whole_numbers(directive: Directive, array: pa.Array, context: CallContext) -> pa.Array:
    """``%d``."""
    if not set(directive.flags) - {"-"}:
        return _fit_to_width(directive, array.cast(t.STRING), context)
    form = ",f" if "," in directive.flags else "f"
    values = array.fill_null(0).cast(t.LONG).to_numpy()
    if (values < -INT64_MAX).any():

        def render(value: int) -> str:
            return directive.signed(format(Decimal(abs(value)), form), value < 0)

        return per_distinct(render, [Vector(array.type, array)], context)
    size = np.abs(values)
    keys = np.maximum(digit_counts(size), 1) * 2 + (values < 0)
    cells = digit_cells(size, np.zeros_like(size), 0)
    return filled_layouts(keys, lambda key: _number_layout(directive, form, key), cells, null_mask(array))


def _hexadecimal(directive: Directive, array: pa.Array, context: CallContext) -> pa.Array:
    """``%x``: the bits of an integer in the width of its type."""
    mask = (1 << array.type.bit_width) - 1

    def render(value: int) -> str:
        return directive.signed(format(value & mask, directive.conversion), False)

    return per_distinct(render, [Vector(array.type, array)], context)


def _decimals(directive: Directive, array: pa.Array, context: CallContext) -> pa.Array:
    """``%f``: the decimal number that Java prints, rounded half up."""
    places = _DEFAULT_DECIMALS if directive.precision is None else directive.precision
    form = f",.{places}f" if "," in directive.flags else f".{places}f"
    array = array.cast(t.DOUBLE)
    if places > _CERTAIN_DIGITS:
        return _exact_decimals(directive, form, array, context)
    values, mask = array.fill_null(0.0).to_numpy(), null_mask(array)
    scaled, certain = round_scaled(values, places)
    certain &= np.abs(scaled) < 10.0**_CERTAIN_DIGITS
    whole, fraction = np.divmod(np.where(certain, np.abs(scaled), 0.0).astype(np.int64), 10**places)
    keys = np.maximum(digit_counts(whole), 1) * 2 + np.signbit(values)
    cells = digit_cells(whole, fraction, places)
    strings = filled_layouts(keys, lambda key: _number_layout(directive, form, key), cells, mask)
    if certain.all():
        return strings
    odd = pa.array(~certain)
    return pc.replace_with_mask(strings, odd, _exact_decimals(directive, form, array.filter(odd), context))


def _exact_decimals(directive: Directive, form: str, array: pa.Array, context: CallContext) -> pa.Array:
    """``%f`` with decimal arithmetic, number by number, for numbers that numpy may round differently."""
    places = _DEFAULT_DECIMALS if directive.precision is None else directive.precision

    def render(value: float) -> str:
        negative = math.copysign(1, value) < 0
        if math.isnan(value):
            return directive.padded("NaN")
        if math.isinf(value):
            return directive.padded(f"{directive.sign(negative)}Infinity")
        shown = abs(Decimal(repr(value)))
        digits = len(shown.normalize(_EXACT).as_tuple().digits)
        if digits > _CERTAIN_DIGITS and shown.adjusted() + 1 + places > _CERTAIN_DIGITS:
            raise Unsupported("more than 15 digits of a double are not formatted by the engine")
        rounded = shown.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _EXACT)
        return directive.signed(format(rounded, form), negative)

    return per_distinct(render, [Vector(t.DOUBLE, array)], replace(context, num_rows=len(array)))


def _number_layout(directive: Directive, form: str, key: int) -> str:
    """The layout of a number with ``key // 2`` digits before the point, negative for odd keys; DIGIT stands for a digit."""
    number = format(Decimal(10 ** (key // 2 - 1)), form)
    return directive.signed(re.sub("[0-9]", DIGIT, number), bool(key % 2))


def _fit_to_width(directive: Directive, strings: pa.Array, context: CallContext) -> pa.Array:
    """Cut strings to the directive's precision, and pad them with spaces to its width."""
    if directive.precision is None and not directive.width:
        return strings
    if has_four_byte_characters(strings):
        return per_distinct(
            lambda text: directive.padded(directive.cut(text)), [Vector(t.STRING, strings)], context
        )
    if directive.precision is not None:
        strings = pc.utf8_slice_codeunits(strings, 0, directive.precision)
    reserve_rows(len(strings), directive.width)
    pad = pc.utf8_rpad if "-" in directive.flags else pc.utf8_lpad
    return pad(strings, directive.width)


_RENDERERS: dict[str, Callable[[Directive, pa.Array, CallContext], pa.Array]] = {
    "s": _text,
    "b": _boolean,
    "d": _whole_numbers,
    "x": _hexadecimal,
    "X": _hexadecimal,
    "f": _decimals,
}


def _accepts(conversion: str, dtype: pa.DataType) -> bool:
    """Return whether the engine renders values of a type by a conversion as Java does."""
    if dtype == t.NULL or conversion == "b":
        return True
    if conversion == "s":
        return t.is_numeric(dtype) or dtype in (t.STRING, t.BOOL)
    return dtype in (t.FLOAT, t.DOUBLE) if conversion == "f" else t.is_integral(dtype)


def _type(types: Sequence[pa.DataType], values: Sequence[object]) -> pa.DataType:
    """The result type, string; raises Unsupported for a format that does not match the arguments."""
    if types[0] not in (t.STRING, t.NULL):
        raise PlanError("the format of FORMAT_STRING is a string")
    if values[0] is COLUMN:
        raise Unsupported("the format of FORMAT_STRING must be a literal")
    for part in directives(values[0]) if isinstance(values[0], str) else ():
        if isinstance(part, str):
            continue
        if part.argument >= len(types):
            raise Unsupported(
                "a format of FORMAT_STRING with more directives than arguments is not supported"
            )
        if not _accepts(part.conversion, types[part.argument]):
            raise Unsupported(
                f"{t.spark_name(types[part.argument])} as %{part.conversion} is not formatted by the engine"
            )
    return t.STRING


register(
    Function(
        "format_string",
        _format_string,
        depends_on_values,
        catalyst=("FormatString",),
        arity=(1, None),
        nullable=Nullability.FIRST_ARGUMENT,
        result_of=_type,
        aliases=("printf",),
        calls=CallForm(columns_from=1),
        alias_calls=(("printf", CallForm(columns_from=0)),),
        invalid_utf8=InvalidUtf8.REPLACED,
    )
)
