"""Converts floats to strings and decimals: ``Double.toString``, and the decimal that this string spells."""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.types import names as t

CONTEXT = decimal.Context(prec=400, Emax=999999, Emin=-999999)


# Numbers below these have few significant bits, and their digits depend on the version of Java.
_TINY = 5e-324 * 1024
_TINY_SINGLE = float(np.float32(1e-45)) * 1024

# ``FloatingDecimal.insignificantDigitsNumber`` of Java 17: the number of last digits that it rounds to zeros, by the
# number of bits (minus two) that a whole number has beyond the precision of its type.
_INSIGNIFICANT = (
    0,
    0,
    0,
    0,
    1,
    1,
    1,
    2,
    2,
    2,
    3,
    3,
    3,
    3,
    4,
    4,
    4,
    5,
    5,
    5,
    6,
    6,
    6,
    6,
    7,
    7,
    7,
    8,
    8,
    8,
    9,
    9,
    9,
    9,
    10,
    10,
    10,
    11,
    11,
)


def shortest(value: float, single: bool = False) -> str:
    """The shortest decimal that parses to the value, which Java prints since version 19.

    Java 17 prints other digits for some whole numbers that need more bits than the type has (1.8e16 to 3e25 for double).
    For such a value, Spark's result depends on the version of Java, so the engine declines it.
    """
    text = str(np.float32(value)) if single else repr(value)
    size = abs(value)
    if size < (2.0**25 if single else 2.0**54) or size > (3e38 if single else 1e26):
        return text
    exact, shown = int(size), abs(int(decimal.Decimal(text)))
    if exact == shown:
        return text
    if size < 2.0**63:
        drop = _INSIGNIFICANT[exact.bit_length() - 1 - (24 if single else 53) - 1]
        unit = 10**drop
        if (exact + unit // 2) // unit * unit == shown:
            return text
    raise Unsupported("the digits of a floating-point number past 2^54 depend on the version of the JVM")


_SMALLEST = {False: (5e-324, "4.9E-324"), True: (float(np.float32(1e-45)), "1.4E-45")}  # by single


def java_text(value: float, single: bool = False) -> str:
    """``Double.toString`` / ``Float.toString``: plain from 1e-3 to 1e7, else one digit, point, digits, ``E``, exponent."""
    if value != value:
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return sign + "Infinity"
    return sign + ("0.0" if value == 0 else _positive_text(abs(value), single))


def _positive_text(value: float, single: bool) -> str:
    smallest, known = _SMALLEST[single]
    if value == smallest:
        return known
    named = decimal.Decimal(shortest(value, single))
    # Java 17 prints more digits than necessary for powers of two, and fewer for the smallest numbers, which have few bits
    power = math.frexp(value)[0] == 0.5 and len(named.as_tuple().digits) < (9 if single else 17)
    if value < (_TINY_SINGLE if single else _TINY) or (power and named != decimal.Decimal(value)):
        raise Unsupported("the digits of this floating-point number depend on the version of the JVM")
    _, digits, exponent = named.normalize(CONTEXT).as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)
    return _plain_text(text, point) if 1e-3 <= value < 1e7 else f"{text[0]}.{text[1:] or '0'}E{point - 1}"


def _plain_text(digits: str, point: int) -> str:
    """Format digits with a point after ``point`` of them, and at least one digit on both sides."""
    if point <= 0:
        return f"0.{'0' * -point}{digits}"
    return f"{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"


def round_scaled(values: npt.NDArray[np.float64], scale: int) -> tuple[Any, Any]:
    """Round ``values * 10**scale`` to integral floats; also returns a mask of the rows whose result is certain.

    Spark rounds the shortest decimal of a value, not its binary expansion. The product in floating point differs from it by
    at most a few units in the last place. So the result is certain unless the product is that close to a tie (x.5).
    """
    with np.errstate(all="ignore"):
        power = np.float64(10.0) ** abs(scale)  # infinite above 308
        scaled = values * power if scale >= 0 else values / power
        size = np.abs(scaled)
        whole = np.floor(size)
        fraction = size - whole
        certain = (size < 2.0**51) & (np.abs(fraction - 0.5) > np.maximum(size, 1.0) * 1e-15)
        result = np.where(fraction > 0.5, whole + 1, whole)
    return np.copysign(result, values), certain


def exact_decimal(value: float) -> decimal.Decimal:
    """The decimal that ``BigDecimal.valueOf`` returns for a double: the one that its string spells."""
    return decimal.Decimal(shortest(value))


def text_array(data: pa.Array) -> pa.Array:
    """The strings of a float or double array, as Java prints them."""
    single = data.type == t.FLOAT
    size = pc.abs(data)
    common = pc.and_(
        pc.less(size, pa.scalar(1e7, data.type)), pc.greater_equal(size, pa.scalar(1e-3, data.type))
    )
    common = pc.or_(common, pc.equal(data, pa.scalar(0.0, data.type)))
    text = data.cast(t.STRING)
    text = pc.if_else(pc.match_substring(text, "."), text, pc.binary_join_element_wise(text, ".0", ""))
    odd = pc.and_(pc.invert(common), pc.is_valid(data))
    if not pc.any(odd).as_py():
        return text
    rare = data.filter(odd)
    keys = rare.view(pa.int32() if single else pa.int64()).dictionary_encode()
    strings = [java_text(v, single) for v in keys.dictionary.view(data.type).to_pylist()]
    return pc.replace_with_mask(text, odd, pa.array(strings, t.STRING).take(keys.indices))
