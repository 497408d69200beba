"""Loops over variants, which numba compiles when this package is imported.

Only ``compiled.py`` imports it.
"""

from kquery_spark.kernels.variant_loops.paths import variant_values
from kquery_spark.kernels.variant_loops.shredded import rebuilt_variants
from kquery_spark.kernels.variant_loops.slices import copy_slices
from kquery_spark.kernels.variant_loops.strings import variant_strings

__all__ = ["copy_slices", "rebuilt_variants", "variant_strings", "variant_values"]
