"""Loops that decode Parquet, split delimited text, and search strings, compiled by numba when this package is imported.

- ``memory``: unchecked loads and stores, as building blocks
- ``footers``: parses footers; ``parquet_pages``: parses page headers
- ``parquet_codecs``: decompresses pages with ``snappy`` or ``lz4``; both copy bytes with ``block_copies``
- ``parquet_runs``, ``parquet_levels``: decode runs of indices and levels; ``parquet_page_parts``: decodes those of a page
- ``parquet_numbers``: converts numbers that Arrow stores in another way, with ``parquet_deltas`` and ``parquet_splits``;
  ``parquet_deltas`` also converts delta-encoded strings
- ``parquet_indices``: decodes the indices of a chunk, or compares them with a selection while they are unpacked
- ``parquet_values``, ``parquet_strings``: decode chunks to Arrow buffers
- ``text``: splits lines of delimited text
- ``substrings``: searches strings for literals

Only ``compiled.py`` imports this package.
"""

from kquery_spark.kernels.loops.block_copies import PADDING
from kquery_spark.kernels.loops.footers import scan
from kquery_spark.kernels.loops.parquet_codecs import decompress_pages
from kquery_spark.kernels.loops.parquet_deltas import plain_strings
from kquery_spark.kernels.loops.parquet_indices import (
    decode_indices,
    decode_selected_indices,
    filter_chunk,
    filter_indices,
    filter_selected_rows,
)
from kquery_spark.kernels.loops.parquet_numbers import convert_pages
from kquery_spark.kernels.loops.parquet_pages import page_table
from kquery_spark.kernels.loops.parquet_strings import decode_strings
from kquery_spark.kernels.loops.parquet_values import decode_values
from kquery_spark.kernels.loops.substrings import check_order, find_literal
from kquery_spark.kernels.loops.text import SLACK, field_strings, separators

__all__ = [
    "PADDING",
    "SLACK",
    "check_order",
    "convert_pages",
    "decode_indices",
    "decode_selected_indices",
    "decode_strings",
    "decode_values",
    "decompress_pages",
    "field_strings",
    "filter_chunk",
    "filter_indices",
    "filter_selected_rows",
    "find_literal",
    "page_table",
    "plain_strings",
    "scan",
    "separators",
]
