"""``%%kquery`` and ``%kquery`` in a shell of IPython."""

from __future__ import annotations

from typing import Any

import pytest

import kquery_spark as kq
from kquery_spark.accelerate.execution.dataframe import execution_of
from tests.conftest import settings


def run(shell: Any, cell: str) -> Any:
    """The value of a cell, which must not fail."""
    result = shell.run_cell(cell)
    assert result.success, result.error_in_exec
    return result.result


def error(shell: Any, cell: str) -> str:
    """The one sentence that a cell fails with."""
    from IPython.core.error import UsageError

    raised = shell.run_cell(cell).error_in_exec
    assert isinstance(raised, UsageError), raised
    return str(raised)


def test_a_cell_shows_its_first_rows_and_names_the_frame(shell: Any) -> None:
    shown = run(shell, "%%kquery ids --rows 2\nSELECT id, concat('a|', id) AS s FROM range(5) ORDER BY id;")
    assert shown.grid.names == ("id", "s")
    assert shown.grid.rows == (("0", "a|0"), ("1", "a|1"))
    assert shown.grid.is_cut
    assert repr(shown).startswith("+---+")
    html = shown._repr_html_()
    assert "<table" in html
    assert "the first 2 rows" in html
    assert 'text-align:right">1</td>' in html
    assert shell.user_ns["ids"].count() == 5
    assert shown.frame is shell.user_ns["ids"]


def test_the_engine_runs_it_where_the_options_say(shell: Any, spark: Any) -> None:
    sql = "SELECT id % 3 AS k, count(*) AS n FROM range(30) GROUP BY 1 ORDER BY 1"
    shown = run(shell, f"%%kquery fast --when always\n{sql}")
    assert shown.grid.rows == (("0", "10"), ("1", "10"), ("2", "10"))
    assert execution_of(shell.user_ns["fast"]) is not None
    run(shell, f"%%kquery slow --engine=spark --rows 1\n{sql}")
    assert execution_of(shell.user_ns["slow"]) is None


def test_engine_spark_bypasses_an_enabled_session(shell: Any, spark: Any) -> None:
    events: list[kq.QueryEvent] = []
    spark.sql("CREATE TABLE magic_t (k BIGINT, n BIGINT) USING parquet")
    kq.enable(spark, when="always")
    forget = kq.on_query(events.append)
    try:
        query = "SELECT id % 3 AS k, count(*) AS n FROM range(30) GROUP BY 1"
        run(shell, f"%%kquery slow --engine spark\n{query}")
        run(shell, f"%%kquery --engine spark\nINSERT INTO magic_t {query}")
        assert not events
        run(shell, f"%%kquery --when always\n{query}")
        assert events
    finally:
        forget()
        kq.disable(spark)
        spark.sql("DROP TABLE magic_t")


def test_explanations_and_reports_take_the_place_of_rows(shell: Any) -> None:
    explained = run(shell, "%%kquery --explain\nSELECT count(*) FROM range(9)")
    assert explained.coverage == 1.0
    assert repr(explained) == str(explained)
    report = run(shell, "%%kquery --verify\nSELECT id % 2, count(*) FROM range(9) GROUP BY 1")
    assert report.ok
    assert report.accelerated
    assert "same as Spark SQL: yes" in report._repr_html_()


def test_statements_are_not_run_to_be_explained(shell: Any, spark: Any) -> None:
    for option in ("--explain", "--verify"):
        sentence = error(shell, f"%%kquery {option}\nCREATE TEMPORARY VIEW explained AS SELECT 1")
        assert sentence.endswith(
            "only queries can be explained or verified; Spark would run this statement at once"
        )
    assert not spark.catalog.tableExists("explained")


def test_a_line_has_its_sql_after_the_options(shell: Any) -> None:
    shown = run(shell, "%kquery --rows 3 SELECT id, '--x' AS x FROM range(2)")
    assert shown.grid.rows == (("0", "--x"), ("1", "--x"))
    assert not shown.grid.is_cut


