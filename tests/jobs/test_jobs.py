"""Both jobs: results, exit codes, one line of error. Some through spark-submit, as a pipeline runs them."""

import importlib.util
import os
import subprocess
import sysconfig
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from benchmarks import taxi
from kquery_spark.cli.failures import run as run_shell
from tests.conftest import ROOT, worker_environment

SUBMIT = Path(sysconfig.get_path("scripts")) / "spark-submit"


def submit(job, *arguments):
    command = [SUBMIT, "--master", "local[2]", "--properties-file", ROOT / "conf/kquery-spark.conf"]
    command += ["--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2"]
    environment = {**os.environ, **worker_environment()}
    environment.pop("SPARK_HOME", None)
    return subprocess.run(
        [*map(str, command), str(ROOT / "jobs" / job), *map(str, arguments)],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def error_line(stderr, name):
    lines = [line for line in stderr.splitlines() if line.startswith(f"{name}: error: ")]
    assert len(lines) == 1, stderr
    assert "Traceback" not in stderr
    assert "\tat org.apache.spark" not in stderr
    return lines[0]


def load(job):
    spec = importlib.util.spec_from_file_location(job, ROOT / "jobs" / f"{job}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def here(spark, monkeypatch, capfd):
    """Run a job in this process on the session of the tests: ``here(job, *arguments)`` -> code, stderr."""

    def run(job, *arguments):
        module = load(job)
        with monkeypatch.context() as patch:
            patch.setattr(module, "job_session", lambda name, log_level: spark)
            patch.setattr(type(spark), "stop", lambda self: None)
            capfd.readouterr()
            code = run_shell(job, lambda: module.main([*map(str, arguments)], standalone_mode=False))
        return code, capfd.readouterr().err

    return run


ENGINES = ("spark",)


def test_the_report_job_knows_the_columns_that_the_generator_writes():
    assert load("taxi_report").COLUMNS == taxi.DDL


def test_both_formats_give_the_same_report(here, taxi_dir, tmp_path):
    for format_ in ("parquet", "csv"):
        assert here("taxi_report", taxi_dir / format_, tmp_path / format_, "--engine", "spark")[0] == 0
    parquet, text = (pq.read_table(tmp_path / format_) for format_ in ("parquet", "csv"))
    exact = ["year", "month", "passenger_count", "trips", "highest_fare"]
    assert parquet.select(exact).equals(text.select(exact))
    assert parquet.num_rows > 80


def test_sql_over_two_tables_is_written(here, tpch_dir, tmp_path):
    (tmp_path / "q.sql").write_text(
        "SELECT r_name, count(*) AS nations FROM nation JOIN region ON n_regionkey = r_regionkey GROUP BY r_name;\n"
    )
    code, _ = here(
        "run_sql", tmp_path / "q.sql", "--table", f"nation={tpch_dir / 'nation.parquet'}",
        "--table", f"region=parquet:{tpch_dir / 'region.parquet'}", "--output", tmp_path / "out.parquet",
        "--engine", "spark",
    )  # fmt: skip
    assert code == 0
    out = ds.dataset(tmp_path / "out.parquet").to_table()
    assert sorted(out["nations"].to_pylist()) == [5, 5, 5, 5, 5]


def corrupt_parquet(path):
    # a good footer over pages that are noise: found only while the data is read
    pq.write_table(pa.table({"id": list(range(5_000))}), path, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4:2_000] = b"\xff" * 1_996
    path.write_bytes(data)


FAILURES = {
    "missing path": (3, "Path does not exist: file:/no/such/place.parquet"),
    "missing SQL file": (3, "path does not exist: /no/such/query.sql"),
    "bad SQL": (4, "Syntax error at or near 'SELEC'"),
    "no such column": (4, "name `idd` cannot be resolved"),
    "not Parquet": (5, "t.parquet"),
    "corrupt pages": (5, "t.parquet"),
    "division by zero": (6, "[DIVIDE_BY_ZERO]"),
    "wrong argument": (2, "should be NAME=PATH"),
}


def broken(case, directory):
    """The arguments of a run_sql that must fail, and the empty directory it would have written to."""
    table, sql = directory / "t.parquet", "SELECT id FROM t"
    pq.write_table(pa.table({"id": [1, 2, 3]}), table)
    query, spec = directory / "q.sql", f"t={table}"
    if case == "missing path":
        spec = "t=/no/such/place.parquet"
    elif case == "bad SQL":
        sql = "SELEC id FROM t"
    elif case == "no such column":
        sql = "SELECT idd FROM t"
    elif case == "not Parquet":
        table.write_bytes(b"certainly not parquet")
    elif case == "corrupt pages":
        corrupt_parquet(table)
    elif case == "division by zero":
        sql = "SELECT 1 / (id - 2) AS x FROM t"
    elif case == "wrong argument":
        spec = "t"
    query.write_text(sql)
    if case == "missing SQL file":
        query = Path("/no/such/query.sql")
    out = directory / "results"
    out.mkdir()
    return [query, "--table", spec, "--output", out / "r.parquet"], out


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", FAILURES)
def test_each_failure_of_run_sql_has_its_code_one_line_and_no_output(here, tmp_path, case, engine):
    code, says = FAILURES[case]
    arguments, out = broken(case, tmp_path)
    actual, stderr = here("run_sql", *arguments, "--engine", engine)
    assert actual == code, stderr
    assert says in error_line(stderr, "run_sql")
    assert list(out.iterdir()) == []


# before there is a session, and in the middle of a task: what comes between is the same process
@pytest.mark.parametrize("case", ["missing SQL file", "corrupt pages"])
def test_through_spark_submit_the_line_is_on_its_stderr(tmp_path, case):
    code, says = FAILURES[case]
    arguments, out = broken(case, tmp_path)
    run = submit("run_sql.py", *arguments, "--engine", "spark")
    assert run.returncode == code, run.stderr
    assert says in error_line(run.stderr, "run_sql")
    assert "error" not in run.stdout
    assert list(out.iterdir()) == []


def test_the_report_of_csv_with_other_columns_is_refused(here, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "trips.csv").write_text("VendorID,fare_amount\n1,2.5\n")
    code, stderr = here("taxi_report", tmp_path / "data", tmp_path / "report", "--engine", "spark")
    assert code == 4
    assert "should be 'tpep_pickup_datetime', found 'fare_amount'" in error_line(stderr, "taxi_report")
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize("name", ["report.csv", "report.json", "report.ORC.gz"])
def test_a_report_of_another_format_is_refused(here, taxi_dir, tmp_path, name):
    code, stderr = here("taxi_report", taxi_dir / "parquet", tmp_path / name, "--engine", "spark")
    assert code == 8
    assert "the report is Parquet" in error_line(stderr, "taxi_report")
    assert list(tmp_path.iterdir()) == []


def csv_of_two_months(directory, second="b.csv", swapped=False):
    """Write one trip for each of two months, and an empty file. swapped: with another column order in the second file."""
    names = load("taxi_report").COLUMNS.replace(", ", " ").split()[::2]
    values = ["1", *["2019-01-01T00:00:00"] * 2, "1", "2.5", "1", "N", *"111", *map(str, range(10, 17))]
    for month, file in ((1, "a.csv"), (2, second), (2, "empty.csv")):
        partition = directory / "year=2019" / f"month={month}"
        partition.mkdir(parents=True, exist_ok=True)
        rows = [list(names), list(values)]
        if swapped and month == 2:
            for row in rows:
                row[10], row[13] = row[13], row[10]
        (partition / file).write_text(
            "" if file == "empty.csv" else "".join(f"{','.join(row)}\n" for row in rows)
        )


def test_the_report_of_csv_checks_the_header_of_every_file(here, tmp_path):
    csv_of_two_months(tmp_path / "data", swapped=True)
    code, stderr = here("taxi_report", tmp_path / "data", tmp_path / "report", "--engine", "spark")
    assert code == 4
    line = error_line(stderr, "taxi_report")
    assert "month=2/b.csv should be 'fare_amount', found 'tip_amount'" in line
    assert not (tmp_path / "report").exists()


def test_the_report_of_csv_reads_files_with_any_name(here, tmp_path):
    csv_of_two_months(tmp_path / "da ta", second="b [1]{x}%20ü.csv")
    code, stderr = here("taxi_report", tmp_path / "da ta", tmp_path / "report", "--engine", "spark")
    assert code == 0, stderr
    assert pq.read_table(tmp_path / "report").column("highest_fare").to_pylist() == [10.0, 10.0]


def test_the_report_of_parquet_without_a_column_is_refused(here, tmp_path):
    (tmp_path / "data.parquet" / "year=2019" / "month=1").mkdir(parents=True)
    file = tmp_path / "data.parquet" / "year=2019" / "month=1" / "t.parquet"
    pq.write_table(pa.table({"passenger_count": [1], "trip_distance": [1.5]}), file)
    code, stderr = here("taxi_report", tmp_path / "data.parquet", tmp_path / "report", "--engine", "spark")
    assert code == 4
    assert "`fare_amount`" in error_line(stderr, "taxi_report")
    assert not (tmp_path / "report").exists()


def test_a_report_that_is_there_stays_without_overwrite(here, taxi_dir, tmp_path):
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "old").write_text("x")
    arguments = (taxi_dir / "parquet", tmp_path / "report", "--engine", "spark")
    code, stderr = here("taxi_report", *arguments)
    assert code == 8
    assert "--overwrite" in error_line(stderr, "taxi_report")
    assert (tmp_path / "report" / "old").exists()
    assert here("taxi_report", *arguments, "--overwrite")[0] == 0
    assert not (tmp_path / "report" / "old").exists()
    assert pq.read_table(tmp_path / "report").num_rows > 80
