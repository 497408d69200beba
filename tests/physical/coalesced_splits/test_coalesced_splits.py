"""A scan reads adjacent small row groups together, with the same rows in the same order as one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import SourceError
from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.physical import filtering_reader, split_coalescer
from kquery_spark.physical.operators import TaskContext
from kquery_spark.run_control import RunControl
from kquery_spark.sources.base import Split
from kquery_spark.sources.dictionary_column import MAX_DICTIONARY_VALUES
from kquery_spark.sources.parquet import chunk_pages
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.sources.views.concatenated import ConcatenatedSource
from kquery_spark.sources.views.renamed import RenamedColumns
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch, coalesced
from tests.physical.coalesced_splits.scans import (
    CONDITIONS,
    GROUP_ROWS,
    GROUPS,
    ROWS,
    K,
    S,
    damage,
    rows_of,
    scan,
)

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.mark.parametrize("filters", CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize("codec", ["snappy", "zstd"])
def test_the_rows_and_their_order_are_those_of_single_row_groups(
    table: pa.Table, tmp_path: Path, reads: list[int], monkeypatch: pytest.MonkeyPatch,
    filters: tuple[Expr, ...], codec: str,
) -> None:  # fmt: skip
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=GROUP_ROWS, compression=codec)
    plan = scan(parquet_source([str(tmp_path / "t.parquet")]), *filters)
    coalesced = rows_of(plan)
    assert reads == [1, 2, 4, 8, 5]
    reads.clear()
    monkeypatch.setattr(split_coalescer, "MAX_BATCHES", 0)
    assert coalesced.equals(rows_of(plan))
    assert reads == [1] * GROUPS
    assert filters or coalesced.equals(table)


def test_without_loops_row_groups_are_read_one_by_one(path: Path, table: pa.Table, reads: list[int]) -> None:
    source = parquet_source([str(path)]).without_kernels()
    assert isinstance(source, ParquetSource)
    assert rows_of(scan(source)).equals(table)
    assert reads == [1] * GROUPS


def test_renamed_and_concatenated_sources_coalesce_the_row_groups_of_each_file(
    path: Path, table: pa.Table, reads: list[int]
) -> None:
    pq.write_table(table, path.with_name("u.parquet"), row_group_size=GROUP_ROWS)
    one, two = parquet_source([str(path)]), parquet_source([str(path.with_name("u.parquet"))])
    names = pa.schema([field.with_name(f"{field.name}!") for field in one.schema])
    source = ConcatenatedSource((RenamedColumns(one, names), RenamedColumns(two, names)), (1, 1))
    expected = pa.concat_tables([table, table]).combine_chunks()
    assert rows_of(scan(source)).equals(expected.rename_columns(names.names))
    assert sum(reads) == 2 * GROUPS
    assert len(reads) < 10


def test_only_row_groups_with_equal_encodings_are_coalesced(
    path: Path, table: pa.Table, reads: list[int]
) -> None:
    with pq.ParquetWriter(path, table.schema, compression="snappy") as writer:
        writer.write_table(table.slice(0, 50_000), row_group_size=GROUP_ROWS)
        random = np.random.default_rng(0).integers(0, 1 << 60, 50_000)
        # pages of indices, and plain pages after the dictionary became too large
        changed = table.slice(0, 50_000).set_column(0, table.schema.field("k"), pa.array(random))
        writer.write_table(changed, row_group_size=50_000)
        writer.write_table(table.slice(0, 50_000), row_group_size=GROUP_ROWS)
    source = parquet_source([str(path)])
    rows = rows_of(scan(source))
    assert rows.equals(
        pa.concat_tables([table.slice(0, 50_000), changed, table.slice(0, 50_000)]).combine_chunks()
    )
    assert sum(reads) == 11
    assert max(reads) > 1


def test_a_row_group_with_excluded_pages_is_read_alone(
    tmp_path: Path, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_pages, "_MIN_PAGED_ROWS", 0)
    k = np.arange(ROWS) // 1000  # sorted
    k[15_000:20_000] = 7  # the second row group has values of the first one
    pq.write_table(
        pa.table({"k": k, "n": np.arange(ROWS)}), tmp_path / "t.parquet", row_group_size=GROUP_ROWS,
        write_page_index=True, data_page_size=4000, use_dictionary=False,
    )  # fmt: skip
    plan = scan(parquet_source([str(tmp_path / "t.parquet")]), Call.of("eq", K, Literal(7, t.LONG)))
    actual = rows_of(plan).column("n").to_pylist()
    assert actual == np.flatnonzero(k == 7).tolist()
    assert set(reads) == {1}


def test_wide_rows_are_coalesced_up_to_a_number_of_bytes(
    path: Path, table: pa.Table, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_coalescer, "_MAX_BYTES", 3 * GROUP_ROWS * 32)
    assert rows_of(scan(parquet_source([str(path)]))).equals(table)
    assert max(reads) <= 3


def test_long_strings_are_coalesced_by_the_bytes_of_their_values(tmp_path: Path, reads: list[int]) -> None:
    """Their dictionary makes the chunks small, but not the decoded strings."""
    words = [f"{number}" * 1200 for number in range(1000, 1300)]
    rows = pa.table({"s": [words[number % 300] for number in range(40_000)]})
    pq.write_table(rows, tmp_path / "t.parquet", row_group_size=4000)
    plan = scan(parquet_source([str(tmp_path / "t.parquet")]))
    assert rows_of(plan).equals(rows)
    assert reads[:2] == [1, 2]
    assert max(reads) * 4000 * 4800 <= split_coalescer._MAX_BYTES
    assert len(reads) > 4
    reads.clear()
    filtered = rows_of(scan(parquet_source([str(tmp_path / "t.parquet")]), Call.of("isnotnull", S)))
    assert filtered.equals(rows)
    assert len(reads) > 4


def test_the_rows_of_coalesced_splits_follow_the_rows_of_a_batch(path: Path, reads: list[int]) -> None:
    plan = scan(parquet_source([str(path)]))
    batch_rows = 3 * GROUP_ROWS // split_coalescer.MAX_BATCHES
    list(plan.execute(TaskContext(config=EngineConfig(batch_rows=batch_rows))))
    assert max(reads) == 3


def test_dictionaries_of_coalesced_splits_have_at_most_16_bits_together(
    tmp_path: Path, reads: list[int]
) -> None:
    values = MAX_DICTIONARY_VALUES // 5
    group_rows = 40 * values
    k = np.random.default_rng(2).integers(0, values, 10 * group_rows)
    pq.write_table(
        pa.table({"k": k}),
        tmp_path / "t.parquet",
        row_group_size=group_rows,
        dictionary_pagesize_limit=1 << 23,
    )
    plan = scan(parquet_source([str(tmp_path / "t.parquet")]), Call.of("eq", K, Literal(7, t.LONG)))
    task = TaskContext(config=EngineConfig(batch_rows=1 << 20))
    assert sum(batch.num_rows for batch in plan.execute(task)) == np.count_nonzero(k == 7)
    assert reads == [1, 2, 4, 3]


def test_single_row_groups_of_many_files_are_looked_at_once(
    table: pa.Table, tmp_path: Path, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = 40
    for number in range(files):
        pq.write_table(table.slice(100 * number, 100), tmp_path / f"{number:02}.parquet")
    calls: list[Split] = []
    possible = filtering_reader.FilteringReader._rows_to_read

    def recorded(self: filtering_reader.FilteringReader, split: Split) -> object:
        calls.append(split)
        return possible(self, split)

    monkeypatch.setattr(filtering_reader.FilteringReader, "_rows_to_read", recorded)
    rows = rows_of(scan(parquet_source([str(tmp_path)]), Call.of("isnotnull", K)))
    assert rows.num_rows == 100 * files - table.column("k").slice(0, 100 * files).null_count
    assert reads == [1] * files
    assert len(calls) == files


def test_progress_counts_every_row_group(path: Path) -> None:
    control = RunControl()
    plan = scan(parquet_source([str(path)]))
    control.controlled(lambda: list(plan.execute(TaskContext())))()
    assert control.splits == GROUPS


@pytest.mark.parametrize("filters", [(), (Call.of("lt", K, Literal(7, t.LONG)),)], ids=["all", "some"])
def test_a_damaged_row_group_is_named(path: Path, filters: tuple[Expr, ...]) -> None:
    damage(path, 9)
    with pytest.raises(SourceError, match=r"row group 9 of .*t\.parquet"):
        rows_of(scan(parquet_source([str(path)]), *filters))


def test_a_limit_reads_little_more_than_it_needs(path: Path, reads: list[int]) -> None:
    context = kq.ExecutionContext()
    context.register_parquet("t", str(path))
    assert context.sql("SELECT plain FROM t LIMIT 5").to_arrow().num_rows == 5
    assert sum(reads) <= 3


def test_a_file_that_became_shorter_is_an_error(path: Path) -> None:
    source = parquet_source([str(path)])
    batches = scan(source).execute(TaskContext())
    next(batches)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(SourceError, match=r"t\.parquet"):
        list(batches)


@pytest.mark.parametrize("filters", [(), CONDITIONS["on two columns"]], ids=["all rows", "some rows"])
def test_row_groups_that_are_too_large_together_are_read_one_by_one(
    path: Path, table: pa.Table, reads: list[int], monkeypatch: pytest.MonkeyPatch, filters: tuple[Expr, ...]
) -> None:
    """Strings can be so much longer than in the row groups before that they exceed the offsets of one array."""
    plan = scan(parquet_source([str(path)]), *filters)
    expected = rows_of(plan)
    reads.clear()
    batch_of = ParquetSource._batch

    def limited(self: ParquetSource, opened: object, columns: object, stored: object, rows: int) -> Batch:
        if rows > 2 * GROUP_ROWS:
            raise pa.ArrowInvalid("offset overflow while concatenating arrays")
        return batch_of(self, opened, columns, stored, rows)  # type: ignore[arg-type]

    def array_of(self: ParquetSource, opened: object, column: str, data: pa.ChunkedArray) -> pa.Array:
        if len(data) > 2 * GROUP_ROWS:
            raise pa.ArrowInvalid("offset overflow while concatenating arrays")
        return array(self, opened, column, data)  # type: ignore[arg-type]

    array = ParquetSource._array
    monkeypatch.setattr(ParquetSource, "_batch", limited)
    monkeypatch.setattr(ParquetSource, "_array", array_of)
    assert expected.equals(rows_of(plan))
    assert max(reads) > 2
    assert reads.count(1) > 1  # the first row group is always read alone


def test_batches_with_many_bytes_are_not_concatenated() -> None:
    schema = pa.schema([("s", pa.string())])
    wide = Batch(schema, (pa.array(["x" * 1000]),), 1)
    narrow = Batch(schema, (pa.array(["x"]),), 1)
    batches = [narrow, narrow, wide, narrow, narrow]
    assert [b.num_rows for b in coalesced(batches, 100)] == [5]
    assert [b.num_rows for b in coalesced(batches, 100, 500)] == [2, 1, 2]
    assert [b.num_rows for b in coalesced(batches, 2)] == [2, 2, 1]
