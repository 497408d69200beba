"""Loops that neither pyarrow nor numpy offers, compiled by numba when this package is imported.

Only ``compiled.py`` imports it.
"""

from kquery_spark.kernels.loops.json import json_lengths, json_names, json_values
from kquery_spark.kernels.loops.parquet import codes, codes_of, matching, matching_of, where
from kquery_spark.kernels.loops.text import SLACK, field_texts, separators

__all__ = [
    "SLACK",
    "codes",
    "codes_of",
    "field_texts",
    "json_lengths",
    "json_names",
    "json_values",
    "matching",
    "matching_of",
    "separators",
    "where",
]
