"""ASINH, ACOSH and ATANH, each by the formulas and branches of Spark, to the last bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from kquery_spark.functions.call_form import UPPER
from kquery_spark.functions.math.math_functions import of_doubles
from kquery_spark.functions.registry import (
    Function,
    Nullability,
    VersionChange,
    accept,
    cast_to,
    register,
)
from kquery_spark.kernels import fdlibm
from kquery_spark.types import names as t

Doubles = npt.NDArray[np.float64]

_LN2 = 0.6931471805599453
_LARGE = 2.0**28  # whose square is the sum of it and 1
_SMALL = 2.0**-28


def asinh(values: Doubles) -> Doubles:
    """The inverse hyperbolic sine."""
    size, square = np.abs(values), values * values
    near = fdlibm.log1p(size + square / (1.0 + np.sqrt(1.0 + square)))
    away = fdlibm.log(2.0 * size + 1.0 / (np.sqrt(square + 1.0) + size))
    result = np.where(size > 2.0, away, near)
    result = np.where(size > _LARGE, fdlibm.log(size) + _LN2, result)
    result = np.where((size < _SMALL) | ~np.isfinite(size), size, result)
    return np.copysign(result, values)


def acosh(values: Doubles) -> Doubles:
    """The inverse hyperbolic cosine; NaN below 1."""
    above = values - 1.0
    near = fdlibm.log1p(above + np.sqrt(2.0 * above + above * above))
    away = fdlibm.log(2.0 * values - 1.0 / (values + np.sqrt(values * values - 1.0)))
    result = np.where(values > 2.0, away, near)
    result = np.where(values >= _LARGE, fdlibm.log(values) + _LN2, result)
    return np.where(values == 1.0, 0.0, np.where(values < 1.0, np.nan, result))


def atanh(values: Doubles) -> Doubles:
    """The inverse hyperbolic tangent; NaN beyond 1 and -1."""
    return 0.5 * (fdlibm.log1p(values) - fdlibm.log1p(-values))


def _entry(name: str, function: Callable[[Doubles], Doubles], changes: tuple[VersionChange, ...]) -> Function:
    return Function(
        name,
        of_doubles(function),
        accept(t.DOUBLE, t.DOUBLE),
        catalyst=(name.capitalize(),),
        nullable=Nullability.OTHER_REASONS,
        coerce=cast_to(t.DOUBLE),
        calls=UPPER,
        changes=changes,
    )


_BY_ONE_FORMULA = (VersionChange("computes it by one formula for all numbers", since=(4, 3)),)

register(
    _entry("asinh", asinh, _BY_ONE_FORMULA),
    _entry("acosh", acosh, _BY_ONE_FORMULA),
    _entry("atanh", atanh, ()),
)
