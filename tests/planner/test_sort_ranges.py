"""Ranges of a sort key from samples of a scan."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from kquery_spark.expr import SortKey
from kquery_spark.kernels.utf8 import strings_from_bytes
from kquery_spark.logical import Scan, Sort
from kquery_spark.planner.sort_ranges import sort_ranges
from kquery_spark.sources.csv.source import CsvSource, csv_source
from kquery_spark.sources.memory import memory_source


def test_strings_that_are_not_valid_utf8_are_no_bounds() -> None:
    scan = Scan(
        "t", memory_source(pa.table({"s": strings_from_bytes([b"a", b"\xe9", b"b", b"c\xff", b"d"])}))
    )
    ranges = sort_ranges(Sort(scan, (SortKey(scan.column("s"), True, True),)), 3)
    assert ranges is not None
    assert ranges.bounds == ("b", "d")


@pytest.fixture
def numbers_file(tmp_path: Path) -> Path:
    """A CSV file of 11 MB."""
    path = tmp_path / "numbers.csv"
    path.write_text("".join(f"{i},{'x' * 100}\n" for i in range(100_000)))
    return path


def test_planning_parses_only_some_lines_of_a_text_file(
    numbers_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []
    read_block = CsvSource._read_block

    def spy(source: CsvSource, block: bytes, columns: list[str]) -> tuple[int, list[pa.Array]]:
        parsed.append(len(block))
        return read_block(source, block, columns)

    monkeypatch.setattr(CsvSource, "_read_block", spy)
    source = csv_source([str(numbers_file)], pa.schema([("a", pa.int64()), ("b", pa.string())]))
    scan = Scan("t", source)
    ranges = sort_ranges(Sort(scan, (SortKey(scan.column("a"), True, True),)), 4)
    assert ranges is not None
    shares = [(high - low) / 100_000 for low, high in pairwise((0, *ranges.bounds, 100_000))]
    assert min(shares) > 0.1, "the lines are in order, and all parts of the file are sampled"
    assert len(parsed) == 8
    assert sum(parsed) < 600_000


def test_a_large_file_that_must_be_parsed_as_a_whole_is_not_sampled(numbers_file: Path) -> None:
    source = csv_source(
        [str(numbers_file)], pa.schema([("a", pa.int64()), ("b", pa.string())]), multiLine=True
    )
    scan = Scan("t", source)
    assert sort_ranges(Sort(scan, (SortKey(scan.column("a"), True, True),)), 4) is None
