"""Measured ratios of Spark's time to the engine's by kind of work, with their sources.

The ratios compare wall-clock times of whole queries of one kind, on two cores with warm sessions. ``low`` and ``high`` are
the smallest and the largest ratio of a kind's operations, ``expected`` is the geometric mean. ``weight`` is the time of an
operator relative to the other operators of its stage. Event logs do not contain it: it is a judgment, and part of the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kquery_spark.qualify.operators import Kind

_MICRO = "micro-sf1"
_PYTHON = "python-functions-10m"


@dataclass(frozen=True)
class Factor:
    """The ratio of Spark's time to the engine's for one kind of work, and where it was measured.

    source: a file of benchmarks/results without its ending, or a page of the documentation. operations: the queries of that
    file that measure the kind.
    """

    expected: float
    low: float
    high: float
    weight: float
    source: str
    operations: tuple[str, ...] = ()


_FILTERS = ("filter_few", "filter_half", "filter_text")
_GROUPS = ("group_few", "group_text", "group_many", "distinct")
_JOINS = ("join_small", "join_large", "join_outer", "join_semi")
_SORTS = ("sort", "sort_wide", "sort_text", "sort_clustered")
_UDFS = ("pandas_udf", "pandas_udf_filter", "arrow_batched_udf", "udf")
FACTORS: Mapping[Kind, Factor] = MappingProxyType(
    {
        Kind.SCAN: Factor(3.7, 2.6, 5.4, 3, _MICRO, ("scan_count", "scan_sum", "scan_compute")),
        # Spark fuses these two into the generated code of other operators, so their weights are small
        Kind.FILTER: Factor(2.2, 1.2, 4.3, 0.5, _MICRO, _FILTERS),
        Kind.PROJECT: Factor(3.0, 2.3, 3.7, 0.5, _MICRO, ("scan_compute", "many_rows")),
        Kind.AGGREGATE: Factor(3.5, 2.2, 5.0, 4, _MICRO, _GROUPS),
        Kind.JOIN: Factor(5.6, 2.8, 8.0, 4, _MICRO, _JOINS),
        # one measurement; the range is a judgment
        Kind.WINDOW: Factor(3.0, 1.5, 4.0, 5, "docs/performance-notes.md: row_number of 3 million rows"),
        Kind.SORT: Factor(2.9, 2.0, 4.0, 3, _MICRO, _SORTS),
        Kind.TOP_K: Factor(5.7, 4.2, 7.7, 3, _MICRO, ("top_k", "top_k_wide")),
        Kind.PYTHON: Factor(2.3, 1.4, 4.3, 20, _PYTHON, _UDFS),
        # not measured: the factor of filters
        Kind.OTHER: Factor(2.2, 1.2, 4.3, 1, _MICRO, _FILTERS),
    }
)

#: Measured speed-up / expected speed-up: for nine in ten of the queries derived from TPC-H, it is between these values
#: (benchmarks/results/qualification-tpch-sf1.json).
SPEED_UP_ERROR = (0.58, 2.4)
