"""Functions of doubles, bit operations, and Catalyst's own helpers around decimals and floats.

Roots, logarithms, exponentials, inverse trigonometry, rounding and bit operations are exact; powers, sines and hyperbolic
functions agree with Java's within the last digit or two (Java itself promises no more of most of them).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.functions.call_form import ONE_COLUMN, TWO_COLUMNS, UPPER, CallForm
from kquery_spark.functions.core.arguments import joint_mask, numbers
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.registry import (
    ANSI_RAISES,
    CallContext,
    Function,
    Nullability,
    Operator,
    accept,
    cast_to,
    first_argument_type,
    register,
    register_internal,
)
from kquery_spark.kernels import fdlibm
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

Doubles = npt.NDArray[np.float64]


def _doubles(vector: Vector, length: int) -> Doubles:
    array = vector.array(length)
    return np.asarray((array.fill_null(1.0) if array.null_count else array).to_numpy(zero_copy_only=False))


def _unary(fn: Callable[[Doubles], Any], domain: Callable[[Doubles], Any] | None = None) -> Any:
    """A kernel applying ``fn``; where ``domain`` is false the result is NULL."""

    def run(args: Sequence[Vector], context: CallContext) -> Data:
        values = _doubles(args[0], context.num_rows)
        mask = joint_mask(args, context.num_rows)
        with np.errstate(all="ignore"):
            result = fn(values)
            if domain is not None:
                outside = ~domain(values)
                mask = outside if mask is None else mask | outside
        return pa.array(np.asarray(result, np.float64), mask=mask)

    return run


def _binary(
    fn: Callable[[Doubles, Doubles], Any], domain: Callable[[Doubles, Doubles], Any] | None = None
) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        left, right = (_doubles(a, context.num_rows) for a in args)
        mask = joint_mask(args, context.num_rows)
        with np.errstate(all="ignore"):
            result = fn(left, right)
            if domain is not None:
                outside = ~domain(left, right)
                mask = outside if mask is None else mask | outside
        return pa.array(np.asarray(result, np.float64), mask=mask)

    return run


def _power(base: Doubles, exponent: Doubles) -> Doubles:
    """Java's pow: 1 to the NaN is NaN, and +-1 to the infinite is NaN, unlike C's."""
    odd = (np.isnan(exponent) & (base == 1)) | (np.isinf(exponent) & (np.abs(base) == 1))
    return np.where(odd, np.nan, np.power(base, exponent))


def _sign(values: Doubles) -> Doubles:
    return np.where(values == 0, values, np.sign(values))


def _above(limit: float) -> Callable[[Doubles], Any]:
    return lambda x: ~(x <= limit)


def _both_positive(base: Doubles, value: Doubles) -> Any:
    return ~(base <= 0) & ~(value <= 0)


def _libm_kernel(name: str) -> Callable[[Doubles], Doubles]:
    """Arrow's kernel, which calls the C library: its last digit is Java's far more often than that of numpy's own loops."""

    def run(values: Doubles) -> Doubles:
        result: pa.Array = getattr(pc, name)(pa.array(values))
        return np.asarray(result.to_numpy(zero_copy_only=False))

    return run


def _require_arrow_kernel(name: str) -> Callable[[Sequence[object]], None] | None:
    """Build a check that declines calls of a function if the installed pyarrow does not have its kernel."""
    if hasattr(pc, name) or name not in _OF_NEWER_ARROW:
        return None

    def decline(_: Sequence[object]) -> None:
        raise Unsupported(f"{name} needs pyarrow 21 or later, and pyarrow {pa.__version__} is installed")

    return decline


_OF_NEWER_ARROW = frozenset({"expm1", "sinh", "cosh", "tanh"})


_UNARY: tuple[tuple[str, str, Callable[[Doubles], Any]], ...] = (
    ("sqrt", "Sqrt", np.sqrt),
    ("cbrt", "Cbrt", fdlibm.cbrt),
    ("exp", "Exp", fdlibm.exp),
    ("expm1", "Expm1", _libm_kernel("expm1")),
    ("sin", "Sin", np.sin),
    ("cos", "Cos", np.cos),
    ("tan", "Tan", np.tan),
    ("cot", "Cot", lambda x: 1.0 / np.tan(x)),
    ("sec", "Sec", lambda x: 1.0 / np.cos(x)),
    ("csc", "Csc", lambda x: 1.0 / np.sin(x)),
    ("asin", "Asin", fdlibm.asin),
    ("acos", "Acos", fdlibm.acos),
    ("atan", "Atan", fdlibm.atan),
    ("sinh", "Sinh", _libm_kernel("sinh")),
    ("cosh", "Cosh", _libm_kernel("cosh")),
    ("tanh", "Tanh", _libm_kernel("tanh")),
    ("degrees", "ToDegrees", lambda x: x * 57.29577951308232),
    ("radians", "ToRadians", lambda x: x * 0.017453292519943295),
)
_LOGS: tuple[tuple[str, str, Callable[[Doubles], Any], float], ...] = (
    ("log2", "Log2", lambda x: fdlibm.log(x) / math.log(2.0), 0.0),
    ("log10", "Log10", _libm_kernel("log10"), 0.0),
    ("log1p", "Log1p", fdlibm.log1p, -1.0),
)
_DOUBLE = accept(t.DOUBLE, t.DOUBLE)
_UPPER_PAIR = replace(UPPER, columns=(0, 1))


