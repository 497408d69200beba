"""A selective filter of a join comes before the conditions of a scan, unless that changes rows or hides an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquery_spark.errors import ExecutionError
from kquery_spark.expr import Call, Column, Expr, Literal
from kquery_spark.physical import filtering_reader, split_coalescer
from kquery_spark.physical.dynamic_filters.runtime_filter import MatchFilter, RuntimeFilter
from kquery_spark.physical.dynamic_filters.top_k import FirstRowsFilter
from kquery_spark.physical.operators import ScanExec, TaskContext
from kquery_spark.physical.row_conditions import RowConditions
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import Flags, Vector
from tests.physical.harness import join_table

ROWS, GROUPS = 10_000, 5
A, B, K = (Column(name, t.LONG, True) for name in "abk")
LESS = Call.of("lt", A, B)  # about half of the rows


@pytest.fixture
def table() -> pa.Table:
    random = np.random.default_rng(11)
    columns = {name: random.permutation(ROWS) for name in ("a", "b", "k")}
    zero = int(np.flatnonzero(columns["a"] == 0)[0])
    columns["a"][[zero, -1]] = columns["a"][[-1, zero]]  # the only zero is in the last row group
    return pa.table(columns)


@pytest.fixture(autouse=True)
def single_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_coalescer, "MAX_BATCHES", 0)


@pytest.fixture
def source(table: pa.Table, tmp_path: Path) -> ParquetSource:
    """Plain columns, so that no dictionary decides a filter."""
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, row_group_size=ROWS // GROUPS, use_dictionary=False)
    return parquet_source([str(path)])


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The number of rows for which the conditions were evaluated, for each row group."""
    rows: list[int] = []
    flags = RowConditions.flags

    def recording(self: RowConditions, batch: Batch) -> Flags | None:
        rows.append(batch.num_rows)
        return flags(self, batch)

    monkeypatch.setattr(RowConditions, "flags", recording)
    yield rows


def matching(keys: list[int]) -> MatchFilter:
    return MatchFilter(("k",), join_table([Vector(t.LONG, pa.array(keys))]))


def read(source: ParquetSource, condition: Expr, runtime_filter: RuntimeFilter) -> set[tuple[int, int, int]]:
    scan = ScanExec(0, "t", source, ("a", "b", "k"), (condition,), splits=tuple(source.splits()))
    task = TaskContext()
    scan.accept_filter(task, runtime_filter)
    return {
        row
        for batch in scan.execute(task)
        for row in zip(*(column.to_pylist() for column in batch.to_arrow().columns), strict=True)
    }


def expected(table: pa.Table, keys: set[int]) -> set[tuple[int, int, int]]:
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return {(a, b, k) for a, b, k in rows if a < b and k in keys}


@pytest.mark.parametrize("early_share", [0.0, 0.5, 10.0])
def test_the_order_does_not_change_the_rows(
    table: pa.Table,
    source: ParquetSource,
    early_share: float,
    evaluated: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(filtering_reader, "_EARLY_SHARE", early_share)
    keys = [*range(0, ROWS, 100)]
    assert read(source, LESS, matching(keys)) == expected(table, set(keys))
    # the shares are unknown in the first row group
    assert evaluated[0] == ROWS // GROUPS
    assert all(rows == ROWS // GROUPS for rows in evaluated) == (early_share == 0)
    assert early_share == 0 or max(evaluated[1:]) < 100


def test_a_filter_that_passes_many_rows_comes_after_the_conditions(
    table: pa.Table, source: ParquetSource, evaluated: list[int]
) -> None:
    keys = [*range(0, ROWS, 2)]
    assert read(source, LESS, matching(keys)) == expected(table, set(keys))
    assert evaluated == [ROWS // GROUPS] * GROUPS


def test_a_condition_that_can_raise_sees_the_rows_that_a_filter_drops(
    table: pa.Table, source: ParquetSource
) -> None:
    keys = [key for key in range(0, ROWS, 100) if key != table["k"][ROWS - 1].as_py()]
    reciprocal = Call.of("gt", Call.of("div", Literal(ROWS, t.LONG), A), Literal(1, t.LONG))
    with pytest.raises(ExecutionError, match="DIVIDE_BY_ZERO"):
        read(source, reciprocal, matching(keys))


def test_the_first_rows_are_selected_from_those_that_pass_the_conditions(
    table: pa.Table, source: ParquetSource, evaluated: list[int]
) -> None:
    """The filter of a top-k selects the first rows that it sees, so it must see only rows that pass."""
    large = Call.of("gteq", K, B)
    limit = 5
    rows = read(source, large, FirstRowsFilter(("k",), True, True, False, limit))
    passing = sorted(k for b, k in zip(table["b"].to_pylist(), table["k"].to_pylist(), strict=True) if k >= b)
    assert sorted(k for _, _, k in rows)[:limit] == passing[:limit]
    assert evaluated == [ROWS // GROUPS] * GROUPS
