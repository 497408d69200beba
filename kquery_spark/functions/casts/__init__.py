"""CAST and TRY_CAST: a table that maps (source family, target family) to a kernel; each module registers its kernels."""

from kquery_spark.functions.casts import numeric as _numeric
from kquery_spark.functions.casts import strings as _strings
from kquery_spark.functions.casts import temporal as _temporal
from kquery_spark.functions.casts import times as _times
from kquery_spark.functions.casts.table import (
    CAST_CHANGES,
    TIME_DECIMALS,
    can_be_null,
    can_raise,
    cast,
    check_cast,
    prints_decimals,
)

__all__ = [
    "CAST_CHANGES",
    "TIME_DECIMALS",
    "can_be_null",
    "can_raise",
    "cast",
    "check_cast",
    "prints_decimals",
]
del _numeric, _strings, _temporal, _times
