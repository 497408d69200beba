"""COALESCE, NULLIF, NANVL, GREATEST and LEAST. IF, CASE and NVL2 become ``Case`` nodes instead of calls.

The kernels see all arguments. The expression compiler makes sure that a later argument does not raise an error for a row
that an earlier one decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import PlanError
from kquery_spark.functions import casts
from kquery_spark.functions.call_form import ALL_COLUMNS, TWO_COLUMNS
from kquery_spark.functions.core.comparison import coerce_comparison, compare
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    ANSI_RAISES,
    Branching,
    CallContext,
    EvalMode,
    Function,
    Nullability,
    accept,
    first_argument_type,
    register,
)
from kquery_spark.kernels.elements import is_array
from kquery_spark.kernels.ordered_bytes import can_order
from kquery_spark.kernels.text import if_else
from kquery_spark.types import names as t
from kquery_spark.types.coercion import as_floats, common_type
from kquery_spark.types.vector import Data, Vector


def common_argument_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """Return the common type of all arguments but NULL literals; a nested field is nullable if it is in any of them."""
    present = [dtype for dtype in types if dtype != t.NULL]
    if not present:
        return t.NULL
    one = present[0]
    for dtype in present[1:]:
        merged = common_type(one, dtype) if t.spark_name(one) == t.spark_name(dtype) else None
        if merged is None:
            raise PlanError(f"arguments have different types: {', '.join(map(t.spark_name, types))}")
        one = merged
    return one


def to_one_form(args: Sequence[Vector], dtype: pa.DataType) -> list[Data]:
    """Convert the arguments to one physical form: narrow if all are narrow, else plain; NULL literals get the type."""
    narrow = t.is_decimal(dtype) and all(a.is_narrow for a in args if not _is_null_literal(a))
    kind = t.LONG if narrow else dtype
    forms = []
    for arg in args:
        if _is_null_literal(arg):
            forms.append(pa.scalar(None, kind))
        else:
            forms.append(arg.data if narrow else arg.plain())
    return to_one_type(forms, dtype)


def _is_null_literal(arg: Vector) -> bool:
    return bool(arg.dtype == t.NULL or (arg.is_scalar and arg.null_count))


def to_one_type(forms: list[Data], dtype: pa.DataType) -> list[Data]:
    """Cast nested values to one Arrow type if their types differ in nullability or in the names of elements."""
    if not t.is_nested(dtype):
        return forms
    kinds = [form.type for form in forms]
    # Both tests are necessary: the string of a map type omits nullability, and == ignores the names of elements.
    if all(kind == kinds[0] and str(kind) == str(kinds[0]) for kind in kinds[1:]):
        return forms
    return [form.cast(_nullable(dtype)) for form in forms]


def _nullable(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(f.name, _nullable(f.type)) for f in dtype])
    if is_array(dtype):
        return pa.list_(pa.field("element", _nullable(dtype.value_type)))
    if pa.types.is_map(dtype):
        return pa.map_(_nullable(dtype.key_type), _nullable(dtype.item_type))
    return dtype


def _coalesce(args: Sequence[Vector], context: CallContext) -> Data:
    if context.dtype == t.NULL:
        return pa.nulls(context.num_rows)
    return pc.coalesce(*to_one_form(args, context.dtype))


def _nullif(args: Sequence[Vector], context: CallContext) -> Data:
    left, right = args
    if left.dtype == t.NULL or right.dtype == t.NULL:
        return left.data
    sides = [left, right]
    if left.dtype != right.dtype:
        types = [left.dtype, right.dtype]
        common = common_type(*(types if context.mode is EvalMode.ANSI else as_floats(types)))
        assert common is not None
        # Spark casts no value that it compares with NULL
        values = right.array(context.num_rows)
        known = pc.is_valid(left.array(context.num_rows))
        args = (left, Vector(right.dtype, if_else(known, values, pa.scalar(None, values.type))))
        sides = [casts.cast(side, common, context.mode, context.tz, context.num_rows) for side in args]
    same = pc.fill_null(compare("eq", sides[0], sides[1], context), False)
    data = left.plain()
    return if_else(same, pa.scalar(None, data.type), data)


def _nullif_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if common_type(types[0], types[1]) is None:
        raise PlanError(f"cannot compare {t.spark_name(types[0])} with {t.spark_name(types[1])}")
    return types[0]


def _nanvl(args: Sequence[Vector], context: CallContext) -> Data:
    return pc.if_else(pc.is_nan(args[0].data), args[1].data, args[0].data)


def _extreme(op: str, args: Sequence[Vector], context: CallContext) -> Data:
    """Return the largest or smallest argument of each row (the first one of equal arguments), skipping NULLs."""
    best, *rest = to_one_form(args, context.dtype)
    for other in rest:
        first, second = Vector(context.dtype, best), Vector(context.dtype, other)
        beyond = pc.fill_null(compare(op, first, second, context), False)
        best = pc.coalesce(pc.if_else(pc.or_(beyond, pc.is_null(best)), other, best), best)
    return best


def _orderable(types: Sequence[pa.DataType]) -> pa.DataType:
    dtype = common_argument_type(types)
    if not can_order(dtype):
        raise PlanError(f"values of type {t.spark_name(dtype)} have no order")
    return dtype


_FLOATING = accept(first_argument_type, t.is_fractional)

register(
    # Catalyst's Coalesce keeps its children; NVL, IFNULL and ZEROIFNULL become it before the optimizer
    Function(
        "coalesce",
        _coalesce,
        common_argument_type,
        catalyst=("Coalesce",),
        arity=(1, None),
        nullable=Nullability.ALL_ARGUMENTS,
        encoded=True,
        coerce=coerce_comparison,
        lazy=True,
        branching=Branching.FIRST_PRESENT,
        calls=ALL_COLUMNS,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    # without a Catalyst class, because Spark replaces NULLIF with If(EqualTo ...), which is imported as a Case node
    Function(
        "nullif",
        _nullif,
        _nullif_type,
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        raises=ANSI_RAISES,
        safe_for=lambda types, values, mode: types[0] == types[1],
        encoded=True,
        evaluates=(0, 1),
        lazy=True,
        calls=TWO_COLUMNS,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "nanvl",
        _nanvl,
        _FLOATING,
        catalyst=("NaNvl",),
        arity=(2, 2),
        nullable=Nullability.SOME_ARGUMENT,
        lazy=True,
        branching=Branching.IF_NAN,
        calls=TWO_COLUMNS,
        coerce=lambda types: (
            [t.FLOAT, t.FLOAT] if list(types) == [t.FLOAT, t.FLOAT] else [t.DOUBLE, t.DOUBLE]
        ),
    ),
    Function(
        "greatest",
        partial(_extreme, "lt"),
        _orderable,
        catalyst=("Greatest",),
        calls=ALL_COLUMNS,
        arity=(2, None),
        nullable=Nullability.ALL_ARGUMENTS,
        encoded=True,
        coerce=coerce_comparison,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "least",
        partial(_extreme, "gt"),
        _orderable,
        catalyst=("Least",),
        calls=ALL_COLUMNS,
        arity=(2, None),
        nullable=Nullability.ALL_ARGUMENTS,
        encoded=True,
        coerce=coerce_comparison,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
)
