"""The parser of SQL test files: blocks, directives, settings, and clear errors for what breaks the format."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sql.sql_file import Query, SqlFile, SqlFileError, Variant, View, parse_sql_file

EXAMPLE = """\
-- Joins of two tables.
-- Config: spark.sql.ansi.enabled=true,false
-- Format: parquet, orc

statement files=2
CREATE OR REPLACE TEMP VIEW t AS
SELECT 1 AS k

statement partitioned_by(p, q)
create temporary view u as select 1 as k, 2 as p, 3 as q

-- the first one
-- MinSparkVersion: 4.3
query
SELECT k
FROM t -- a comment in SQL

query tolerance=1e-9 expect_fallback(words (of a) reason) context_declines(not supported)
SELECT avg(k) FROM t


query expect_error(DIVIDE_BY_ZERO)
SELECT 1 / k FROM t
"""


def parse(text: str) -> SqlFile:
    return parse_sql_file(text, Path("x.sql"))


def test_a_file_is_views_and_queries_in_the_order_of_the_text() -> None:
    file = parse(EXAMPLE)
    assert file.views == (
        View("t", "SELECT 1 AS k", 5, files=2),
        View("u", "select 1 as k, 2 as p, 3 as q", 9, partitioned_by=("p", "q")),
    )
    assert file.queries == (
        Query("SELECT k\nFROM t -- a comment in SQL", 14, "the first one", min_version=(4, 3)),
        Query(
            "SELECT avg(k) FROM t",
            18,
            tolerance=1e-9,
            fallback="words (of a) reason",
            context_declines="not supported",
        ),
        Query("SELECT 1 / k FROM t", 22, error="DIVIDE_BY_ZERO"),
    )


def test_several_values_of_a_setting_and_several_formats_are_several_runs() -> None:
    ansi = "spark.sql.ansi.enabled"
    assert parse(EXAMPLE).variants() == [
        Variant(((ansi, "true"),), "parquet"),
        Variant(((ansi, "true"),), "orc"),
        Variant(((ansi, "false"),), "parquet"),
        Variant(((ansi, "false"),), "orc"),
    ]
    assert parse("query\nSELECT 1").variants() == [Variant((), "parquet")]


def test_a_version_above_the_first_block_holds_for_the_file() -> None:
    file = parse("-- MinSparkVersion: 4.4\n\nquery\nSELECT 1\n\n-- MinSparkVersion: 5.0\nquery\nSELECT 2")
    assert [q.min_version for q in file.queries] == [(4, 4), (5, 0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.sql:1: the file has no query"),
        ("SELECT 1", "x.sql:1: a block starts with statement or query, not with 'SELECT 1'"),
        ("\n-- name\nquerry\nSELECT 1", "x.sql:3: a block starts with statement or query, not with 'querry'"),
        ("query\n\nSELECT 1", "x.sql:1: query without SQL below it"),
        ("query\nSELECT 1;", "x.sql:1: a statement ends with its block, without a semicolon"),
        ("query tolerance=small\nSELECT 1", "x.sql:1: tolerance takes a number like 1e-9, not 'small'"),
        ("query tolerance=\nSELECT 1", "x.sql:1: tolerance is empty"),
        (
            "query expect_fallback\nSELECT 1",
            "x.sql:1: an option is name=value or name(words), not 'expect_fallback'",
        ),
        ("query expect_fallback(a (b)\nSELECT 1", "x.sql:1: expect_fallback( is not closed"),
        (
            "query expect_falback(a)\nSELECT 1",
            "x.sql:1: unknown option 'expect_falback'; there are tolerance,",
        ),
        ("query expect_error(A) expect_error(B)\nSELECT 1", "x.sql:1: expect_error is given twice"),
        (
            "query expect_error(A) tolerance=1\nSELECT 1",
            "x.sql:1: a query that raises an error has no rows to compare",
        ),
        ("statement\nDROP TABLE t", "x.sql:1: a statement is CREATE TEMP VIEW name AS query"),
        (
            "statement files=no\nCREATE TEMP VIEW t AS SELECT 1",
            "x.sql:1: files takes a number from 1 on, not 'no'",
        ),
        (
            "statement\nCREATE TEMP VIEW t AS SELECT 1\n\nstatement\nCREATE TEMP VIEW T AS SELECT 2",
            "x.sql:4: there is a view T already",
        ),
        (
            "-- Config: spark.sql.ansi.enabled\n\nquery\nSELECT 1",
            "x.sql:1: Config takes key=value or key=value,value",
        ),
        ("-- Config: a=1\n-- Config: a=2\n\nquery\nSELECT 1", "x.sql:2: a is set twice"),
        (
            "-- Config: a=1\nquery\nSELECT 1",
            "x.sql:1: Config holds for the whole file: put it above the first block",
        ),
        ("query\nSELECT 1\n\n-- Format: orc", "x.sql:4: Format holds for the whole file"),
        (
            "-- Format: avro\n\nquery\nSELECT 1",
            "x.sql:1: unknown format 'avro'; there are parquet, orc, json, csv",
        ),
        ("-- Configs: a=1\n\nquery\nSELECT 1", "x.sql:1: unknown setting '-- Configs: a=1'"),
        (
            "-- MaxSparkVersion: 4\n\nquery\nSELECT 1",
            "x.sql:1: MaxSparkVersion takes a version like 4.3, not '4'",
        ),
        (
            "-- MinSparkVersion: four\n\nquery\nSELECT 1",
            "x.sql:1: MinSparkVersion takes a version like 4.3, not 'four'",
        ),
    ],
)
def test_what_breaks_the_format_is_named_with_file_and_line(text: str, message: str) -> None:
    with pytest.raises(SqlFileError) as raised:
        parse(text)
    assert str(raised.value).startswith(message)


def test_tables_that_several_files_have_are_taken_from_a_file_of_their_own() -> None:
    file = parse(
        "-- Tables: pairs, timestamps\n\nstatement\nCREATE TEMP VIEW own AS SELECT 1\n\nquery\nSELECT 1\n"
    )
    assert [view.name for view in file.views] == ["u", "ts", "own"]
    with pytest.raises(SqlFileError, match=r"x\.sql:1: there are no tables 'pears'; there are .*pairs"):
        parse("-- Tables: pears\n\nquery\nSELECT 1\n")
    with pytest.raises(SqlFileError, match=r"x\.sql:3: there is a view u already"):
        parse("-- Tables: pairs\n\nstatement\nCREATE TEMP VIEW u AS SELECT 1\n\nquery\nSELECT 1\n")
