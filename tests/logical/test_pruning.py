"""Pruning drops the row groups in which no row can pass, and those only."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquery_spark.expr import Call, Column, Expr, InList, Literal
from kquery_spark.logical.pruning import prune, sized_splits
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.types import names as t

X, D, S, F = Column("x", t.LONG), Column("d", t.DATE), Column("s", t.STRING), Column("f", t.DOUBLE)


def lit(value: object, dtype: pa.DataType = t.LONG) -> Literal:
    return Literal(value, dtype)


def call(name: str, *args: Expr) -> Call:
    return Call.of(name, *args)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> ParquetSource:
    """Five row groups of ten rows: x counts, d its days, s all NULL in the second group, f with a NaN in the third."""
    x = list(range(50))
    rows = pa.table(
        {
            "x": pa.array(x, pa.int64()),
            "d": pa.array(x, pa.int32()).cast(pa.date32()),
            "s": [None if 10 <= i < 20 else f"{i // 10}é" for i in x],
            "f": [float("nan") if i == 25 else float(i) for i in x],
        }
    )
    path = tmp_path_factory.mktemp("pruning") / "f.parquet"
    pq.write_table(rows, path, row_group_size=10)
    return parquet_source([str(path)])


@pytest.mark.parametrize(
    ("condition", "groups"),
    [
        (call("lt", X, lit(10)), [0]),
        (call("lteq", X, lit(10)), [0, 1]),
        (call("gt", X, lit(39)), [4]),
        (call("gteq", X, lit(39)), [3, 4]),
        (call("lt", lit(39), X), [4]),
        (call("eq", X, lit(20)), [2]),
        (call("eq", X, lit(None)), []),
        (call("eq", D, lit(33, t.DATE)), [3]),
        (call("eq", S, lit("3é", t.STRING)), [1, 3]),  # all NULL has no smallest and largest: it stays
        (call("eq_null_safe", S, lit(None, t.STRING)), [1]),
        (call("isnull", S), [1]),
        (call("isnotnull", S), [0, 2, 3, 4]),
        (call("lt", F, lit(10.0, t.DOUBLE)), [0]),
        (call("gt", F, lit(39.0, t.DOUBLE)), [0, 1, 2, 3, 4]),
        (InList(X, (lit(5), lit(45), lit(None))), [0, 4]),
        (call("or", call("lt", X, lit(10)), call("eq", X, lit(30))), [0, 3]),
        (call("and", call("gt", X, lit(9)), call("lt", X, lit(30))), [1, 2]),
        (call("or", call("lt", X, lit(10)), call("neq", X, lit(30))), [0, 1, 2, 3, 4]),
    ],
    ids=str,
)
def test_row_groups_that_remain(source: ParquetSource, condition: Expr, groups: list[int]) -> None:
    assert [split.pieces[0] for split in prune(source, [condition])] == groups


def test_every_filter_counts(source: ParquetSource) -> None:
    kept = prune(source, [call("gt", X, lit(9)), call("isnotnull", S), call("lt", X, lit(30))])
    assert [split.pieces for split in kept] == [(2,)]


def test_sizes_are_those_of_the_columns_that_are_read(source: ParquetSource) -> None:
    (kept,) = sized_splits(source, [call("lt", X, lit(10))], ["x"])
    (whole,) = prune(source, [call("lt", X, lit(10))])
    assert 0 < kept.nbytes < whole.nbytes
    assert kept.rows == whole.rows == 10


def test_what_a_caller_does_to_the_list_stays_with_the_caller(source: ParquetSource) -> None:
    filters = [call("lt", X, lit(20))]
    prune(source, filters).clear()
    sized_splits(source, filters, ["x"]).clear()
    assert len(prune(source, filters)) == len(sized_splits(source, filters, ["x"])) == 2


def test_a_file_written_again_is_judged_by_its_new_statistics(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    filters = [call("lt", X, lit(10))]
    pq.write_table(pa.table({"x": pa.array([1, 2], pa.int64())}), path)
    assert len(prune(parquet_source([str(path)]), filters)) == 1
    pq.write_table(pa.table({"x": pa.array([100, 200, 300], pa.int64())}), path)
    assert prune(parquet_source([str(path)]), filters) == []
