"""Logarithms, exponential, cube root and inverse trigonometry with the exact bits of Java's StrictMath, which Spark uses.

``StrictMath`` is specified to return the results of the algorithms of fdlibm 5.3 (Sun Microsystems, 1993). This module
implements these algorithms for whole arrays. Every step is one rounded IEEE 754 operation in the order of fdlibm, so no
expression may be rearranged.

The functions share a scheme: reduce the argument to a small interval, where a polynomial or a rational function is
accurate, and combine its value with exact parts (such as k * ln 2) that are stored as a high and a low double. Branches of
fdlibm become ``np.where``; the upper 32 bits of a double (``_upper``) serve as a fast magnitude comparison, as in fdlibm.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

_LN2_HIGH = 6.93147180369123816490e-01  # the upper 32 bits of ln 2
_LN2_LOW = 1.90821492927058770002e-10
_ONE_OVER_LN2 = 1.44269504088896338700e00
_TWO_54 = 2.0**54

# log: coefficients of (log(1 + s) - log(1 - s)) / s - 2 in even powers of s
_L1, _L2, _L3, _L4, _L5, _L6, _L7 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
# exp: coefficients of x * (exp(x) + 1) / (exp(x) - 1) - 2 in even powers of x
_P1, _P2, _P3, _P4, _P5 = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
_EXP_OVERFLOW = 7.09782712893383973096e02
_EXP_UNDERFLOW = -7.45133219101941108420e02


# atan: atan(0.5), atan(1), atan(1.5) and atan(infinity) in two parts, and the coefficients of x - atan(x)
_ATAN_HIGH = np.array(
    [
        4.63647609000806093515e-01,
        7.85398163397448278999e-01,
        9.82793723247329054082e-01,
        1.57079632679489655800e00,
    ]
)
_ATAN_LOW = np.array(
    [
        2.26987774529616870924e-17,
        3.06161699786838301793e-17,
        1.39033110312309984516e-17,
        6.12323399573676603587e-17,
    ]
)
_A0, _A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8, _A9, _A10 = (
    3.33333333333329318027e-01,
    -1.99999999998764832476e-01,
    1.42857142725034663711e-01,
    -1.11111104054623557880e-01,
    9.09088713343650656196e-02,
    -7.69187620504482999495e-02,
    6.66107313738753120669e-02,
    -5.83357013379057348645e-02,
    4.97687799461593236017e-02,
    -3.65315727442169155270e-02,
    1.62858201153657823623e-02,
)
# asin and acos: numerator and denominator of (asin(x) - x) / x^3
_N0, _N1, _N2, _N3, _N4, _N5 = (
    1.66666666666666657415e-01,
    -3.25565818622400915405e-01,
    2.01212532134862925881e-01,
    -4.00555345006794114027e-02,
    7.91534994289814532176e-04,
    3.47933107596021167570e-05,
)
_D1, _D2, _D3, _D4 = (
    -2.40339491173441421878e00,
    2.02094576023350569471e00,
    -6.88283971605453293030e-01,
    7.70381505559019352791e-02,
)
_PI, _PI_LOW = 3.14159265358979311600e00, 1.2246467991473531772e-16
_HALF_PI, _HALF_PI_LOW = 1.57079632679489655800e00, 6.12323399573676603587e-17
_QUARTER_PI = 7.85398163397448278999e-01

_BLOCK_VALUES = 4096  # values whose intermediate results stay in the processor's cache


def _in_blocks(function: Callable[..., Doubles]) -> Callable[..., Doubles]:
    """Decorate a function to process its arrays block by block."""

    @wraps(function)
    def run(*arguments: Doubles) -> Doubles:
        arrays = [np.ascontiguousarray(a, np.float64) for a in arguments]
        result = np.empty_like(arrays[0])
        for start in range(0, len(result), _BLOCK_VALUES):
            part = slice(start, start + _BLOCK_VALUES)
            result[part] = function(*(a[part] for a in arrays))
        return result

    return run


def _upper(values: Doubles) -> npt.NDArray[np.int64]:
    """Return the upper 32 bits of each double as a signed integer."""
    return values.view(np.int64) >> 32


@_in_blocks
def log(values: Doubles) -> Doubles:
    """``StrictMath.log``: NaN below zero, -infinity at zero.

    x = 2^k * (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), and log(1 + f) by s = f / (2 + f).
    """
    tiny = values < 2.0**-1022
    x = np.where(tiny, values * _TWO_54, values) if tiny.any() else values
    bits = x.view(np.int64)
    upper = (bits >> 32) & 0xFFFFF
    above = (upper + 0x95F64) & 0x100000  # non-zero if 1 + f has to be halved
    k = ((bits >> 52) - 1023 + (above >> 20) - np.where(tiny, 54, 0)).astype(np.float64)
    f = ((bits & 0xFFFFFFFFFFFFF) | ((above ^ 0x3FF00000) << 32)).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    r = z * (_L1 + w * (_L3 + w * (_L5 + w * _L7))) + w * (_L2 + w * (_L4 + w * _L6))
    half = 0.5 * f * f
    far = ((upper - 0x6147A) | (0x6B851 - upper)) > 0
    rest = np.where(far, half - (s * (half + r) + k * _LN2_LOW), s * (f - r) - k * _LN2_LOW)
    small = ((2 + upper) & 0xFFFFF) < 3  # |f| < 2^-20
    rest = np.where(small, f * f * (0.5 - 0.33333333333333333 * f) - k * _LN2_LOW, rest)
    result = k * _LN2_HIGH - (rest - f)
    result = np.where(small & (f == 0), k * _LN2_HIGH + k * _LN2_LOW, result)
    outside = ~((values > 0) & (values < np.inf))
    if outside.any():
        result = np.where(values == 0, -np.inf, np.where(values < 0, np.nan, result))
        result = np.where(np.isnan(values) | (values == np.inf), values, result)
    return result


@_in_blocks
def log1p(values: Doubles) -> Doubles:
    """``StrictMath.log1p``: log(1 + x), NaN below -1, -infinity at -1.

    1 + x = 2^k * (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); c corrects for what rounding 1 + x loses.
    """
    x = np.where((values > -1) & (values < np.inf), values, 0.0)
    upper = _upper(x)
    near = (upper < 0x3FDA827A) & ((upper > 0) | (upper <= 0xBFD2BEC3 - (1 << 32)))  # k = 0, f = x
    u = np.where(upper < 0x43400000, 1.0 + x, x)
    bits = u.view(np.int64)
    k = np.where(near, 0, (bits >> 52) - 1023)
    c = np.where(k > 0, 1.0 - (u - x), x - (u - 1.0)) / u
    c = np.where(near | (upper >= 0x43400000), 0.0, c)
    fraction = (bits >> 32) & 0xFFFFF
    halve = fraction >= 0x6A09E
    k = np.where(halve & ~near, k + 1, k).astype(np.float64)
    exponent = np.where(halve, 0x3FE00000, 0x3FF00000)
    scaled = ((bits & 0xFFFFFFFFFFFFF) | (exponent << 32)).view(np.float64)
    f = np.where(near, x, scaled - 1.0)
    tiny = ~near & (np.where(halve, (0x100000 - fraction) >> 2, fraction) == 0)  # |f| < 2^-20
    half = 0.5 * f * f
    low = k * _LN2_LOW + c
    s = f / (2.0 + f)
    z = s * s
    r = z * (_L1 + z * (_L2 + z * (_L3 + z * (_L4 + z * (_L5 + z * (_L6 + z * _L7))))))
    far = k * _LN2_HIGH - ((half - (s * (half + r) + low)) - f)
    result = np.where(k == 0, f - (half - s * (half + r)), far)
    r = half * (1.0 - 0.66666666666666666 * f)
    result = np.where(tiny, np.where(k == 0, f - r, k * _LN2_HIGH - ((r - low) - f)), result)
    result = np.where(tiny & (f == 0), np.where(k == 0, 0.0, k * _LN2_HIGH + (c + k * _LN2_LOW)), result)
    size = np.abs(x)
    result = np.where(size < 2.0**-29, np.where(size < 2.0**-54, x, x - x * x * 0.5), result)
    outside = ~((values > -1) & (values < np.inf))
    if outside.any():
        result = np.where(
            outside, np.where(values == -1, -np.inf, np.where(values == np.inf, values, np.nan)), result
        )
    return result


@_in_blocks
def exp(values: Doubles) -> Doubles:
    """``StrictMath.exp``.

    x = k * ln 2 + r with |r| <= ln 2 / 2, where r is the difference of two doubles; a rational function gives exp(r).
    """
    sign = np.copysign(1.0, values)
    upper = _upper(np.abs(values))
    outside = ~((values >= _EXP_UNDERFLOW) & (values <= _EXP_OVERFLOW))
    special = outside.any()
    x = np.where(outside, 0.0, values) if special else values
    k = np.trunc(_ONE_OVER_LN2 * x + 0.5 * sign)
    k = np.where(upper < 0x3FF0A2B2, sign, k)  # |x| < 1.5 ln 2
    k = np.where(upper > 0x3FD62E42, k, 0.0)  # |x| > 0.5 ln 2
    high, low = x - k * _LN2_HIGH, k * _LN2_LOW
    r = high - low
    t = r * r
    c = r - t * (_P1 + t * (_P2 + t * (_P3 + t * (_P4 + t * _P5))))
    rc = r * c
    scaled = _times_power(1.0 - ((low - rc / (2.0 - c)) - high), k.astype(np.int64))
    result = np.where(k == 0, 1.0 - (rc / (c - 2.0) - r), scaled)
    result = np.where(upper < 0x3E300000, 1.0 + x, result)  # |x| < 2^-28
    if special:
        result = np.where(values > _EXP_OVERFLOW, np.inf, np.where(values < _EXP_UNDERFLOW, 0.0, result))
        result = np.where(np.isnan(values), values, result)
    return result


def _times_power(values: Doubles, k: npt.NDArray[np.int64]) -> Doubles:
    """Multiply values near 1 by 2^k, by adding k to their exponents.

    Subnormal results (``deep``) are computed as 2^(k + 1000) and then multiplied by 2^-1000, so they are rounded once.
    """
    deep = k < -1021
    if not deep.any():
        return (values.view(np.int64) + (k << 52)).view(np.float64)
    lifted = (values.view(np.int64) + (np.where(deep, k + 1000, k) << 52)).view(np.float64)
    return np.where(deep, lifted * 2.0**-1000, lifted)


def _upper_half(values: Doubles) -> Doubles:
    """Return the values with their lower 32 bits cleared."""
    return (values.view(np.int64) & ~0xFFFFFFFF).view(np.float64)


@_in_blocks
def atan(values: Doubles) -> Doubles:
    """``StrictMath.atan``: reduces the argument by the nearest of 0, 0.5, 1, 1.5 and infinity, with known arctangents."""
    size = np.abs(values)
    upper = _upper(size)
    near = np.digitize(upper, [0x3FDC0000, 0x3FE60000, 0x3FF30000, 0x40038000]) - 1  # -1: nearest to 0
    x = np.select(
        [near < 0, near == 0, near == 1, near == 2],
        [
            values,
            (2.0 * size - 1.0) / (2.0 + size),
            (size - 1.0) / (size + 1.0),
            (size - 1.5) / (1.0 + 1.5 * size),
        ],
        -1.0 / size,
    )
    z = x * x
    w = z * z
    odd = z * (_A0 + w * (_A2 + w * (_A4 + w * (_A6 + w * (_A8 + w * _A10)))))
    even = w * (_A1 + w * (_A3 + w * (_A5 + w * (_A7 + w * _A9))))
    rest = x * (odd + even)
    result = np.copysign(_ATAN_HIGH[near] - ((rest - _ATAN_LOW[near]) - x), values)
    result = np.where(near < 0, np.where(upper < 0x3E200000, values, x - rest), result)
    result = np.where(upper >= 0x44100000, np.copysign(_ATAN_HIGH[3] + _ATAN_LOW[3], values), result)
    return np.where(np.isnan(values), values, result)


@_in_blocks
def atan2(y: Doubles, x: Doubles) -> Doubles:
    """``StrictMath.atan2``, the angle of the point (x, y)."""
    steep = (_upper(np.abs(y)) - _upper(np.abs(x))) >> 20
    left = np.signbit(x)
    angle = atan(np.abs(y / x))
    angle = np.where(left & (steep < -60), 0.0, angle)
    angle = np.where(steep > 60, _HALF_PI + 0.5 * _PI_LOW, angle)
    result = np.copysign(np.where(left, _PI - (angle - _PI_LOW), angle), y)
    sides = np.where(left, 3.0 * _QUARTER_PI, _QUARTER_PI)
    ends = np.where(left, _PI, 0.0)
    infinite = np.isinf(y)
    special = np.select(
        [y == 0, x == 0, np.isinf(x), infinite],
        [ends, np.full_like(x, _HALF_PI), np.where(infinite, sides, ends), np.full_like(x, _HALF_PI)],
        np.nan,
    )
    result = np.where(np.isnan(special), result, np.copysign(special, y))
    result = np.where(x == 1.0, atan(y), result)
    return np.where(np.isnan(x) | np.isnan(y), np.nan, result)


def _arc_ratio(t: Doubles) -> Doubles:
    """Return (asin(x) - x) / x for t = x^2, as a ratio of two polynomials."""
    p = t * (_N0 + t * (_N1 + t * (_N2 + t * (_N3 + t * (_N4 + t * _N5)))))
    return p / (1.0 + t * (_D1 + t * (_D2 + t * (_D3 + t * _D4))))


@_in_blocks
def asin(values: Doubles) -> Doubles:
    """``StrictMath.asin``; NaN outside -1 to 1."""
    size = np.abs(values)
    upper = _upper(size)
    inner = values + values * _arc_ratio(values * values)
    inner = np.where(upper < 0x3E400000, values, inner)
    # For |x| >= 0.5, asin(x) = pi/2 - 2 * asin(sqrt(t)). The root is w + c, where w has the upper bits of the rounded root.
    t = (1.0 - size) * 0.5
    ratio = _arc_ratio(t)
    s = np.sqrt(t)
    w = _upper_half(s)
    c = (t - w * w) / (s + w)
    p = 2.0 * s * ratio - (_HALF_PI_LOW - 2.0 * c)
    outer = _QUARTER_PI - (p - (_QUARTER_PI - 2.0 * w))
    outer = np.where(upper >= 0x3FEF3333, _HALF_PI - (2.0 * (s + s * ratio) - _HALF_PI_LOW), outer)
    result = np.where(upper < 0x3FE00000, inner, np.copysign(outer, values))
    result = np.where(size == 1.0, values * _HALF_PI + values * _HALF_PI_LOW, result)
    return np.where(size <= 1.0, result, np.nan)


@_in_blocks
def acos(values: Doubles) -> Doubles:
    """``StrictMath.acos``; NaN outside -1 to 1."""
    size = np.abs(values)
    upper = _upper(size)
    inner = _HALF_PI - (values - (_HALF_PI_LOW - values * _arc_ratio(values * values)))
    inner = np.where(upper <= 0x3C600000, _HALF_PI + _HALF_PI_LOW, inner)
    z = (1.0 - size) * 0.5
    ratio = _arc_ratio(z)
    s = np.sqrt(z)
    negative = _PI - 2.0 * (s + (ratio * s - _HALF_PI_LOW))
    w = _upper_half(s)
    c = (z - w * w) / (s + w)
    positive = 2.0 * (w + (ratio * s + c))
    result = np.where(upper < 0x3FE00000, inner, np.where(np.signbit(values), negative, positive))
    result = np.where(size == 1.0, np.where(np.signbit(values), _PI + 2.0 * _HALF_PI_LOW, 0.0), result)
    return np.where(size <= 1.0, result, np.nan)


@_in_blocks
def cbrt(values: Doubles) -> Doubles:
    """``StrictMath.cbrt``: an estimate with a third of the exponent, a rational step, and one Newton step."""
    size = np.abs(values)
    upper = _upper(size)
    subnormal = upper < 0x00100000
    # The constants (B2 and B1 of fdlibm) restore the bias of the exponent after the division by 3.
    lifted = _upper(size * _TWO_54) // 3 + 696219795
    t = (np.where(subnormal, lifted, upper // 3 + 715094163) << 32).view(np.float64)
    r = t * t / size
    s = 19.0 / 35.0 + r * t
    t = t * (5.0 / 14.0 + (45.0 / 28.0) / (s + 99.0 / 70.0 + (-864.0 / 1225.0) / s))
    t = ((_upper(t) + 1) << 32).view(np.float64)
    r = size / (t * t)
    t = t + t * ((r - t) / (t + t + r))
    result = np.copysign(t, values)
    return np.where((size > 0) & (size < np.inf), result, values)
