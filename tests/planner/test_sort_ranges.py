"""Ranges of a sort key from samples of a scan."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.expr import SortKey
from kquery_spark.kernels.utf8 import strings_from_bytes
from kquery_spark.logical import Scan, Sort
from kquery_spark.planner.sort_ranges import sort_ranges
from kquery_spark.sources.memory import memory_source


def test_strings_that_are_not_valid_utf8_are_no_bounds() -> None:
    scan = Scan(
        "t", memory_source(pa.table({"s": strings_from_bytes([b"a", b"\xe9", b"b", b"c\xff", b"d"])}))
    )
    ranges = sort_ranges(Sort(scan, (SortKey(scan.column("s"), True, True),)), 3)
    assert ranges is not None
    assert ranges.bounds == ("b", "d")
