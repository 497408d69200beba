"""The suites: what they hold, how queries are chosen, and that the data says what the queries ask."""

import hashlib

import pyarrow.parquet as pq
import pytest

from benchmarks import environment
from benchmarks.suites import SUITES, Query
from benchmarks.suites.tpcds import spark_dialect


def test_every_suite_has_its_queries_under_names_of_their_own():
    counts = {name: len(SUITES[name].queries()) for name in ("tpch", "taxi", "micro", "small")}
    assert counts == {"tpch": 22, "taxi": 24, "micro": 26, "small": 50}
    for name in counts:
        names = [query.name for query in SUITES[name].queries()]
        assert len(set(names)) == len(names)


def test_tpcds_has_99_queries_and_24_tables(tmp_path):
    pytest.importorskip("duckdb_extension_tpcds")
    assert len(SUITES["tpcds"].queries()) == 99
    # the tables without rows; dsdgen takes minutes for the smallest real scale
    tables = SUITES["tpcds"].data(tmp_path, 0)
    assert len(tables) == 24
    assert "i_item_sk" in pq.read_schema(tmp_path / "tpcds-0" / "item.parquet").names


def test_names_in_double_quotes_get_backticks():
    assert spark_dialect('SELECT 1 AS "order count"') == "SELECT 1 AS `order count`"


def test_ranges_and_names_choose_queries_in_their_order():
    assert [query.name for query in SUITES["tpch"].chosen("6-8, 1")] == ["6", "7", "8", "1"]
    assert [query.name for query in SUITES["micro"].chosen("top_k,sort")] == ["top_k", "sort"]
    assert len(SUITES["micro"].chosen(None)) == 26


@pytest.mark.parametrize("text", ["0", "23", "a", "3-1", "1,,2", "1-"])
def test_a_query_that_is_not_there_is_refused(text):
    with pytest.raises(ValueError, match="suite tpch has no query"):
        SUITES["tpch"].chosen(text)


def test_only_the_last_limit_goes():
    query = Query(
        "q", "SELECT * FROM (SELECT a FROM t LIMIT 3) ORDER BY a\nLIMIT 100;\n", 'SELECT "x" limit 7'
    )
    bare = query.without_limit()
    assert bare is not None
    assert bare.sql == "SELECT * FROM (SELECT a FROM t LIMIT 3) ORDER BY a\n"
    assert bare.other_sql == 'SELECT "x" '
    assert Query("q", "SELECT * FROM (SELECT a FROM t LIMIT 3) ORDER BY a").without_limit() is None


def test_data_is_made_once_and_again_when_another_scale_is_asked_for(tmp_path):
    first = SUITES["micro"].data(tmp_path, 0.0002)
    times = [table.path.stat().st_mtime_ns for table in first]
    assert [table.path.stat().st_mtime_ns for table in SUITES["micro"].data(tmp_path, 0.0002)] == times
    assert pq.read_metadata(first[0].path).num_rows == 2000
    other = SUITES["micro"].data(tmp_path, 0.0004)
    assert pq.read_metadata(other[0].path).num_rows == 4000


def test_files_are_described_with_their_checksums_and_new_content_gets_a_new_one(tmp_path):
    tables = SUITES["small"].data(tmp_path, 0.001)
    notes = tmp_path / "sums.json"
    described = environment.files(tables, notes)
    assert [entry["table"] for entry in described][:2] == ["tiny", "empty"]
    path = tables[0].path
    assert described[0]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert environment.files(tables, notes) == described
    path.write_bytes(b"other")
    assert environment.files(tables, notes)[0]["bytes"] == 5
    assert environment.files(tables, notes)[0]["sha256"] == hashlib.sha256(b"other").hexdigest()
