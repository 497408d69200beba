"""Both jobs on the engine: the same results as on Spark, the same failures, verified when asked."""

import pyarrow.dataset as ds
import pytest

from tests.jobs.test_jobs import FAILURES, broken, error_line, here, submit

__all__ = ["here"]  # a fixture


@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_both_verifies_and_writes_the_report_that_spark_writes(here, taxi_dir, tmp_path, format_):
    for engine in ("spark", "both"):
        assert here("taxi_report", taxi_dir / format_, tmp_path / engine, "--engine", engine)[0] == 0
    spark, engine = (ds.dataset(tmp_path / name).to_table() for name in ("spark", "both"))
    assert engine.schema.remove_metadata() == spark.schema.remove_metadata()
    exact = ["year", "month", "passenger_count", "trips", "highest_fare"]
    assert engine.select(exact).equals(spark.select(exact))
    for name in ("average_miles", "tips", "earned"):
        assert engine[name].to_pylist() == pytest.approx(spark[name].to_pylist(), rel=1e-9)


def test_the_report_needs_nothing_of_spark(here, taxi_dir, tmp_path):
    code, stderr = here(
        "taxi_report", taxi_dir / "parquet", tmp_path / "report", "--engine", "kquery", "--strict"
    )
    assert code == 0, stderr


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
