"""MIN and MAX by group look at few rows once the groups are met, and the answer is that of all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import AggregateCall, Column, Named
from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.physical.dynamic_filters import min_max
from kquery_spark.physical.dynamic_filters.min_max import MIN_ROWS, GroupExtrema, MinMaxFilter
from kquery_spark.physical.operators import AggregateExec, Phase, ScanExec, TaskContext
from kquery_spark.sources.parquet import flat_chunk
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import Vector
from tests.conftest import exhaustive
from tests.physical.harness import PiecesSource

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

NAN = float("nan")
ROWS = 16 * MIN_ROWS
GROUP = 4 * MIN_ROWS  # rows of a row group


def _trips() -> pa.Table:
    """Few groups that all have their extremes early, but for what each test is about: rows at the end."""
    random = np.random.default_rng(7)
    n = ROWS
    key = random.integers(0, 5, n).astype(np.int32)
    fare = random.uniform(0, 100, n)
    fare[:200] = np.tile([-50.0, 500.0], 100)
    key[:200] = np.repeat(np.arange(5), 40)
    whole = (fare * 100).astype(np.int64)
    columns: dict[str, Any] = {
        "k": key,
        "gap": np.where(key == 4, 99, key),
        "s": np.array(["a", "b", "", "é", "zz"])[key],
        "f": fare,
        "r": fare.astype(np.float32),
        "i": whole.astype(np.int32),
        "l": whole,
        "at": whole.astype("datetime64[s]").astype("datetime64[us]"),
    }
    arrays = {name: pa.array(values) for name, values in columns.items()}
    arrays["y"] = arrays["i"].cast(pa.int32()).view(pa.date32())
    arrays["d"] = pa.array(whole % 10**6).cast(pa.decimal128(19, 0)).cast(pa.decimal128(17, 2), safe=False)
    return pa.table(arrays)


def _with(table: pa.Table, row: int, **values: Any) -> pa.Table:
    """The table with other values in one row."""
    for name, value in values.items():
        place = table.schema.get_field_index(name)
        column = table.column(name).combine_chunks()
        kind = column.type
        new = pa.concat_arrays([column.slice(0, row), pa.array([value], kind), column.slice(row + 1)])
        table = table.set_column(place, name, new)
    return table


def _never_negative(table: pa.Table) -> pa.Table:
    place = table.schema.get_field_index("f")
    return table.set_column(place, "f", pc.max_element_wise(table.column("f"), 0.5))


TRIPS = _trips()
LAST = ROWS - 1
TABLES = {
    "as it is": TRIPS,
    "a better value late": _with(TRIPS, LAST, f=501.0, r=501.0, i=10**6, l=10**6),
    "a better value of each kind late": _with(_with(TRIPS, LAST, f=-51.0), LAST - 1, f=501.0),
    "a new group late": _with(TRIPS, LAST, k=7, s="new"),
    "a new group within the range late": _with(TRIPS, LAST, gap=50),
    "a lower key late": _with(TRIPS, LAST, k=-(2**31)),
    "a NULL key late": _with(TRIPS, LAST, k=None, s=None, gap=None, f=1.0),
    "a NULL key early and late": _with(_with(TRIPS, 5, k=None, s=None), LAST, k=None, s=None, f=600.0),
    "a NULL value late": _with(TRIPS, LAST, f=None, r=None, i=None, l=None, at=None, y=None, d=None),
    "NaN late": _with(TRIPS, LAST, f=NAN, r=NAN),
    "NaN early": _with(TRIPS, 3, f=NAN, r=NAN),
    "both zeros": _with(_with(_never_negative(TRIPS), 45, f=-0.0), LAST, f=0.0),
}
WITHOUT_CODES = ("as it is", "a new group late", "NaN early")
"""There is one way for all kinds of values where there are no dictionary indices: a few tables are enough."""
QUERIES = (
    "SELECT k, MAX(f) AS a, MIN(r) AS b, MAX(i) AS c FROM t GROUP BY k",
    "SELECT k, MIN(f) AS a, MAX(r) AS b, MIN(l) AS c FROM t GROUP BY k",
    "SELECT s, MAX(f) AS a, MIN(l) AS b FROM t GROUP BY s",
    "SELECT gap, MAX(at) AS a, MIN(y) AS b, MAX(d) AS c FROM t GROUP BY gap",
    "SELECT DISTINCT k FROM t",
    "SELECT DISTINCT s FROM t",
    "SELECT k, MAX(f) FILTER (WHERE i > 100) AS a FROM t GROUP BY k",
    "SELECT k, s, MAX(f) AS a FROM t GROUP BY k, s",
    "SELECT k, MAX(f) AS a, COUNT(*) AS b FROM t GROUP BY k",
    "SELECT c, MAX(f) AS a, MIN(c) AS b FROM (SELECT 5 AS c, f FROM t) GROUP BY c",
    "SELECT k, MAX(f) AS a, MAX(c) AS b FROM (SELECT 5 AS c, k, f FROM t) GROUP BY k",
)


@pytest.mark.parametrize(
    ("name", "by_codes"),
    [
        *((name, True) for name in TABLES),
        *(pytest.param(name, False, marks=() if name in WITHOUT_CODES else exhaustive) for name in TABLES),
    ],
)
def test_the_answer_is_that_of_all_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, by_codes: bool
) -> None:
    if by_codes:
        assert FILE_LOOPS.compile_now() is not None
        monkeypatch.setattr(flat_chunk, "_MIN_ROWS_PER_VALUE", 1)
    else:
        monkeypatch.setattr(FILE_LOOPS, "kernels", lambda *_: None)
    path = tmp_path / "t.parquet"
    pq.write_table(TABLES[name], path, row_group_size=GROUP)
    spark.read.parquet(str(path)).createOrReplaceTempView("t")
    for query in QUERIES:
        result = kq.verify(spark.sql(query))
        assert result.ok, f"{query}: {result}"
        assert result.accelerated, query


def _states(keys: list[Any], *extremes: list[Any], key: pa.DataType = t.INT) -> Batch:
    columns = (pa.array(keys, key), *(pa.array(e, t.DOUBLE) for e in extremes))
    return Batch(pa.schema([(str(i), c.type) for i, c in enumerate(columns)]), columns, len(keys))


def _knowing(largest: list[bool], states: Batch) -> GroupExtrema:
    known = GroupExtrema(largest, lambda merged: merged)
    known.learn(states, MIN_ROWS)
    return known


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(min_max, "MIN_ROWS", 1)


def _rows(known: GroupExtrema, keys: pa.Array, *values: list[Any]) -> list[int] | None:
    given = [Vector(t.DOUBLE, pa.array(v, t.DOUBLE)) for v in values]
    key_type = t.STRING if pa.types.is_dictionary(keys.type) else keys.type
    rows = known.rows(Vector(key_type, keys), given, len(keys))
    return None if rows is None else rows.tolist()


@pytest.mark.usefixtures("small_batches")
def test_rows_behind_the_least_extreme_are_left_out() -> None:
    known = _knowing([True], _states([1, 2, 3], [10.0, 30.0, 20.0]))
    keys = pa.array([1, 2, 3, 1] * 4, t.INT)
    assert _rows(known, keys, [9.0, 10.0, 10.5, NAN] + [1.0] * 12) == [2, 3]
    known = _knowing([False], _states([1, 2, 3], [10.0, 30.0, 20.0]))
    assert _rows(known, keys, [30.0, 31.0, 29.5, 40.0] + [99.0] * 12) == [2]


@pytest.mark.usefixtures("small_batches")
def test_a_row_is_kept_if_any_extreme_can_change() -> None:
    known = _knowing([True, False], _states([1, 2], [10.0, 20.0], [1.0, 2.0]))
    keys = pa.array([1, 2] * 4, t.INT)
    assert _rows(known, keys, [11.0] + [5.0] * 7, [5.0] * 7 + [1.5]) == [0, 7]


@pytest.mark.usefixtures("small_batches")
def test_rows_of_other_groups_are_kept() -> None:
    known = _knowing([True], _states([1, 5, 9], [10.0, 10.0, 10.0]))
    low = [1.0] * 12
    assert _rows(known, pa.array([1, 5, 9, 5] * 3, t.INT), low) == []
    assert _rows(known, pa.array([1, 5, 6, 9] + [5] * 8, t.INT), low) == [2]
    assert _rows(known, pa.array([1, 5, 10, 9] + [5] * 8, t.INT), low) is None  # past what is known
    assert _rows(known, pa.array([1, 5, None, 9] + [5] * 8, t.INT), low) is None  # no NULL was met
    known = _knowing([True], _states([1, 5, 9, None], [10.0, 10.0, 10.0, 10.0]))
    assert _rows(known, pa.array([1, 5, None, 9] + [5] * 8, t.INT), low) == []


@pytest.mark.usefixtures("small_batches")
def test_strings_are_known_by_value() -> None:
    known = _knowing([True], _states(["a", "b"], [10.0, 10.0], key=t.STRING))
    low = [1.0] * 8
    assert _rows(known, pa.array(["b", "a"] * 4).dictionary_encode(), low) == []
    assert _rows(known, pa.array(["b", "c"] + ["a"] * 6).dictionary_encode(), low) == [1]
    assert _rows(known, pa.array(["b", None] * 4).dictionary_encode(), low) is None
    assert _rows(known, pa.array(["a"] * 8), low) is None  # not as a dictionary


@pytest.mark.usefixtures("small_batches")
def test_without_an_extreme_of_each_group_all_rows_count() -> None:
    known = GroupExtrema([True], lambda merged: merged)
    keys = pa.array([1, 2] * 4, t.INT)
    assert _rows(known, keys, [1.0] * 8) is None
    known = _knowing([True], _states([1, 2], [10.0, None]))
    assert _rows(known, keys, [1.0] * 8) is None
    known = _knowing([True], _states([1, 2], [10.0, NAN]))  # NaN is the largest, so the least is 10
    assert _rows(known, keys, [1.0] * 8) == []


@pytest.mark.usefixtures("small_batches")
def test_what_keeps_most_rows_is_given_up() -> None:
    known = _knowing([True], _states([1, 2], [10.0, 10.0]))
    keys = pa.array([1, 2] * 4, t.INT)
    for _ in range(3):
        assert _rows(known, keys, [11.0] * 8) is None
    assert _rows(known, keys, [1.0] * 8) is None


def test_what_one_aggregation_has_met_is_nothing_to_the_next() -> None:
    table = pa.table({"k": pa.array([1, 2] * MIN_ROWS, t.INT), "v": pa.array([1, 2] * MIN_ROWS, t.INT)})
    source = PiecesSource(MIN_ROWS, table)
    scan = ScanExec(0, "t", source, ("k", "v"), splits=tuple(source.splits()))
    key, value = (Column(name, t.INT, True) for name in ("k", "v"))
    largest = AggregateCall.of("max", value)
    plan = AggregateExec(scan, (Named(key, "k"),), (Named(largest, "m"),), Phase.SINGLE)
    task = TaskContext()
    answers = [[batch.to_arrow().to_pylist() for batch in plan.run(task)] for _ in range(2)]
    assert answers[0] == answers[1] == [[{"k": 1, "m": 1}, {"k": 2, "m": 2}]]
    assert len(task.runtime_filters[0]) == 2
    assert not any(found.is_on for found in task.runtime_filters[0])


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("by_codes", [True, False])
def test_the_scan_leaves_out_what_can_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_codes: bool
) -> None:
    assert FILE_LOOPS.compile_now() is not None
    seen: list[tuple[int, int]] = []
    real = MinMaxFilter.count

    def count(self: MinMaxFilter, rows: int, kept: int) -> None:
        seen.append((rows, kept))
        real(self, rows, kept)

    monkeypatch.setattr(MinMaxFilter, "count", count)
    random = np.random.default_rng(3)
    table = pa.table(
        {"k": pa.array(random.integers(0, 4, 10_000), t.INT), "v": pa.array(random.integers(0, 9, 10_000))}
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1000)
    context = kq.ExecutionContext(config=EngineConfig(parallelism=1, batch_rows=1000, compiled=by_codes))
    context.register_parquet("t", str(tmp_path / "t.parquet"))
    found = context.sql("SELECT k, max(v) AS m FROM t GROUP BY k ORDER BY k").to_arrow()
    assert found.to_pydict() == {"k": [0, 1, 2, 3], "m": [8, 8, 8, 8]}
    assert seen == [(1000, 0)] * 9  # all but the first row group


@pytest.mark.usefixtures("small_batches")
def test_what_the_scan_left_out_is_not_looked_for_again() -> None:
    known = _knowing([True], _states([1, 2], [10.0, 10.0]))
    keys = pa.array([1, 2] * 4, t.INT)
    assert _rows(known, keys, [1.0] * 8) == []
    MinMaxFilter(("k", "v"), known).count(8, 8)
    assert _rows(known, keys, [1.0] * 8) is None
    assert known.has_groups
