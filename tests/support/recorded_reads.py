"""Records which row groups a scan reads together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kquery_spark.physical.filtering_reader import FilteringReader
from kquery_spark.sources.base import Split
from kquery_spark.types.batch import Batch


def record_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which each read of a scan appends its number of row groups."""
    counts: list[int] = []
    read = FilteringReader._read

    def recorded(self: FilteringReader, split: Split, rows: Any) -> Iterator[Batch]:
        counts.append(len(split.pieces))
        return read(self, split, rows)

    monkeypatch.setattr(FilteringReader, "_read", recorded)
    return counts
