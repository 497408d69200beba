"""The filter of a top-k in scans: the first rows are those of the whole order, and little else is read."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.expr import Call, Column, Expr, Literal, Named, SortKey
from kquery_spark.logical import Filter, Limit, LogicalPlan, Projection, Sort
from kquery_spark.physical.dynamic_filters.top_k import FirstRowsFilter
from kquery_spark.physical.operators import FilterExec, ProjectionExec, ScanExec, SortExec, TaskContext
from kquery_spark.sources.base import ColumnRange
from kquery_spark.types import names as t
from kquery_spark.types.vector import Vector
from tests.physical.harness import CONFIGS, PiecesSource, c, run, scan

ROWS = 3000
rng = np.random.default_rng(11)
_NULL = rng.random(ROWS) < 0.02


def _some(values: Any, dtype: pa.DataType | None = None) -> pa.Array:
    return pa.array(values, dtype, mask=_NULL)


_NUMBERS = rng.integers(-900, 900, ROWS)
_STRINGS = np.array([f"{'same start' * (n % 2)}{n}é" for n in _NUMBERS.tolist()], object)
TABLE = pa.table(
    {
        "i": _some(rng.integers(-(2**62), 2**62, ROWS)),
        "few": _some(rng.integers(0, 3, ROWS).astype(np.int16)),
        "f": _some(np.where(rng.random(ROWS) < 0.01, np.nan, np.round(rng.normal(size=ROWS), 2) + 0.0)),
        "d": _some(_NUMBERS.astype("datetime64[D]")),
        "ts": pa.array(_NUMBERS * 10**9, mask=_NULL).cast(pa.timestamp("us", "UTC")),
        "m": pa.array([None if n else Decimal(x).scaleb(-2) for n, x in zip(_NULL, _NUMBERS.tolist(), strict=True)], pa.decimal128(9, 2)),
        "wide": pa.array([Decimal(x) * 10**20 for x in _NUMBERS.tolist()], pa.decimal128(30, 0)),
        "s": _some(_STRINGS, t.STRING),
        "code": _some(_STRINGS, t.STRING).dictionary_encode(),
        "b": _some(_NUMBERS % 2 == 0),
        "bytes": _some([x.encode() for x in _STRINGS], t.BINARY),
        "nothing": pa.nulls(ROWS, t.INT),
        "n": pa.array(np.arange(ROWS)),
    }
)  # fmt: skip


def _keys(
    child: LogicalPlan, name: str, ascending: bool, nulls_first: bool, more: bool
) -> tuple[SortKey, ...]:
    first = SortKey(c(child, name), ascending, nulls_first)
    return (first, SortKey(c(child, "n"))) if more else (first,)


@pytest.mark.parametrize("name", [n for n in TABLE.schema.names if n not in ("n", "code")])
@pytest.mark.parametrize("limit", [1, 20, 70, 2000])
def test_the_first_rows_of_the_whole_order(name: str, limit: int) -> None:
    child = scan(TABLE.drop_columns(["code"]), rows_each=400)
    for ascending in (True, False):
        for nulls_first in (True, False):
            for more in (True, False):
                sort = Sort(child, _keys(child, name, ascending, nulls_first, more))
                whole = run(sort).slice(0, limit)
                first = run(Limit(sort, limit), CONFIGS[1])
                assert repr(first[name].to_pylist()) == repr(whole[name].to_pylist())
                if more:
                    assert first["n"].equals(whole["n"])
                assert len(set(first["n"].to_pylist())) == limit


def _first_rows(
    table: pa.Table, key: SortKey, limit: int, rows_each: int = 400
) -> tuple[pa.Table, TaskContext, ScanExec]:
    """What a task gives that sorts a scan, and the scan, of whose rows the task counted those that came out."""
    source = PiecesSource(rows_each, table)
    read = ScanExec(0, "t", source, tuple(table.schema.names), splits=tuple(source.splits()))
    task = TaskContext()
    batches = [batch.to_arrow() for batch in SortExec(read, (key,), limit).run(task)]
    return pa.Table.from_batches(batches), task, read


@pytest.mark.parametrize("name", ["i", "f", "d", "m", "s"])
def test_a_scan_gives_hardly_more_than_the_first_rows(name: str) -> None:
    key = SortKey(Column(name, TABLE.schema.field(name).type), True, False)
    found, task, read = _first_rows(TABLE, key, 10)
    assert found.num_rows == 10
    # ten of each batch at most; ties of strings
    assert task.metrics_of(read).rows <= 10 * 8 + 20 * (name == "s")


def test_rows_with_the_key_of_the_last_one_are_not_asked_for() -> None:
    found, task, read = _first_rows(TABLE, SortKey(Column("few", t.SHORT), True, True), 5)
    assert found.column("few").to_pylist() == [None] * 5
    assert task.metrics_of(read).rows == 5


@pytest.mark.parametrize("nulls_first", [True, False])
@pytest.mark.parametrize("ties", [True, False])
def test_what_passes(nulls_first: bool, ties: bool) -> None:
    """One batch teaches, the next one is judged."""
    found = FirstRowsFilter(("x",), True, nulls_first, ties, 3)
    assert found.is_on

    def passing(*values: int | None) -> list[int | None]:
        vector = Vector(t.LONG, pa.array(values, t.LONG))
        mask = found.mask([vector], len(values))
        return [v for v, hit in zip(values, mask.tolist(), strict=True) if hit]

    assert passing(5, 3) == [5, 3]
    assert passing(9, 5, 7, 5, 5) == ([5, 5, 5])
    after = passing(6, 5, None, 4)
    if nulls_first:
        assert after == ([5, None, 4] if ties else [None, 4])
        assert passing(None, None, 4, None) == [None, None, None]
        assert passing(None, -7) == ([None] if ties else [])
    else:
        assert after == ([5, 4] if ties else [4])
        assert passing(None) == []


def test_nulls_at_the_end_of_the_first_rows() -> None:
    found = FirstRowsFilter(("x",), True, False, False, 3)
    column = Vector(t.LONG, pa.array([None, 1, None, None], t.LONG))
    assert found.mask([column], 4).tolist() == [True, True, True, False]
    assert found.conditions([Column("x", t.LONG)]) == [Call.of("isnotnull", Column("x", t.LONG))]
    assert found.mask([column], 4).tolist() == [False, True, False, False]


def test_other_nulls_may_come_first_by_further_keys(tmp_path: Path) -> None:
    """A row group of NULLs only is not ruled out once the first rows end in a NULL."""
    tied = FirstRowsFilter(("x",), True, False, True, 3)
    tied.learn(Vector(t.LONG, pa.array([None], t.LONG)))
    assert tied.conditions([Column("x", t.LONG)]) == []
    rows = {"a": pa.array([1, None, None, None, None, None], t.INT), "b": [5, 10, 11, 1, 2, 3]}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet", row_group_size=3)
    context = kq.ExecutionContext()
    context.register_parquet("t", str(tmp_path))
    found = context.sql("SELECT b FROM t ORDER BY a NULLS LAST, b LIMIT 3").to_arrow()
    assert found["b"].to_pylist() == [5, 1, 2]


def test_what_statistics_are_asked() -> None:
    for dtype, value in ((t.LONG, 7), (t.DATE, 7), (t.timestamp("UTC"), 7)):
        column = Column("x", dtype)
        found = FirstRowsFilter(("x",), False, True, True, None)
        assert not found.is_on
        found.learn(Vector(dtype, pa.array([value], t.LONG if dtype != t.DATE else t.INT).cast(dtype)))
        assert found.is_on
        before = Call.of("gteq", column, Literal(value, dtype))
        assert found.conditions([column]) == [Call.of("or", Call.of("isnull", column), before)]
    assert FirstRowsFilter(("x",), True, True, False, 3).conditions([Column("x", t.STRING)]) == []


def test_reading_order() -> None:
    ranges = [ColumnRange(4, 9, 0), ColumnRange(1, 5, 0), ColumnRange(2, 20, 0)]
    rising = FirstRowsFilter(("x",), True, True, False, 3)
    falling = FirstRowsFilter(("x",), False, True, False, 3)
    column = Column("x", t.LONG)
    assert rising.reading_order(column, ranges) == [1, 2, 0]
    assert falling.reading_order(column, ranges) == [2, 0, 1]
    assert rising.reading_order(column, [*ranges, None]) is None
    assert rising.reading_order(column, [*ranges, ColumnRange(None, None, 5)]) is None


def _divided(column: Expr) -> Expr:
    return Call.of("div", Literal(1, t.LONG), column)


def test_operators_on_the_way() -> None:
    """Past a projection of columns; not counting rows past a filter; not at all past what can raise."""
    source = PiecesSource(400, TABLE)
    n, i = Column("n", t.LONG), Column("i", t.LONG)
    read = ScanExec(0, "t", source, ("n", "i"), splits=tuple(source.splits()))

    def accepted(plan: Any) -> list[FirstRowsFilter]:
        task = TaskContext()
        plan.accept_filter(task, FirstRowsFilter(("k",), True, True, False, 3))
        return task.runtime_filters.get(0, [])  # type: ignore[return-value]

    renamed = ProjectionExec(read, (Named(i, "k"), Named(n, "n")))
    (found,) = accepted(renamed)
    assert found.columns == ("i",)
    assert found.rows == 3
    small = Call.of("lt", Column("n", t.LONG), Literal(100, t.LONG))
    (found,) = accepted(FilterExec(renamed, small))
    assert found.columns == ("i",)
    assert found.rows is None
    assert not accepted(ProjectionExec(read, (Named(i, "k"), Named(_divided(n), "q"))))
    assert not accepted(FilterExec(renamed, Call.of("gt", _divided(Column("n", t.LONG)), Literal(0, t.LONG))))
    assert not accepted(ProjectionExec(read, (Named(Call.of("negative", i), "k"), Named(n, "n"))))


def test_a_filter_that_drops_most_rows() -> None:
    """It takes many batches until there are rows enough to learn from."""
    child = scan(TABLE.drop_columns(["code"]), rows_each=100)
    rare = Filter(
        child, Call.of("eq", Call.of("mod", c(child, "n"), Literal(97, t.LONG)), Literal(5, t.LONG))
    )
    renamed = Projection(rare, (Named(c(child, "i"), "k"), Named(c(child, "n"), "n")))
    sort = Sort(renamed, (SortKey(c(renamed, "k"), False, False), SortKey(c(renamed, "n"))))
    assert run(Limit(sort, 7)).equals(run(sort).slice(0, 7))


QUERIES = [
    "SELECT * FROM times ORDER BY ts DESC LIMIT 5",
    "SELECT * FROM times ORDER BY r, id LIMIT 5",
    "SELECT id, s FROM times WHERE id % 3 = 0 ORDER BY s DESC, id LIMIT 7",
    "SELECT id, upper(s) AS u FROM times ORDER BY ts LIMIT 3 OFFSET 4",
    "SELECT t.id, n FROM times t JOIN names ON t.id % 10 = key ORDER BY ts DESC LIMIT 5",
    "SELECT t.id, n FROM times t LEFT JOIN names ON t.id = key AND n > 'b' ORDER BY ts, id LIMIT 5",
    "SELECT id % 1000 AS k, count(*) FROM times GROUP BY k ORDER BY k LIMIT 5",
]


@pytest.fixture
def times(spark, tmp_path):
    """Rows in the order of their time; one of them would divide by zero."""
    facts, names = str(tmp_path / "facts"), str(tmp_path / "names")
    columns = ("id", "timestamp_seconds(id) AS ts", "id * 7919 % 200000 AS r", "IF(id = 3, 0, 1) AS zero")
    rows = spark.range(200_000).selectExpr(*columns, "CAST(id AS STRING) AS s").coalesce(1)
    rows.write.option("parquet.block.size", 1 << 18).parquet(facts)
    spark.range(8).selectExpr("id AS key", "substr('abc', CAST(id % 3 AS INT), 1) AS n").write.parquet(names)
    spark.read.parquet(facts).createOrReplaceTempView("times")
    spark.read.parquet(names).createOrReplaceTempView("names")
    yield
    spark.catalog.dropTempView("times")
    spark.catalog.dropTempView("names")


def test_queries_answer_as_in_spark(spark, times):
    for query in QUERIES:
        report = kq.verify(spark.sql(query))
        assert report.ok, f"{query}\n{report}"


def test_the_latest_rows_rule_out_the_row_groups_before(spark, times):
    query = "SELECT * FROM times WHERE s <> '7' ORDER BY id DESC LIMIT 5"
    assert "rows ruled out 1" in str(kq.explain(spark.sql(query), analyze=True))


def test_the_latest_rows_are_bounded_before_the_query_runs(spark, times):
    frame = spark.sql("SELECT * FROM times ORDER BY id DESC LIMIT 5 OFFSET 2")
    assert "filters=[#id >= 19" in str(kq.explain(frame))
    assert kq.verify(frame).ok


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, 1 DIV zero AS q FROM times ORDER BY ts DESC LIMIT 5",
        "SELECT id, 1 DIV zero AS q FROM times ORDER BY id DESC LIMIT 5",
        "SELECT id FROM times WHERE 1 DIV zero > 0 ORDER BY ts DESC LIMIT 5",
        "SELECT t.id FROM times t JOIN names ON t.id % 10 = key AND key DIV t.zero >= 0 ORDER BY ts DESC LIMIT 5",
    ],
)
def test_rows_left_out_still_raise(spark, times, query):
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        spark.sql(query).collect()
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        kq.kquery_plan(spark.sql(query), when="always", fallback="error").collect()


def test_estimated_numbers_of_rows_are_no_bounds(tmp_path: Path) -> None:
    """Lines of one directory are longer than those of the other, by which its rows are estimated."""
    for directory, line, rows in (("p=0", "x" * 200, 15), ("p=1", "y", 3000)):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "a.csv").write_text("s\n" + f"{line}\n" * rows)
    context = kq.ExecutionContext()
    context.register_csv("t", str(tmp_path))
    assert len(context.sql("SELECT p, s FROM t ORDER BY p LIMIT 50").collect()) == 50
