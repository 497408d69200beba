"""A scan reads adjacent small row groups together, with the same rows in the same order as one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import SourceError
from kquery_spark.expr import Call, Column, Expr, InList, Literal
from kquery_spark.physical import filtering_reader, split_coalescer
from kquery_spark.physical.dynamic_filters.runtime_filter import MatchFilter
from kquery_spark.physical.operators import ScanExec, TaskContext
from kquery_spark.run_control import RunControl
from kquery_spark.sources.base import Source, Split
from kquery_spark.sources.deletes.deletion_vectors import DeletedPositions
from kquery_spark.sources.deletes.equality_deletes import EqualityDeletesView
from kquery_spark.sources.deletes.live_rows import LiveRows
from kquery_spark.sources.dictionary_column import MAX_DICTIONARY_VALUES
from kquery_spark.sources.parquet import chunk_pages
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.sources.views.concatenated import ConcatenatedSource
from kquery_spark.sources.views.numbered_rows import NumberedRows
from kquery_spark.sources.views.renamed import RenamedColumns
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch, coalesced
from kquery_spark.types.vector import Vector
from tests.physical.harness import join_table

ROWS, GROUP_ROWS = 200_000, 10_000
GROUPS = ROWS // GROUP_ROWS
K, S = Column("k", t.LONG, True), Column("s", t.STRING, True)


pytestmark = pytest.mark.usefixtures("kernels")


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
    counts: list[int] = []
    read = filtering_reader.FilteringReader._read

    def recorded(self: object, split: Split, rows: object) -> Iterator[Batch]:
        counts.append(len(split.pieces))
        return read(self, split, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(filtering_reader.FilteringReader, "_read", recorded)
    return counts


def scan(source: Source, *filters: Expr, splits: Sequence[Split] | None = None) -> ScanExec:
    names = tuple(source.schema.names)
    return ScanExec(0, "t", source, names, filters, tuple(source.splits() if splits is None else splits))


def rows_of(plan: ScanExec, task: TaskContext | None = None) -> pa.Table:
    batches = [batch.to_arrow() for batch in plan.execute(task or TaskContext())]
    arrays = [
        pa.concat_arrays([pa.array([], field.type), *(plain(batch.column(field.name)) for batch in batches)])
        for field in plan.schema
    ]
    return pa.table(arrays, plan.schema.names)


def plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


CONDITIONS = {
    "none": (),
    "on a dictionary of numbers": (Call.of("lt", K, Literal(7, t.LONG)),),
    "on a dictionary, few rows": (Call.of("eq", K, Literal(7, t.LONG)),),
    "on NULL": (Call.of("isnull", K),),
    "on strings": (InList(S, (Literal("word3", t.STRING), Literal("word99", t.STRING))),),
    "on plain numbers": (Call.of("lt", Column("plain", t.LONG, True), Literal(1 << 38, t.LONG)),),
    "on two columns": (
        Call.of("gteq", K, Literal(50, t.LONG)),
        Call.of("lt", Column("x", t.DOUBLE, True), Literal(0.25, t.DOUBLE)),
    ),
    "that no row passes": (Call.of("gt", K, Literal(98, t.LONG)), Call.of("lt", K, Literal(2, t.LONG))),
}


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


def damage(path: Path, group: int) -> None:
    """Overwrite the first bytes of a page."""
    chunk = pq.read_metadata(path).row_group(group).column(0)
    data = bytearray(path.read_bytes())
    start = chunk.data_page_offset
    data[start : start + 40] = b"\xff" * 40
    path.write_bytes(data)


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


def live_rows(source: Source, deleted: Sequence[int]) -> LiveRows:
    positions = np.array(sorted(set(deleted)), "<i8")
    return LiveRows(source, (DeletedPositions(len(positions), positions.tobytes()),))


DELETED = [
    *(0, 7, 9_999, 10_000, 19_999, 20_000),  # rows at the borders of row groups
    # the last rows of row group 3, all rows of row group 4, and the first row of row group 5
    *range(39_990, 50_001),
    *range(60_000, 90_000, 3),
    *range(110_000, 119_000),  # most rows of a row group
    ROWS - 1,
]
"""All rows of row group 4, most of row group 11, some of row groups 0 to 3, 5 to 8, and 19, and none of the others."""
LIVE = np.setdiff1d(np.arange(ROWS), DELETED)


@pytest.mark.parametrize("filters", CONDITIONS.values(), ids=CONDITIONS)
def test_row_groups_with_deleted_rows_are_coalesced(
    path: Path, table: pa.Table, reads: list[int], filters: tuple[Expr, ...]
) -> None:
    source = parquet_source([str(path)])
    live = live_rows(NumberedRows(source, "n"), DELETED)
    rows = rows_of(scan(live, *filters))
    assert sum(reads) == GROUPS
    assert reads == [1, 2, 1, 1, 4, 2, 1, 8]  # row groups 4 and 11, which are mostly deleted, are read alone
    numbers = rows.column("n").to_numpy()
    passing = rows_of(scan(NumberedRows(source.without_kernels(), "n"), *filters)).column("n").to_numpy()
    assert numbers.tolist() == np.intersect1d(passing, LIVE).tolist()
    assert rows.drop_columns("n").equals(table.take(numbers).combine_chunks())


def test_row_groups_with_a_gap_between_them_are_coalesced(
    path: Path, table: pa.Table, reads: list[int]
) -> None:
    live = live_rows(NumberedRows(parquet_source([str(path)]), "n"), DELETED)
    remaining = [split for split in live.splits() if split.pieces[0] % 3 != 1]
    for filters in ((), CONDITIONS["on a dictionary of numbers"]):
        reads.clear()
        rows = rows_of(scan(live, *filters, splits=remaining))
        assert max(reads) > 1
        numbers = [n for n in LIVE if n // GROUP_ROWS % 3 != 1]
        expected = table.take(numbers).append_column("n", pa.array(numbers))
        if filters:
            expected = expected.filter(pc.less(expected["k"], 7))
        assert rows.equals(expected.combine_chunks())


@pytest.mark.parametrize("keys", [[3, 50, 99], list(range(60))], ids=["few", "many"])
def test_runtime_filters_apply_to_coalesced_row_groups_with_deleted_rows(
    path: Path, table: pa.Table, reads: list[int], keys: list[int]
) -> None:
    plan, task = scan(live_rows(parquet_source([str(path)]), DELETED)), TaskContext()
    plan.accept_filter(task, MatchFilter(("k",), join_table([Vector(t.LONG, pa.array(keys))])))
    rows = rows_of(plan, task)
    assert max(reads) == 8
    expected = table.take(LIVE)
    assert rows.equals(expected.filter(pc.is_in(expected["k"], pa.array(keys))).combine_chunks())


def test_excluded_pages_of_row_groups_with_deleted_rows_are_skipped(
    tmp_path: Path, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_pages, "_MIN_PAGED_ROWS", 0)
    k = np.repeat(np.arange(ROWS // GROUP_ROWS), GROUP_ROWS)
    k[30_000:38_000] = k[45_000:55_000] = 99  # row groups 3, 4, and 5 have both 99 and other values
    k[60_000:90_000] = 99
    pq.write_table(
        pa.table({"k": k, "n": np.arange(ROWS)}), tmp_path / "t.parquet", row_group_size=GROUP_ROWS,
        write_page_index=True, data_page_size=4000, use_dictionary=False,
    )  # fmt: skip
    plan = scan(
        live_rows(parquet_source([str(tmp_path / "t.parquet")]), DELETED),
        Call.of("eq", K, Literal(99, t.LONG)),
    )
    actual = rows_of(plan).column("n").to_pylist()
    assert actual == [n for n in LIVE if k[n] == 99]
    assert set(reads) == {1, 2}


def test_equality_deletes_apply_to_coalesced_row_groups(
    path: Path, table: pa.Table, reads: list[int], tmp_path: Path
) -> None:
    """Covers delete files with columns that the scan does not read, and with NULL."""
    columns = {"k": pa.array([5, None, 44], pa.int64()), "s": pa.array(["word5", None, "word1"])}
    pq.write_table(pa.table(columns), tmp_path / "some.parquet")
    pq.write_table(table.select(["plain"]).slice(9_999, 2), tmp_path / "other.parquet")
    values = tuple(parquet_source([str(tmp_path / name)]) for name in ("some.parquet", "other.parquet"))
    source = NumberedRows(parquet_source([str(path)]), "n")
    names = pa.schema([source.schema.field(name) for name in ("n", "k", "x")])
    view = EqualityDeletesView(live_rows(source, DELETED), names, values, ((0, 1),))
    k = table["k"].to_pylist()
    expected = [n for n in LIVE if k[n] not in (5, None) and n not in (9_999, 10_000)]
    assert rows_of(scan(view)).column("n").to_pylist() == expected
    assert max(reads) == 8
    reads.clear()
    some = rows_of(scan(view, *CONDITIONS["on two columns"]))
    assert max(reads) == 8
    x = table["x"].to_numpy()
    assert some.column("n").to_pylist() == [n for n in expected if k[n] >= 50 and x[n] < 0.25]


@pytest.mark.parametrize("filters", [(), (Call.of("lt", K, Literal(7, t.LONG)),)], ids=["all", "some"])
def test_a_damaged_row_group_with_deleted_rows_is_named(path: Path, filters: tuple[Expr, ...]) -> None:
    damage(path, 15)
    with pytest.raises(SourceError, match=r"row group 15 of .*t\.parquet"):
        rows_of(scan(live_rows(parquet_source([str(path)]), DELETED), *filters))
