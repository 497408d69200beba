"""Functions of doubles.

Roots, logarithms, exponentials and inverse trigonometry are exact; powers, sines and hyperbolic
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

from kquery_spark.errors import Unsupported
from kquery_spark.functions.call_form import ONE_COLUMN, TWO_COLUMNS, UPPER
from kquery_spark.functions.core.arguments import doubles, joint_mask
from kquery_spark.functions.registry import (
    CallContext,
    Function,
    Kernel,
    Nullability,
    accept,
    cast_to,
    register,
)
from kquery_spark.kernels import fdlibm
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

Doubles = npt.NDArray[np.float64]


def of_doubles(fn: Callable[..., Any], domain: Callable[..., Any] | None = None) -> Kernel:
    """Return a kernel that applies ``fn`` to arrays of doubles, one per argument.

    domain: takes the same arrays; where it is False, the result is NULL.
    """

    def run(args: Sequence[Vector], context: CallContext) -> Data:
        values = [doubles(arg, context.num_rows) for arg in args]
        mask = joint_mask(args, context.num_rows)
        with np.errstate(all="ignore"):
            result = fn(*values)
            if domain is not None:
                outside = ~domain(*values)
                mask = outside if mask is None else mask | outside
        return pa.array(np.asarray(result, np.float64), mask=mask)

    return run


def _power(base: Doubles, exponent: Doubles) -> Doubles:
    """Java's ``pow``: for the base 1 and NaN, or the base 1 or -1 and infinity, it returns NaN, where C returns 1."""
    odd = (np.isnan(exponent) & (base == 1)) | (np.isinf(exponent) & (np.abs(base) == 1))
    return np.where(odd, np.nan, np.power(base, exponent))


def _sign(values: Doubles) -> Doubles:
    return np.where(values == 0, values, np.sign(values))


def _is_above(limit: float) -> Callable[[Doubles], Any]:
    """Build the test of a domain above a limit. NaN passes it, so that the result is NaN and not NULL."""
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
        return of_doubles(fdlibm.log, _is_above(0.0))(args, context)
    return of_doubles(lambda b, x: fdlibm.log(x) / fdlibm.log(b), _both_positive)(args, context)


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
    *(_entry(n, of_doubles(f), c, calls=UPPER, check_values=_require_arrow_kernel(n)) for n, c, f in _UNARY),
    _entry("rint", of_doubles(np.rint), "Rint"),
    _entry(
        "signum",
        of_doubles(_sign),
        "Signum",
        calls=UPPER,
        aliases=("sign",),
        alias_calls=(("sign", ONE_COLUMN),),
    ),
    _entry("ln", of_doubles(fdlibm.log, _is_above(0.0)), "Log"),
    *(_entry(n, of_doubles(f, _is_above(limit)), c, calls=UPPER) for n, c, f, limit in _LOGS),
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
        of_doubles(_power),
        "Pow",
        2,
        nullable=Nullability.ANY_ARGUMENT,
        calls=_UPPER_PAIR,
        aliases=("pow",),
        alias_calls=(("pow", TWO_COLUMNS),),
    ),
    _entry(
        "atan2",
        of_doubles(lambda y, x: fdlibm.atan2(y + 0.0, x + 0.0)),
        "Atan2",
        2,
        nullable=Nullability.ANY_ARGUMENT,
        calls=_UPPER_PAIR,
    ),
    _entry("hypot", of_doubles(np.hypot), "Hypot", 2, nullable=Nullability.ANY_ARGUMENT, calls=_UPPER_PAIR),
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
