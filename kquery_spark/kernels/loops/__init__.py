"""Loops that neither pyarrow nor numpy offers, compiled by numba when this package is imported.

Only ``compiled.py`` imports it.
"""

from kquery_spark.kernels.loops.footers import scan
from kquery_spark.kernels.loops.parquet import codes, codes_of, matching, matching_of, where
from kquery_spark.kernels.loops.text import SLACK, field_strings, separators

__all__ = [
    "SLACK",
    "codes",
    "codes_of",
    "field_strings",
    "matching",
    "matching_of",
    "scan",
    "separators",
    "where",
]
