"""The loops of aggregates, which numba compiles when this package is imported.

Only ``compiled.py`` imports it.
"""

from kquery_spark.kernels.aggregate_loops.insertion import insert
from kquery_spark.kernels.aggregate_loops.numbering import UNSEEN, number_codes
from kquery_spark.kernels.aggregate_loops.sums import LANES, sum_groups

__all__ = ["LANES", "UNSEEN", "insert", "number_codes", "sum_groups"]
