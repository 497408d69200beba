"""Fixtures: a file of small row groups, and a list of the number of row groups of each read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.physical.coalesced_splits.scans import GROUP_ROWS, ROWS
from tests.support.recorded_reads import record_reads


@pytest.fixture(scope="module")
def table() -> pa.Table:
    random = np.random.default_rng(5)
    few, many = random.integers(0, 100, ROWS), random.integers(0, 1 << 40, ROWS)
    nulls = random.random(ROWS) < 0.1
    words = np.char.add("word", few.astype(str)).astype(object)
    return pa.table(
        {
            "k": pa.array(few, pa.int64(), mask=nulls),
            "s": pa.array(words, pa.string(), mask=nulls),
            "plain": pa.array(many, pa.int64()),
            "x": pa.array(random.random(ROWS)),
        }
    )


@pytest.fixture
def path(table: pa.Table, tmp_path: Path) -> Path:
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=GROUP_ROWS)
    return tmp_path / "t.parquet"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of row groups of each read."""
    return record_reads(monkeypatch)
