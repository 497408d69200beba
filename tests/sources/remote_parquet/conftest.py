"""Fixtures: the same Parquet file on this machine and in a bucket, and the requests for the latter."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.sources.input_file import InputFile
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.sources.prefetch.byte_ranges import ByteRange
from tests.sources.remote_parquet.fetches import GROUP_ROWS, ROWS
from tests.support.s3 import new_bucket, storage_options


@pytest.fixture(scope="module")
def table() -> pa.Table:
    numbers = np.random.default_rng(3)
    return pa.table(
        {
            "id": np.arange(ROWS),
            "few": numbers.integers(0, 9, ROWS).astype(np.int32),
            "some": pa.array(numbers.integers(0, 500, ROWS), mask=numbers.random(ROWS) < 0.1),
            "amount": numbers.random(ROWS),
            "text": [f"t{i}" for i in numbers.integers(0, 30, ROWS)],
            "nested": pa.array([{"a": i, "b": [i]} for i in range(ROWS)]),
        }
    )


@pytest.fixture(scope="module")
def stored(s3_endpoint: str, table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The same file on this machine and in a bucket."""
    local = tmp_path_factory.mktemp("stored") / "t.parquet"
    pq.write_table(table, local, row_group_size=GROUP_ROWS, write_page_index=True)
    with new_bucket(s3_endpoint, "ranges").open_output_stream("ranges/t.parquet") as out:
        out.write(local.read_bytes())
    return str(local), "s3://ranges/t.parquet"


@pytest.fixture
def contexts(s3_endpoint: str, stored: tuple[str, str]) -> list[kq.ExecutionContext]:
    contexts = []
    for path, options in zip(stored, (None, storage_options(s3_endpoint)), strict=True):
        ctx = kq.ExecutionContext()
        ctx.register_parquet("t", path, storage_options=options)
        contexts.append(ctx)
    return contexts


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[ByteRange]:
    """The requests that fetch column chunks."""
    made: list[ByteRange] = []
    real = InputFile.read_unchecked

    def read_unchecked(self: InputFile, nbytes: int, offset: int) -> bytes:
        made.append(ByteRange(offset, nbytes))
        return real(self, nbytes, offset)

    monkeypatch.setattr(InputFile, "read_unchecked", read_unchecked)
    return made


@pytest.fixture
def far(contexts: list[kq.ExecutionContext], stored: tuple[str, str]) -> ParquetSource:
    return parquet_source([stored[1]])
