"""Small row groups of remote Parquet files that are fetched at the same time are read together."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import SourceError
from kquery_spark.expr import Call, Column, Expr, Literal
from kquery_spark.physical.operators.base import TaskContext
from kquery_spark.physical.operators.scan import ScanExec
from kquery_spark.sources.base import Source
from kquery_spark.sources.deletes.deletion_vectors import DeletedPositions
from kquery_spark.sources.deletes.live_rows import LiveRows
from kquery_spark.sources.parquet import chunk_pages
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.sources.prefetch import byte_ranges
from kquery_spark.sources.prefetch.byte_ranges import ByteRange
from kquery_spark.types import names as t
from tests.sources.remote_parquet.fetches import (
    ROWS,
    chunk_of,
    held,
    is_released,
)
from tests.support.recorded_reads import record_reads
from tests.support.s3 import new_bucket, storage_options

SMALL_GROUP_ROWS, RARE = 10_000, 305_000


@pytest.fixture(scope="module")
def small(s3_endpoint: str, table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A file of small row groups on this machine and in a bucket.

    In ``few``, one row has the value -1, and all rows of the last five row groups have the value -2.
    """
    few = table["few"].to_numpy().copy()
    few[RARE] = -1
    few[-5 * SMALL_GROUP_ROWS :] = -2
    local = tmp_path_factory.mktemp("small") / "t.parquet"
    pq.write_table(
        table.drop_columns("nested").set_column(1, "few", pa.array(few)),
        local, row_group_size=SMALL_GROUP_ROWS, write_page_index=True, write_statistics=["id"],
    )  # fmt: skip
    with new_bucket(s3_endpoint, "small").open_output_stream("small/t.parquet") as out:
        out.write(local.read_bytes())
    return str(local), "s3://small/t.parquet"


@pytest.fixture
def read_together(monkeypatch: pytest.MonkeyPatch, kernels: ModuleType) -> list[int]:
    """The number of row groups of each read."""
    return record_reads(monkeypatch)


@pytest.fixture
def sources(s3_endpoint: str, small: tuple[str, str]) -> list[ParquetSource]:
    """The source of the local file, and that of the file in the bucket."""
    kq.ExecutionContext().register_parquet("t", small[1], storage_options=storage_options(s3_endpoint))
    return [parquet_source([path]) for path in small]


def scanned(source: Source, *filters: Expr, task: TaskContext | None = None) -> pa.Table:
    scan = ScanExec(0, "t", source, ("id", "some", "text"), filters, splits=tuple(source.splits()))
    batches = [batch.to_arrow() for batch in scan.run(task or TaskContext())]
    columns = [pa.array([v for b in batches for v in b.column(n).to_pylist()]) for n in scan.columns]
    return pa.table(columns, names=list(scan.columns))


@pytest.mark.parametrize("deletes", [False, True], ids=["all rows", "live rows"])
@pytest.mark.parametrize(
    "filters",
    [
        (),
        (Call.of("lt", Column("some", t.LONG, True), Literal(9, t.LONG)),),
        (Call.of("gt", Column("amount", t.DOUBLE, True), Literal(0.99, t.DOUBLE)),),
        (Call.of("isnull", Column("some", t.LONG, True)), Call.of("gt", Column("id", t.LONG, True), Literal(7, t.LONG))),
    ],
    ids=["all", "on a dictionary", "on plain numbers", "on NULL"],
)  # fmt: skip
def test_small_row_groups_that_are_fetched_at_the_same_time_are_read_together(
    sources: list[ParquetSource], read_together: list[int], filters: tuple[Expr, ...], deletes: bool
) -> None:
    deleted = np.array([0, 9_999, *range(59_999, 70_001), *range(80_000, 90_000, 3), ROWS - 1], "<i8")
    vector = DeletedPositions(len(deleted), deleted.tobytes()) if deletes else None
    here, there = (LiveRows(source, (vector,)) for source in sources)
    expected = scanned(here.without_kernels(), *filters)
    assert set(read_together) == {1}
    read_together.clear()
    assert scanned(there, *filters).equals(expected)
    assert expected.num_rows > 100
    assert read_together[:3] == [1, 2, 3 if deletes else 4]
    assert sum(read_together) == ROWS // SMALL_GROUP_ROWS
    assert max(read_together) == 4
    assert not held(sources[1])


