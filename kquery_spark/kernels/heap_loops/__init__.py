"""The loops of ``bounded_heaps``, compiled by numba when this package is imported.

Only ``compiled.py`` imports it.
"""

from kquery_spark.kernels.heap_loops.insertion import insert

__all__ = ["insert"]
