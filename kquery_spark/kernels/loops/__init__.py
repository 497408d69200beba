"""Loops that decode Parquet and split delimited text, compiled by numba when this package is imported.

- ``memory``: unchecked loads and stores, as building blocks
- ``footers``: parses footers; ``parquet_pages``: parses page headers
- ``parquet``: unpacks dictionary indices of up to 16 bits, and compares them with a selection while they are unpacked
- ``parquet_values``, ``parquet_strings``: decode chunks to Arrow buffers
- ``text``: splits lines of delimited text

Only ``compiled.py`` imports this package.
"""

from kquery_spark.kernels.loops.footers import scan
from kquery_spark.kernels.loops.parquet import codes, codes_of, matching, matching_of, where
from kquery_spark.kernels.loops.parquet_pages import page_table
from kquery_spark.kernels.loops.parquet_strings import strings
from kquery_spark.kernels.loops.parquet_values import values
from kquery_spark.kernels.loops.text import SLACK, field_strings, separators

__all__ = [
    "SLACK",
    "codes",
    "codes_of",
    "field_strings",
    "matching",
    "matching_of",
    "page_table",
    "scan",
    "separators",
    "strings",
    "values",
    "where",
]