def _log(args: Sequence[Vector], context: CallContext) -> Data:
    """``log(x)`` or ``log(base, x)``."""
    if len(args) == 1:
        return _unary(fdlibm.log, _above(0.0))(args, context)
    return _binary(lambda b, x: fdlibm.log(x) / fdlibm.log(b), _both_positive)(args, context)


def _entry(name: str, kernel: Any, catalyst: str, count: int = 1, **options: Any) -> Function:
    return Function(
        name,
        kernel,
        _DOUBLE,
        catalyst=(catalyst,),
        arity=(count, count),
        coerce=cast_to(t.DOUBLE),
        **{"nullable": Nullability.OTHER_REASONS, **options},
    )


register(
    *(_entry(n, _unary(f), c, calls=UPPER, check_values=_require_arrow_kernel(n)) for n, c, f in _UNARY),
    _entry("rint", _unary(np.rint), "Rint"),
    _entry(
        "signum", _unary(_sign), "Signum", calls=UPPER, aliases=("sign",), alias_calls=(("sign", ONE_COLUMN),)
    ),
    _entry("ln", _unary(fdlibm.log, _above(0.0)), "Log"),
    *(_entry(n, _unary(f, _above(limit)), c, calls=UPPER) for n, c, f, limit in _LOGS),
    # Catalyst's Logarithm has (base, value); log(x) has Euler's number as the base there
    Function(
        "log",
        _log,
        _DOUBLE,
        catalyst=("Logarithm",),
        arity=(1, 2),
        nullable=Nullability.OTHER_REASONS,
        evaluates=(0, 1),
        coerce=cast_to(t.DOUBLE),
        calls=replace(_UPPER_PAIR, shape=(1, "LOG(E(), {0})")),
    ),
    _entry(
        "power",
        _binary(_power),
        "Pow",
        2,
        nullable=Nullability.ANY_ARGUMENT,
        calls=_UPPER_PAIR,
        aliases=("pow",),
        alias_calls=(("pow", TWO_COLUMNS),),
    ),
    _entry(
        "atan2",
        _binary(lambda y, x: fdlibm.atan2(y + 0.0, x + 0.0)),
        "Atan2",
        2,
        nullable=Nullability.ANY_ARGUMENT,
        calls=_UPPER_PAIR,
    ),
    _entry("hypot", _binary(np.hypot), "Hypot", 2, nullable=Nullability.ANY_ARGUMENT, calls=_UPPER_PAIR),
)


def _constant(value: float) -> Any:
    return lambda args, context: pa.scalar(value)


register(
    Function(
        "pi",
        _constant(math.pi),
        lambda types: t.DOUBLE,
        arity=(0, 0),
        nullable=Nullability.NEVER,
        calls=UPPER,
    ),
    Function(
        "e", _constant(math.e), lambda types: t.DOUBLE, arity=(0, 0), nullable=Nullability.NEVER, calls=UPPER
    ),
)


# --- integers and bits ----------------------------------------------------------------------------

_FACTORIALS = np.array([math.factorial(n) for n in range(21)], np.int64)


def _factorial(args: Sequence[Vector], context: CallContext) -> Data:
    values = numbers(args[0], context.num_rows)
    outside = (values < 0) | (values > 20)
    mask = joint_mask(args, context.num_rows)
    return pa.array(
        _FACTORIALS[np.where(outside, 0, values)], mask=outside if mask is None else mask | outside
    )


def _bits(kernel: Any) -> Any:
    return lambda args, context: kernel(*(a.data for a in args))


def _shift(op: str) -> Any:
    """Java's shifts: only the low 5 (int) or 6 (bigint) bits of the distance count."""

    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        bits = context.dtype.bit_width
        values = numbers(args[0], n)
        distance = numbers(args[1], n) & (bits - 1)
        if op == "unsigned":
            unsigned = values.astype(f"int{bits}").view(f"uint{bits}") >> distance.astype(f"uint{bits}")
            result = unsigned.view(f"int{bits}")
        elif op == "left":
            result = (
                (values.view(np.uint64) << distance.astype(np.uint64)).view(np.int64).astype(f"int{bits}")
            )
        else:
            result = (values >> distance).astype(f"int{bits}")
        return pa.array(result, context.dtype, mask=joint_mask(args, n))

    return run


_ONES = np.array([bin(i).count("1") for i in range(256)], np.int32)


