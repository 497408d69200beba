"""A scan reads adjacent small row groups with deleted rows together, with the same rows in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kquery_spark.errors import SourceError
from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.physical.dynamic_filters.runtime_filter import MatchFilter
from kquery_spark.physical.operators import TaskContext
from kquery_spark.sources.base import Source
from kquery_spark.sources.deletes.deletion_vectors import DeletedPositions
from kquery_spark.sources.deletes.equality_deletes import EqualityDeletesView
from kquery_spark.sources.deletes.live_rows import LiveRows
from kquery_spark.sources.parquet import chunk_pages
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.sources.views.numbered_rows import NumberedRows
from kquery_spark.types import names as t
from kquery_spark.types.vector import Vector
from tests.physical.coalesced_splits.scans import (
    CONDITIONS,
    GROUP_ROWS,
    GROUPS,
    ROWS,
    K,
    damage,
    rows_of,
    scan,
)
from tests.physical.harness import join_table

pytestmark = pytest.mark.usefixtures("kernels")


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
