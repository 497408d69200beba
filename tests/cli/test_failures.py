"""Every failure becomes a code and one line."""

import click
import pytest

from kquery_spark import errors
from kquery_spark.cli.failures import Exit, explain_failure, run
from kquery_spark.task_errors import task_error


def failure_of(action):
    with pytest.raises(Exception) as caught:
        action()
    failure = explain_failure(caught.value)
    assert "\n" not in failure.message
    return failure


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.Unsupported("windows are not supported"), Exit.DECLINED),
        (errors.SqlError("expected FROM", "SELECT 1 FORM t", 9), Exit.BAD_SQL),
        (errors.PlanError("no column 'x'"), Exit.BAD_SQL),
        (errors.SourceError("t.parquet is corrupt"), Exit.UNREADABLE),
        (errors.SourceError("t.parquet does not exist"), Exit.MISSING_PATH),
        (errors.ExecutionError("DIVIDE_BY_ZERO", "Division by zero."), Exit.QUERY_FAILED),
        (errors.ConfigError("when must be auto, always or never"), Exit.USAGE),
        (FileNotFoundError(2, "No such file", "x.csv"), Exit.MISSING_PATH),
        (click.UsageError("no such option"), Exit.USAGE),
        (KeyboardInterrupt(), Exit.INTERRUPTED),
        (ZeroDivisionError("surprise"), Exit.UNEXPECTED),
    ],
)
def test_each_kind_of_error_has_its_code(error, code):
    assert explain_failure(error).code is code


def test_sparks_own_errors_are_sorted_by_their_condition(spark, tmp_path):
    spark.range(3).createOrReplaceTempView("failures_t")
    missing = failure_of(lambda: spark.read.parquet("/no/such/place"))
    assert (missing.code, missing.message) == (
        Exit.MISSING_PATH,
        "[PATH_NOT_FOUND] Path does not exist: file:/no/such/place.",
    )
    column = failure_of(lambda: spark.sql("SELECT\n idd FROM failures_t"))
    assert column.code is Exit.BAD_SQL
    assert "`idd`" in column.message
    assert "[`id`]" in column.message
    assert column.message.endswith("(line 2, column 2)")
    syntax = failure_of(lambda: spark.sql("SELEC id FROM failures_t"))
    assert (syntax.code, syntax.message) == (
        Exit.BAD_SQL,
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'. (line 1, column 1)",
    )
    table = failure_of(lambda: spark.sql("SELECT id FROM failures_nowhere"))
    assert table.code is Exit.BAD_SQL
    assert "`failures_nowhere`" in table.message
    (tmp_path / "bad.parquet").write_bytes(b"this is not parquet")
    corrupt = failure_of(lambda: spark.read.parquet(str(tmp_path / "bad.parquet")))
    assert corrupt.code is Exit.UNREADABLE
    assert "bad.parquet" in corrupt.message
    divided = failure_of(lambda: spark.sql("SELECT 1 / (id - 1) FROM failures_t").collect())
    assert divided.code is Exit.QUERY_FAILED
    assert divided.message.startswith("[DIVIDE_BY_ZERO]")
    spark.catalog.dropTempView("failures_t")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.SourceError("part-3.parquet is corrupt"), Exit.UNREADABLE),
        (errors.ExecutionError("DIVIDE_BY_ZERO", "Division by zero."), Exit.QUERY_FAILED),
        (errors.Unsupported("no such type"), Exit.DECLINED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_our_errors_in_a_python_worker_keep_their_kind(spark, error, code):
    def fail(batches):
        raise task_error(error)

    failure = failure_of(lambda: spark.range(3).mapInArrow(fail, "id long").collect())
    assert (failure.code, failure.message) == (code, str(error))


def test_run_prints_one_line_and_returns_the_code(capsys):
    def command():
        raise errors.PlanError("no column 'x';\nthere are a, b")

    assert run("job", command) == Exit.BAD_SQL
    assert capsys.readouterr().err == "job: error: no column 'x'; there are a, b\n"
    assert run("job", lambda: None) == Exit.OK
    assert capsys.readouterr() == ("", "")
