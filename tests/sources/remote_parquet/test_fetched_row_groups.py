"""Row groups of remote Parquet files are prefetched, and have the same rows as those of local files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import SourceError
from kquery_spark.expr import Call, Column, Literal
from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.physical import prefetch
from kquery_spark.physical.operators.base import TaskContext
from kquery_spark.physical.operators.scan import ScanExec
from kquery_spark.physical.prefetch import PrefetchRequest
from kquery_spark.sources.base import ColumnRange
from kquery_spark.sources.deletes.deletion_vectors import DeletedPositions, DeletionVector
from kquery_spark.sources.deletes.live_rows import DELETION_VECTOR_CACHE, LiveRows
from kquery_spark.sources.parquet import chunk_pages, column_reader, page_index
from kquery_spark.sources.parquet import source as parquet_source_module
from kquery_spark.sources.parquet.open_files import forget_file, open_file
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.sources.prefetch import byte_ranges, fetched_pieces, fetched_ranges, fetching
from kquery_spark.types import names as t
from tests.sources.remote_parquet.fetches import (
    GROUP_ROWS,
    ROWS,
    are_requested,
    chunk_of,
    held,
    is_released,
    read_one_by_one,
)
from tests.support.s3 import new_bucket, storage_options


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*), sum(id), sum(some), count(text) FROM t",
        "SELECT few, sum(id), max(text) FROM t GROUP BY few ORDER BY few",
        "SELECT sum(id), max(nested.a) FROM t WHERE few = 3 AND some > 490",
        "SELECT * FROM t WHERE id BETWEEN 150000 AND 150004 ORDER BY id",
        "SELECT sum(id) FROM t WHERE id > 399999",
        "SELECT sum(a.id) FROM t a JOIN t b ON a.id = b.id WHERE b.few = 5 AND b.some IS NULL",
        "SELECT id, amount FROM t ORDER BY amount DESC LIMIT 5",
    ],
)
def test_rows_are_those_of_a_local_file(contexts, sql):
    here, there = (ctx.sql(sql).to_arrow() for ctx in contexts)
    assert there.equals(here)
    assert there.num_rows


def test_row_groups_without_rows(s3_endpoint, tmp_path):
    path, schema = tmp_path / "empty.parquet", pa.schema([("a", pa.int64()), ("b", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for rows in (0, 3, 0):
            writer.write_table(pa.table({"a": range(rows), "b": ["x"] * rows}, schema))
    with new_bucket(s3_endpoint, "empty").open_output_stream("empty/t.parquet") as out:
        out.write(path.read_bytes())
    ctx = kq.ExecutionContext()
    ctx.register_parquet("t", "s3://empty/t.parquet", storage_options=storage_options(s3_endpoint))
    assert ctx.sql("SELECT a, b FROM t ORDER BY a").to_arrow().to_pylist()[2] == {"a": 2, "b": "x"}
    assert ctx.sql("SELECT sum(a) AS s FROM t WHERE b = 'x'").to_arrow().to_pylist() == [{"s": 3}]


def test_columns_with_dictionaries_are_read_as_indices(contexts, monkeypatch):
    assert FILE_LOOPS.compile_now() is not None
    asked = []
    real = column_reader.ColumnReader.packed_indices
    monkeypatch.setattr(
        column_reader.ColumnReader, "packed_indices", lambda self: asked.append(self) or real(self)
    )
    contexts[1].sql("SELECT sum(id) FROM t WHERE some = 3").collect()
    assert asked


def test_the_next_row_group_is_fetched_while_one_is_read(far, stored, requests, monkeypatch):
    monkeypatch.setattr(prefetch, "_MAX_SPLITS_AHEAD", 1)
    splits, chunks = far.splits(), [[chunk_of(stored[0], g, c) for c in (0, 3)] for g in range(4)]
    reading = read_one_by_one(far, splits, lambda split: PrefetchRequest(["id", "amount"]))
    for group in range(4):
        split = next(reading)
        assert are_requested(requests, *chunks[group], *chunks[min(group + 1, 3)])
        made = len(requests)
        (batch,) = far.read(split, ["amount", "id"])
        assert batch.columns[1].to_pylist()[:2] == [group * GROUP_ROWS, group * GROUP_ROWS + 1]
        assert len(requests) == made
        assert sorted(held(far)) == [g for g in (group, group + 1) if g < 4]
    assert next(reading, None) is None
    assert not held(far)


def test_row_groups_that_statistics_rule_out_are_not_fetched(far, stored, requests):
    splits, chunks = far.splits(), [chunk_of(stored[0], g, 0) for g in range(4)]
    reading = read_one_by_one(
        far, splits, lambda split: None if split.pieces in ((0,), (2,)) else PrefetchRequest(["id"])
    )
    assert next(reading) == splits[0]
    assert are_requested(requests, chunks[1])
    assert [next(reading), next(reading), next(reading)] == splits[1:]
    assert are_requested(requests, chunks[3])
    assert not any(request.contains(chunks[g]) for request in requests for g in (0, 2))
    reading.close()
    assert not held(far)


def test_a_scan_counts_footers_and_chunks(far, stored, requests):
    scan = ScanExec(0, "t", far, ("id", "amount"), splits=tuple(far.splits()))
    forget_file(far.files[0])
    task = TaskContext()
    assert sum(batch.num_rows for batch in scan.run(task)) == ROWS
    metrics = task.metrics_of(scan).extra
    assert metrics["bytes_read"] == sum(request.size for request in requests)
    assert metrics["reads"] == len(requests)
    end = far.files[0].size
    assert [request.end for request in requests].count(end) == 1  # the footer, once


@pytest.fixture(scope="module")
def paged(
    s3_endpoint: str, table: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> dict[bool, tuple[str, str]]:
    """The same file of many pages on this machine and in a bucket, by whether it has a page index."""
    directory, fs, found = tmp_path_factory.mktemp("paged"), new_bucket(s3_endpoint, "paged"), {}
    for has_index in (True, False):
        local = directory / f"{has_index}.parquet"
        pq.write_table(
            table, local, row_group_size=GROUP_ROWS, write_page_index=has_index, data_page_size=5000
        )
        with fs.open_output_stream(f"paged/{has_index}.parquet") as out:
            out.write(local.read_bytes())
        found[has_index] = str(local), f"s3://paged/{has_index}.parquet"
    return found


@pytest.mark.parametrize(("has_index", "whole_bytes"), [(True, 1 << 20), (True, 0), (False, 0)])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t WHERE id BETWEEN 150000 AND 150004 ORDER BY id",
        "SELECT sum(amount), max(text), count(*) FROM t WHERE id > 399900 OR id < 7",
        "SELECT sum(few), count(some) FROM t WHERE id >= 199998 AND id < 200002",
        "SELECT sum(amount) FROM t WHERE amount > 0.99999",
    ],
)
def test_rows_of_some_pages_are_those_of_a_local_file(
    s3_endpoint, paged, monkeypatch, sql, has_index, whole_bytes
):
    monkeypatch.setattr(chunk_pages, "_MIN_PAGED_ROWS", 0)
    monkeypatch.setattr(page_index, "_MAX_WHOLE_BYTES", whole_bytes)
    local, remote = paged[has_index]
    found = []
    for path, options in ((local, None), (remote, storage_options(s3_endpoint))):
        ctx = kq.ExecutionContext()
        ctx.register_parquet("t", path, storage_options=options)
        forget_file(parquet_source([path]).files[0])
        found.append(ctx.sql(sql).to_arrow())
    assert found[1].equals(found[0])
    assert found[1].num_rows


def test_pages_that_hold_no_row_are_not_fetched(s3_endpoint, stored, contexts, requests, monkeypatch):
    monkeypatch.setattr(chunk_pages, "_MIN_PAGED_ROWS", 0)
    monkeypatch.setattr(byte_ranges, "MAX_GAP_BYTES", 1000)
    with new_bucket(s3_endpoint, "once").open_output_stream("once/t.parquet") as out:
        out.write(Path(stored[0]).read_bytes())
    ctx = kq.ExecutionContext()
    ctx.register_parquet("t", "s3://once/t.parquet", storage_options=storage_options(s3_endpoint))
    frame = ctx.sql("SELECT sum(amount) FROM t WHERE id BETWEEN 150000 AND 150004")
    del requests[:]
    frame.collect()
    chunks = [chunk_of(stored[0], 1, column) for column in (0, 3)]
    pages = [request for request in requests if any(chunk.contains(request) for chunk in chunks)]
    assert pages
    assert sum(page.size for page in pages) < sum(chunk.size for chunk in chunks)


def test_what_is_fetched_ahead_is_bounded(far, stored, requests, monkeypatch):
    chunks = [chunk_of(stored[0], 0, c) for c in (0, 1, 3)]
    monkeypatch.setattr(fetched_pieces, "_MAX_BYTES_AHEAD", chunks[0].size + chunks[1].size)
    release = far.fetch(far.splits()[0], ["id", "few", "amount"])
    assert are_requested(requests, *chunks[:2])
    assert not any(request.contains(chunks[2]) for request in requests)
    (batch,) = far.read(far.splits()[0], ["amount"])
    release()
    assert batch.num_rows == GROUP_ROWS
    assert are_requested(requests, chunks[2])


def test_a_reader_that_stops_lets_go(far):
    reading = read_one_by_one(far, far.splits(), lambda split: PrefetchRequest(["id"]))
    next(reading)
    reading.close()
    assert is_released(far)


def test_files_of_this_machine_are_not_fetched(stored):
    local = parquet_source([stored[0]])
    assert not local.is_remote(local.splits()[0])
    local.fetch(local.splits()[0], ["id"])()
    assert not held(local)


def test_deleted_rows_are_looked_up_while_columns_are_fetched(far):
    split = far.splits()[0]
    vector = DeletedPositions(2, np.array([3, GROUP_ROWS + 1], "<i8").tobytes())
    live = LiveRows(far, (vector,))
    release = live.fetch(split, ["id"])
    assert DELETION_VECTOR_CACHE.get(vector) is not None
    (batch,) = live.read(split, ["id"])
    assert batch.columns[0].to_pylist()[2:5] == [2, 4, 5]
    release()
    damaged = LiveRows(far, (DeletionVector(count=1, nbytes=8, inline=b"no vector"),))
    with pytest.raises(SourceError, match="deletion vector in the table's log is damaged"):
        damaged.fetch(split, ["id"])
    assert not held(far)


def test_nothing_waits_for_a_thread_that_waits(far, monkeypatch):
    """The pool of fetching threads is small, so a fetch in this pool must not wait for another one in it."""
    forget_file(far.files[0])
    vector = DeletedPositions(2, np.array([3, GROUP_ROWS + 1], "<i8").tobytes())
    filters = (Call.of("gt", Column("id", t.LONG), Literal(5, t.LONG)),)
    scan = ScanExec(0, "t", LiveRows(far, (vector,)), ("id", "text"), filters, splits=tuple(far.splits()))
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        for module in (fetching, fetched_ranges):
            monkeypatch.setattr(module, "fetching_threads", lambda: one)
        read = other.submit(lambda: sum(batch.num_rows for batch in scan.run(TaskContext())))
        assert read.result(60) == ROWS - 7


def test_statistics_of_a_split_are_those_of_its_file_alone(tmp_path, monkeypatch):
    for name in ("a", "b"):
        pq.write_table(pa.table({"id": [1, 2]}), tmp_path / f"{name}.parquet")
    source = parquet_source([str(tmp_path)])
    second = source.splits()[1]
    source = parquet_source([str(tmp_path)])
    opened = []
    monkeypatch.setattr(
        parquet_source_module, "open_file", lambda file: opened.append(file.path) or open_file(file)
    )
    assert source.ranges(second, "id") == ColumnRange(1, 2, 0)
    assert [path.rpartition("/")[2] for path in opened] == ["b.parquet"]