def _bit_count(args: Sequence[Vector], context: CallContext) -> Data:
    array = args[0].array(context.num_rows)
    if array.type == t.BOOL:
        return array.cast(t.INT)
    words = np.ascontiguousarray(numbers(args[0], context.num_rows)).view(np.uint8).reshape(-1, 8)
    return pa.array(_ONES[words].sum(axis=1, dtype=np.int32), mask=joint_mask(args, context.num_rows))


def _one_integral(types: Sequence[pa.DataType]) -> pa.DataType:
    if any(dtype != types[0] or not t.is_integral(dtype) for dtype in types):
        raise PlanError(
            f"bit operations need integers of one type, not {', '.join(map(t.spark_name, types))}"
        )
    return types[0]


def _coerce_integral(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    order = (t.BYTE, t.SHORT, t.INT, t.LONG)
    known = [order.index(dtype) if dtype in order else 3 for dtype in types]
    return [order[max(known)]] * len(types)


_SHIFTED = accept(first_argument_type, lambda dtype: dtype in (t.INT, t.LONG), t.INT)


def _coerce_shift(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return [t.LONG if types[0] == t.LONG else t.INT, t.INT]


def _bitwise(name: str, kernel: Any, catalyst: str, symbol: str) -> Function:
    count = 1 if name == "bitnot" else 2
    return Function(
        name,
        _bits(kernel),
        _one_integral,
        catalyst=(catalyst,),
        arity=(count, count),
        coerce=_coerce_integral,
        operator=Operator(symbol),
    )


def _shifting(name: str, op: str, catalyst: str, symbol: str) -> Function:
    return Function(
        name,
        _shift(op),
        _SHIFTED,
        catalyst=(catalyst,),
        arity=(2, 2),
        coerce=_coerce_shift,
        operator=Operator(symbol),
    )


register(
    Function(
        "factorial",
        _factorial,
        accept(t.LONG, t.INT),
        catalyst=("Factorial",),
        nullable=Nullability.OTHER_REASONS,
        coerce=cast_to(t.INT),
    ),
)
register_internal(
    _bitwise("bitand", pc.bit_wise_and, "BitwiseAnd", "&"),
    _bitwise("bitor", pc.bit_wise_or, "BitwiseOr", "|"),
    _bitwise("bitxor", pc.bit_wise_xor, "BitwiseXor", "^"),
    _bitwise("bitnot", pc.bit_wise_not, "BitwiseNot", "~"),
)
register(
    _shifting("shiftleft", "left", "ShiftLeft", "<<"),
    _shifting("shiftright", "right", "ShiftRight", ">>"),
    _shifting("shiftrightunsigned", "unsigned", "ShiftRightUnsigned", ">>>"),
    Function(
        "bit_count",
        _bit_count,
        accept(t.INT, lambda dtype: dtype == t.BOOL or t.is_integral(dtype)),
        catalyst=("BitwiseCount",),
    ),
)


# --- Catalyst's helpers ---------------------------------------------------------------------------


def _make_decimal(args: Sequence[Vector], context: CallContext) -> Data:
    return dk.check_range(args[0].data, context)


def _type_from_importer(types: Sequence[pa.DataType]) -> pa.DataType:
    raise PlanError("make_decimal needs its type from the importer")


def _identity(args: Sequence[Vector], context: CallContext) -> Data:
    return args[0].data


def _normalize(args: Sequence[Vector], context: CallContext) -> Data:
    """One NaN and no negative zero."""
    data = args[0].array(context.num_rows)
    return pc.add(data, pa.scalar(0.0, data.type))


def _strings_to_doubles(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return [t.DOUBLE] if types[0] == t.STRING else types


_FRACTIONAL = accept(first_argument_type, t.is_fractional)

register_internal(
    # MakeDecimal(child, precision, scale, nullOnOverflow): Call.of("make_decimal", child, dtype=decimal(precision, scale)),
    # mode TRY where nullOnOverflow. CheckOverflow(child, dataType, nullOnOverflow) is a Cast between decimals instead.
    Function(
        "make_decimal",
        _make_decimal,
        _type_from_importer,
        catalyst=("MakeDecimal",),
        raises=ANSI_RAISES,
        encoded=True,
    ),
    Function(
        "known_not_null",
        _identity,
        first_argument_type,
        catalyst=("KnownNotNull",),
        nullable=Nullability.NEVER,
        encoded=True,
    ),
    Function(
        "known_normalized",
        _identity,
        first_argument_type,
        catalyst=("KnownFloatingPointNormalized",),
        encoded=True,
    ),
    Function("normalize_nan_and_zero", _normalize, _FRACTIONAL, catalyst=("NormalizeNaNAndZero",)),
)
register(
    Function(
        "positive",
        _identity,
        first_argument_type,
        catalyst=("UnaryPositive",),
        encoded=True,
        coerce=_strings_to_doubles,
        operator=Operator(spellings=("+",)),
        calls=CallForm(shape=(1, "(+ {0})")),
    ),
)
