"""Fixtures of the tests of sources: servers, and the choice of the Parquet reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.physical import split_columns
from kquery_spark.sources.parquet import chunk_pages, flat_chunk
from kquery_spark.sources.parquet import file as parquet_file
from kquery_spark.sources.parquet.column_reader import ColumnReader
from tests.support.s3 import s3_server


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The address of an S3 server without buckets of one's own."""
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture(params=[True, False], ids=["loops", "pyarrow"])
def check_reader(request, monkeypatch, kernels) -> Callable[[], None]:
    """Lets queries use the compiled loops, or hides the loops. Returns a function that checks which reader was used."""
    monkeypatch.setattr(FILE_LOOPS, "kernels", lambda *_: kernels if request.param else None)
    used: list[bool] = []
    real = ColumnReader.read

    def read(self: ColumnReader, rows: Any = None) -> Any:
        found = real(self, rows)
        used.append(found is not None)
        return found

    monkeypatch.setattr(ColumnReader, "read", read)

    def check() -> None:
        assert all(used)
        assert bool(used) == request.param

    return check


@pytest.fixture
def pages_of_small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the size limits below which chunks are read as a whole instead of only the pages with the required rows."""
    monkeypatch.setattr(chunk_pages, "_MIN_PAGED_ROWS", 0)
    monkeypatch.setattr(parquet_file, "_MIN_PAGED_BYTES_IN_LOOPS", 0)


@pytest.fixture
def dictionaries_of_any_size(monkeypatch: pytest.MonkeyPatch, kernels: ModuleType) -> None:
    """Lets conditions be evaluated on dictionaries in row groups of any size, also if few rows share a value."""
    monkeypatch.setattr(flat_chunk, "_MIN_ROWS_PER_VALUE", 1)
    monkeypatch.setattr(split_columns, "_MIN_INDEXED_ROWS", 0)