def test_every_byte_of_row_groups_that_are_read_together_is_requested_once(
    sources: list[ParquetSource], small: tuple[str, str], requests: list[ByteRange], read_together: list[int]
) -> None:
    task = TaskContext()
    assert scanned(sources[1], task=task).num_rows == ROWS
    assert max(read_together) == 4
    chunks = [chunk_of(small[0], g, c) for g in range(ROWS // SMALL_GROUP_ROWS) for c in (0, 2, 4)]
    assert all(sum(request.contains(chunk) for request in requests) == 1 for chunk in chunks)
    (operator,) = task.metrics.values()
    assert operator.extra["bytes_read"] == sum(request.size for request in requests)


def test_row_groups_without_passing_rows_are_read_alone_and_without_other_columns(
    sources: list[ParquetSource], small: tuple[str, str], requests: list[ByteRange], read_together: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(byte_ranges, "MAX_GAP_BYTES", 0)
    rare = Call.of("eq", Column("few", t.INT, True), Literal(-1, t.INT))
    assert scanned(sources[1], rare)["id"].to_pylist() == [RARE]
    assert read_together.count(1) > 30
    groups = range(ROWS // SMALL_GROUP_ROWS)
    read = [g for g in groups if any(request.contains(chunk_of(small[0], g, 4)) for request in requests)]
    assert RARE // SMALL_GROUP_ROWS in read
    assert len(read) < 15


def test_other_columns_are_fetched_later_if_rows_of_row_groups_that_are_read_together_pass(
    sources: list[ParquetSource], read_together: list[int]
) -> None:
    negative = Call.of("lt", Column("few", t.INT, True), Literal(0, t.INT))
    here, there = (scanned(source, negative) for source in sources)
    assert there.equals(here)
    assert there["id"].to_pylist() == [RARE, *range(ROWS - 5 * SMALL_GROUP_ROWS, ROWS)]
    assert read_together[-2:] == [1, 4]
    assert not held(sources[1])


def test_a_row_group_whose_pages_are_excluded_is_read_alone(
    sources: list[ParquetSource], read_together: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_pages, "_MIN_PAGED_ROWS", 0)
    between = [
        Call.of("gteq", Column("id", t.LONG, True), Literal(98_000, t.LONG)),
        Call.of("lt", Column("id", t.LONG, True), Literal(171_000, t.LONG)),
    ]
    assert scanned(sources[1], *between)["id"].to_pylist() == list(range(98_000, 171_000))
    assert max(read_together) > 1
    assert not held(sources[1])


@pytest.mark.parametrize(
    "filters", [(), (Call.of("gteq", Column("some", t.LONG, True), Literal(0, t.LONG)),)]
)
def test_damage_in_row_groups_that_are_read_together_is_named(
    s3_endpoint: str, small: tuple[str, str], read_together: list[int], filters: tuple[Expr, ...]
) -> None:
    data = bytearray(Path(small[0]).read_bytes())
    start = pq.read_metadata(small[0]).row_group(9).column(2).data_page_offset
    data[start : start + 40] = b"\xff" * 40
    with new_bucket(s3_endpoint, "damaged").open_output_stream("damaged/t.parquet") as out:
        out.write(data)
    kq.ExecutionContext().register_parquet(
        "t", "s3://damaged/t.parquet", storage_options=storage_options(s3_endpoint)
    )
    source = parquet_source(["s3://damaged/t.parquet"])
    with pytest.raises(SourceError, match=r"row group 9 of s3://damaged/t\.parquet"):
        scanned(source, *filters)
    assert max(read_together) == 4
    assert is_released(source)


def test_a_file_that_changes_while_row_groups_are_read_together_is_an_error(
    s3_endpoint: str, small: tuple[str, str], table: pa.Table, read_together: list[int]
) -> None:
    fs, path = new_bucket(s3_endpoint, "changing"), "changing/t.parquet"
    with fs.open_output_stream(path) as out:
        out.write(Path(small[0]).read_bytes())
    kq.ExecutionContext().register_parquet("t", f"s3://{path}", storage_options=storage_options(s3_endpoint))
    source = parquet_source([f"s3://{path}"])
    scan = ScanExec(0, "t", source, ("id", "text"), splits=tuple(source.splits()))
    batches = scan.run(TaskContext())
    rows = [next(batches).num_rows for _ in range(2)]
    with fs.open_output_stream(path) as out:
        out.write(b"something else")
    with pytest.raises(SourceError, match=r"s3://changing/t\.parquet"):
        rows += [batch.num_rows for batch in batches]
    assert next(batches, None) is None
    assert sum(rows) < ROWS
    assert is_released(source)


def test_a_scan_that_stops_releases_row_groups_that_are_read_together(
    sources: list[ParquetSource], read_together: list[int]
) -> None:
    scan = ScanExec(0, "t", sources[1], ("id", "text"), splits=tuple(sources[1].splits()))
    batches = scan.execute(TaskContext())
    for _ in range(3):
        next(batches)
    assert read_together == [1, 2, 4]
    assert len(held(sources[1])) >= 4
    batches.close()  # type: ignore[attr-defined]
    assert is_released(sources[1])
