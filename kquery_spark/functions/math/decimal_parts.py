"""Decimals as integers that numpy computes with: what is before and after the point."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, decimal_words

_MAX_SCALE = 18  # of fractions that int64 holds


@dataclass(frozen=True)
class DecimalParts:
    """Decimals of one scale: their sizes' whole parts and unscaled fractions, and which are negative; 0 for NULL."""

    whole: Int64s
    fraction: Int64s
    negative: npt.NDArray[np.bool_]
    scale: int


def decimal_parts(decimals: pa.Array) -> DecimalParts | None:
    """The parts of decimal128 values; None if one does not fit int64."""
    scale = decimals.type.scale
    if scale > _MAX_SCALE:
        return None
    if decimals.null_count:
        decimals = decimals.fill_null(pa.scalar(Decimal(0)).cast(decimals.type))
    if decimals.type.precision == scale:  # Arrow truncates to what the type has room for
        decimals = decimals.cast(t.decimal(scale + 1, scale))
    size = pc.abs(decimals)
    try:
        whole = pc.trunc(size).cast(t.LONG).to_numpy()
    except pa.ArrowInvalid:
        return None
    # modulo 2^64, as the fraction is in the low word alone
    fraction = decimal_words(size)[:, 0] - whole * np.int64(10**scale)
    return DecimalParts(whole, fraction, decimal_words(decimals)[:, 1] < 0, scale)
