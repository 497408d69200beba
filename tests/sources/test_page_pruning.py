"""Conditions and join keys exclude rows of Parquet files by the statistics of pages, before the rows are decoded."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.expr import Call, Column, Expr, InList, Literal
from kquery_spark.logical.pruning import comparable, possible_rows, sized_splits
from kquery_spark.sources.parquet.open_files import open_file
from kquery_spark.types import names as t
from kquery_spark.verify import verify
from tests.sources.test_parquet_pages import clustered, table, write

pytestmark = pytest.mark.usefixtures("pages_of_small_chunks")


NO_RANGES = {"u", "b", "bytes", "listed", "nested"}


@pytest.mark.parametrize("dictionaries", [True, False])
def test_what_pages_are_said_to_hold_is_in_them(tmp_path, dictionaries):
    source = write(
        tmp_path / "f.parquet", table(), use_dictionary=dictionaries, store_decimal_as_integer=dictionaries
    )
    for split in source.splits():
        opened = open_file(source.files[0])
        columns = [c for c in source.schema.names if opened.pages.ranges(split.pieces[0], c) is not None]
        assert set(columns) == set(source.schema.names) - NO_RANGES
        known = source.page_statistics(split, columns)
        assert known is not None
        (whole,) = source.read(split, list(known.ranges))
        rows = whole.to_arrow()
        for column, ranges in known.ranges.items():
            dtype = source.schema.field(column).type
            assert len(ranges) == len(known.starts) - 1
            for (start, end), actual in zip(pairwise(known.starts), ranges, strict=True):
                part = rows.column(column).slice(start, end - start)
                values = [comparable(v, dtype) for v in part.to_pylist() if v is not None and v == v]
                assert actual is not None and (actual.nulls is None or actual.nulls == part.null_count == 0)
                assert actual.low is None or not values or comparable(actual.low, dtype) <= min(values)
                assert actual.high is None or not values or max(values) <= comparable(actual.high, dtype)


TYPES = {"id": t.LONG, "day": t.DATE, "s": t.STRING, "m9": pa.decimal128(9, 2), "ts": t.timestamp("UTC")}


def condition(name: str, op: str, value: object) -> Expr:
    return Call.of(op, Column(name, TYPES[name]), Literal(value, TYPES[name]))


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([condition("id", "eq", 777)], range(777, 778)),
        ([condition("id", "lt", 200)], range(200)),
        ([condition("day", "gteq", 3800)], range(3800, 4000)),
        ([condition("s", "eq", "02501é")], range(2501, 2502)),
        ([condition("m9", "gt", Decimal("39.50"))], range(3951, 4000)),
        ([condition("ts", "lteq", 99_000_000)], range(100)),
        ([condition("id", "gteq", 900), condition("day", "lt", 950)], range(900, 950)),
        (
            [Call.of("or", condition("id", "lt", 9), condition("s", "gteq", "03990é"))],
            [*range(9), *range(3990, 4000)],
        ),
        ([InList(Column("id", t.LONG), (Literal(3, t.LONG), Literal(3003, t.LONG)))], [3, 3003]),
        ([condition("id", "gt", 10**6)], []),
    ],
)
def test_rows_that_can_pass(tmp_path, conditions, expected):
    source = write(tmp_path / "f.parquet", clustered(), use_dictionary=False)
    split = source.splits()[0]
    rows = possible_rows(source, split, conditions)
    assert rows is not None and set(expected) <= set(rows.tolist())
    assert len(rows) <= len(expected) + 1200  # pages are of a hundred rows to six hundred
    for sized in sized_splits(source, conditions, source.schema.names):
        assert sized.pieces != split.pieces or sized.nbytes < 0.4 * split.nbytes


def test_conditions_that_rule_out_nothing(tmp_path):
    source = write(tmp_path / "f.parquet", clustered(), use_dictionary=False)
    split = source.splits()[0]
    assert possible_rows(source, split, [condition("id", "gt", 100)]) is None
    assert possible_rows(source, split, [Call.of("isnotnull", Column("s", t.STRING))]) is None
    without = write(tmp_path / "g.parquet", clustered(), write_page_index=False)
    assert possible_rows(without, without.splits()[0], [condition("id", "eq", 7)]) is None


def test_nulls_of_a_page_are_not_those_of_a_part_of_it(tmp_path):
    rows = pa.table(
        {
            "a": pa.array(np.arange(2000)),
            "n": pa.array([None] * 90 + [1] * 10, pa.int64()).take(np.arange(2000) % 100),
        }
    )
    source = write(tmp_path / "f.parquet", rows, use_dictionary=False)
    present = Call.of("isnotnull", Column("n", t.LONG))
    first = Call.of("lt", Column("a", t.LONG), Literal(100, t.LONG))
    actual = possible_rows(source, source.splits()[0], [first, present])
    assert actual is not None and set(range(100)) <= set(actual.tolist())


def test_dates_and_times_of_literals_are_those_of_statistics(tmp_path):
    source = write(tmp_path / "f.parquet", clustered(), use_dictionary=False)
    known = source.page_statistics(source.splits()[0], ["day", "ts"])
    assert known is not None
    assert known.ranges["day"][0].low == comparable(date(1970, 1, 1), t.DATE)
    assert known.ranges["ts"][0].low == comparable(
        datetime(1970, 1, 1, tzinfo=timezone.utc), t.timestamp("UTC")
    )


def test_explain_says_how_many_rows_were_ruled_out(spark, tmp_path):
    path = str(tmp_path / "spark")
    spark.range(400_000).selectExpr("id", "id % 7 AS x").coalesce(1).write.parquet(path)
    text = str(kq.explain(spark.read.parquet(path).where("id BETWEEN 777 AND 900"), analyze=True))
    assert "rows ruled out 3" in text


KEYS = "SELECT id, n FROM facts JOIN dims ON k = dims.key WHERE dims.n = 'x'"


@pytest.fixture
def star(spark, tmp_path):
    """Facts clustered by their key; one of them would divide by zero; and dimensions with few matches."""
    facts, dims = str(tmp_path / "facts"), str(tmp_path / "dims")
    columns = ("id", "id DIV 10 AS k", "IF(id = 3, 0, 1) AS zero", "CAST(id AS STRING) AS s")
    spark.range(300_000).selectExpr(*columns).coalesce(1).write.parquet(facts)
    spark.range(800).selectExpr("id AS key", "IF(id BETWEEN 300 AND 310, 'x', 'y') AS n").write.parquet(dims)
    spark.read.parquet(facts).createOrReplaceTempView("facts")
    spark.read.parquet(dims).createOrReplaceTempView("dims")
    yield
    spark.catalog.dropTempView("facts")
    spark.catalog.dropTempView("dims")


def test_keys_of_a_build_side_rule_out_pages(spark, star):
    frame = spark.sql(KEYS)
    assert verify(frame).ok
    assert "rows ruled out 2" in str(kq.explain(frame, analyze=True))


@pytest.mark.parametrize(
    "query",
    [
        f"{KEYS} AND 1 DIV zero > 0",
        "SELECT * FROM (SELECT k, sum(1) AS c FROM facts GROUP BY k HAVING 1 DIV min(zero) > 0) JOIN few ON k = key",
        "SELECT * FROM (SELECT k, 1 DIV zero AS q, count(*) FROM facts GROUP BY k, 1 DIV zero) JOIN few ON k = key",
        "SELECT * FROM (SELECT k FROM facts WHERE (SELECT max(key) FROM dims) DIV zero > 0) JOIN few ON k = key",
        "SELECT * FROM (SELECT f.k FROM facts f LEFT JOIN facts g ON f.id = g.id AND g.id DIV f.zero > -1) "
        "JOIN few ON k = key",
    ],
)
def test_rows_without_a_match_still_raise(spark, star, query):
    query = f"WITH few AS (SELECT * FROM dims WHERE n = 'x') {query}"
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        spark.sql(query).collect()
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        kq.kquery_plan(spark.sql(query), when="always", fallback="error").collect()
