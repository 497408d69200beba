"""Loops over JSON strings, which numba compiles when this package is imported.

The modules build on each other: ``tokens`` finds the end of a token, ``scan`` validates a document and finds the value at a
path, ``write`` copies values, and ``strings``, ``matches``, ``entries`` and ``variants`` have the entry points. None of them
builds a tree: all work on byte positions. A document that they cannot handle gets the status ODD, and Python parses it.

Only ``compiled.py`` imports it.
"""

from kquery_spark.kernels.json_loops.entries import json_entries
from kquery_spark.kernels.json_loops.matches import json_matches
from kquery_spark.kernels.json_loops.strings import json_lengths, json_names, json_values
from kquery_spark.kernels.json_loops.variants import json_variants

__all__ = ["json_entries", "json_lengths", "json_matches", "json_names", "json_values", "json_variants"]
