"""The loops of ``bounded_heaps``, which numba compiles when this package is imported.

Only ``compiled.py`` imports it.
"""

from kquery_spark.kernels.heap_loops.insertion import insert

__all__ = ["insert"]