def test_odd_strings_come_back_as_they_are(shell: Any) -> None:
    shown = run(
        shell, "%%kquery\nSELECT '日本😀|x' AS `a|b`, 'two\\nlines' AS t, NULL AS n, '<b>' AS h, '' AS e"
    )
    assert shown.grid.names == ("a|b", "t", "n", "h", "e")
    assert shown.grid.rows == (("日本😀|x", "two\\nlines", "NULL", "<b>", ""),)
    assert "&lt;b&gt;" in shown._repr_html_()


def test_a_statement_has_no_columns(shell: Any, spark: Any) -> None:
    shown = run(shell, "%%kquery\nCREATE OR REPLACE TEMP VIEW of_a_cell AS SELECT 1 AS one")
    spark.catalog.dropTempView("of_a_cell")
    assert "no columns" in shown._repr_html_()


def test_the_context_of_the_notebook_runs_it_without_spark(shell: Any) -> None:
    assert run(shell, "%kquery --engine local SELECT 1.5 AS y").grid.rows == (("1.5",),)
    run(shell, "import kquery_spark as kq, pyarrow as pa\nctx = kq.ExecutionContext()")
    run(shell, "ctx.register_arrow('t', pa.table({'k': [1, 2, None], 's': ['😀', 'b', 'c']}))")
    shown = run(shell, "%%kquery own --engine local --rows 2\nSELECT k, s FROM t ORDER BY k NULLS LAST")
    assert shown.grid.rows == (("1", "😀"), ("2", "b"))
    assert shown.grid.is_cut
    assert isinstance(shell.user_ns["own"], kq.frontends.dataframe.DataFrame)
    run(shell, "other = kq.ExecutionContext()")
    assert "choose one with --context: ctx, other" in error(shell, "%kquery --engine local SELECT 1")
    assert run(shell, "%kquery --engine local --context ctx SELECT count(*) FROM t").grid.rows == (("3",),)
    assert error(shell, "%kquery --engine local --context ctx SELECT x FROM t").endswith("(line 1, column 8)")


def test_an_error_of_the_query_is_one_sentence_with_its_place(shell: Any, spark: Any) -> None:
    missing = error(shell, "%%kquery\nSELECT 1,\n  nope FROM range(3)")
    assert missing.startswith("[UNRESOLVED_COLUMN")
    assert missing.endswith("(line 2, column 3)")
    assert error(shell, "%%kquery\nSELECT 1 FRM range(3)").endswith("(line 1, column 14)")
    with settings(spark, {"spark.sql.ansi.enabled": "true"}):
        failed = error(shell, "%%kquery\nSELECT id,\n 1 / (id - id) FROM range(3)")
    assert failed.startswith("[DIVIDE_BY_ZERO")
    assert failed.endswith("(line 2, column 2)")
    assert "\n" not in missing + failed


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("%kquery", "the SQL is missing"),
        ("%%kquery --fast\nSELECT 1", "unknown option --fast"),
        ("%%kquery a b\nSELECT 1", "'b' is neither an option nor a name"),
        ("%%kquery 1a\nSELECT 1", "'1a' is neither an option nor a name"),
        ("%%kquery --rows none\nSELECT 1", "--rows takes a whole number above 0, not 'none'"),
        ("%%kquery --engine duckdb\nSELECT 1", "--engine is kquery, spark or local, not 'duckdb'"),
        ("%%kquery --when never\nSELECT 1", "--when is auto or always, not 'never'"),
        ("%%kquery --explain --verify\nSELECT 1", "pass --explain or --verify, not both"),
        ("%%kquery --context ctx\nSELECT 1", "--context is for --engine local"),
        ("%%kquery --engine local --context x\nSELECT 1", "x is not an ExecutionContext of this notebook"),
    ],
)
def test_wrong_options_say_what_is_right(shell: Any, cell: str, words: str) -> None:
    assert words in error(shell, cell)


def test_unloading_takes_the_magics_away(shell: Any) -> None:
    shell.run_line_magic("unload_ext", "kquery_spark")
    assert shell.find_cell_magic("kquery") is None
    assert shell.find_line_magic("kquery") is None
