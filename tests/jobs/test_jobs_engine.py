"""Both jobs on the engine: the same results as on Spark, the same failures, verified when asked."""

import pyarrow.dataset as ds
import pytest
from chispa import assert_approx_df_equality

from kquery_spark.testing import assert_accelerated, assert_same_as_spark
from tests.conftest import exhaustive
from tests.jobs.test_jobs import FAILURES, broken, error_line, here, load, submit

__all__ = ["here"]  # a fixture


@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_both_verifies_and_writes_the_report_that_spark_writes(spark, here, taxi_dir, tmp_path, format_):
    for engine in ("spark", "both"):
        assert here("taxi_report", taxi_dir / format_, tmp_path / engine, "--engine", engine)[0] == 0
    written = [spark.read.parquet(str(tmp_path / engine)) for engine in ("spark", "both")]
    assert_approx_df_equality(*written, precision=1e-6, ignore_row_order=True)


@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_the_query_of_the_report_runs_in_the_engine_and_gives_the_answer_of_spark(spark, taxi_dir, format_):
    job = load("taxi_report")
    job.trips(spark, str(taxi_dir / format_)).createOrReplaceTempView("tripdata")
    assert_accelerated(job.REPORT, spark)
    assert assert_same_as_spark(job.REPORT, spark).ordered_by == ("year", "month", "passenger_count")


def test_the_report_needs_nothing_of_spark(here, taxi_dir, tmp_path):
    code, stderr = here(
        "taxi_report", taxi_dir / "parquet", tmp_path / "report", "--engine", "kquery", "--strict"
    )
    assert code == 0, stderr


@exhaustive
def test_the_report_on_the_engine_through_spark_submit(taxi_dir, tmp_path):
    run = submit("taxi_report.py", taxi_dir / "csv", tmp_path / "report", "--engine", "both")
    assert run.returncode == 0, run.stderr
    report = ds.dataset(tmp_path / "report").to_table()
    assert set(report["month"].to_pylist()) == set(range(1, 13))
    assert report.num_rows > 80
    assert f"wrote {tmp_path / 'report'}: {report.num_rows} rows, engine both" in run.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


@pytest.mark.parametrize("engine", ["kquery", "both"])
@pytest.mark.parametrize("case", FAILURES)
def test_each_failure_has_the_code_it_has_on_spark(here, tmp_path, case, engine):
    code, says = FAILURES[case]
    arguments, out = broken(case, tmp_path)
    actual, stderr = here("run_sql", *arguments, "--engine", engine)
    assert actual == code, stderr
    assert says in error_line(stderr, "run_sql")
    assert list(out.iterdir()) == []


def test_strict_refuses_what_would_stay_with_spark(here, tmp_path, tpch_dir):
    (tmp_path / "q.sql").write_text("SELECT java_method('java.lang.Math', 'abs', n_nationkey) FROM nation")
    out = tmp_path / "results"
    out.mkdir()
    code, stderr = here(
        "run_sql", tmp_path / "q.sql", "--table", f"nation={tpch_dir / 'nation.parquet'}",
        "--output", out / "r.parquet", "--strict",
    )  # fmt: skip
    assert code == 9, stderr
    error_line(stderr, "run_sql")
    assert list(out.iterdir()) == []
