"""Ranges count as Python's do, in splits whose bounds are known."""

import numpy as np
import pytest

from kquery_spark.sources import ranges
from kquery_spark.sources.ranges import RangeSource


@pytest.mark.parametrize(
    "limits",
    [
        (0, 10, 1),
        (10, -10, -3),
        (5, 5, 1),
        (3, 1, 1),
        (0, 1000, 7),
        (2**63 - 9, 2**63 - 1, 3),
        (-(2**63), 0, 2**61),
    ],
)
def test_the_numbers_of_a_range_and_their_bounds(monkeypatch, limits):
    monkeypatch.setattr(ranges, "_SPLIT_ROWS", 64)
    monkeypatch.setattr(ranges, "_BATCH_ROWS", 10)
    source = RangeSource(*limits)
    found = []
    for split in source.splits():
        part = [v for b in source.read(split, ["id"]) for v in b.columns[0].to_pylist()]
        assert len(part) == split.rows
        known = source.ranges(split, "id")
        assert (known.low, known.high, known.nulls) == (min(part), max(part), 0)
        found += part
    assert found == list(range(*limits))
    assert source.row_count() == len(found)
    assert sum(b.num_rows for s in source.splits() for b in source.read(s, [])) == len(found)


def test_a_long_range_has_few_splits():
    source = RangeSource(0, 10**13)
    splits = source.splits()
    assert len(splits) <= 4096
    assert sum(s.rows for s in splits) == 10**13
    last = next(source.read(splits[-1], ["id"])).columns[0]
    assert np.asarray(last)[0] == source.ranges(splits[-1], "id").low
