"""Loops over JSON strings, compiled by numba when this package is imported.

Only ``compiled.py`` imports it.
"""

from kquery_spark.kernels.json_loops.entries import json_entries
from kquery_spark.kernels.json_loops.matches import json_matches
from kquery_spark.kernels.json_loops.strings import json_lengths, json_names, json_values
from kquery_spark.kernels.json_loops.variants import json_variants

__all__ = ["json_entries", "json_lengths", "json_matches", "json_names", "json_values", "json_variants"]
