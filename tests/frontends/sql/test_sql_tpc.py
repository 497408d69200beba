"""The queries of TPC-H and TPC-DS, as DuckDB's extensions ship them, parse and print."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from kquery_spark.frontends.sql import parse_query, to_sql

duckdb = pytest.importorskip("duckdb")


def queries(benchmark: str) -> list[str]:
    package = pytest.importorskip(f"duckdb_extension_{benchmark}")
    extension = next(
        path / f"{benchmark}.duckdb_extension"
        for path in (files(package) / "extensions").iterdir()
        if path.is_dir()
    )
    with duckdb.connect(config={"allow_unsigned_extensions": True}) as connection:
        connection.execute(f"LOAD '{extension}'")
        return [
            text for _, text in connection.execute(f"FROM {benchmark}_queries() ORDER BY query_nr").fetchall()
        ]


def with_backticks(text: str) -> str:
    """Eight TPC-DS strings quote aliases as the standard does; in Spark double quotes make strings."""
    return re.sub(r'"([^"\n]*)"', r"`\1`", text)


@pytest.mark.parametrize(("benchmark", "count"), [("tpch", 22), ("tpcds", 99)])
def test_all_queries_parse_and_print(benchmark: str, count: int) -> None:
    strings = queries(benchmark)
    assert len(strings) == count
    for text in strings:
        tree = parse_query(with_backticks(text))
        assert parse_query(to_sql(tree)) == tree


def test_quoted_aliases_are_strings_as_in_spark() -> None:
    rewritten = [text for text in queries("tpcds") if with_backticks(text) != text]
    assert len(rewritten) == 8
