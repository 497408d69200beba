"""What goes wrong in a task: the error says what, where, and leaves nothing behind."""

import os
import tempfile
import threading
import time
from pathlib import Path

import pytest

import kquery_spark as kq
from benchmarks import tpch
from kquery_spark.errors import SourceError
from kquery_spark.spark_bridge.session.failures import engine_failure, error_class, is_cancelled
from kquery_spark.task_errors import task_error
from tests.conftest import settings

ANSI = {"spark.sql.ansi.enabled": "true"}


@pytest.fixture
def data(spark, tmp_path):
    """A directory with one Parquet file of 100,000 rows in 5 row groups, and the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = tmp_path / "data" / "part.parquet"
    file.parent.mkdir()
    table = pa.table({"k": [i % 7 for i in range(100_000)], "v": list(range(100_000))})
    pq.write_table(table, file, row_group_size=20_000, compression="none", use_dictionary=False)
    return file


def fast(spark, data):
    frame = spark.read.parquet(str(data.parent)).groupBy("k").agg({"v": "sum"})
    return frame.transform(kq.kquery_plan, when="always", fallback="error")


def error_of(action):
    with pytest.raises(Exception) as caught:
        action()
    return caught.value


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("sum(10 / (v - 5))", "DIVIDE_BY_ZERO"),
        ("sum(CAST(concat('x', v) AS int))", "CAST_INVALID_INPUT"),
        ("max(v + 9223372036854775807)", "ARITHMETIC_OVERFLOW"),
    ],
)
def test_an_error_of_the_query_has_sparks_error_class(spark, data, sql, error):
    with settings(spark, ANSI):
        frame = spark.read.parquet(str(data.parent)).selectExpr(f"{sql} AS x")
        assert error_class(error_of(frame.collect)) == error
        raised = error_of(frame.transform(kq.kquery_plan, when="always").collect)
    assert f"[{error}" in str(raised)
    assert error_class(raised) == error
    assert engine_failure(raised) is None


def test_a_worker_that_cannot_start_is_a_failure_of_the_engine():
    text = (
        "An error occurred while calling o1.getResult.\n"
        ": org.apache.spark.SparkException: Exception thrown in awaitResult: \n"
        "\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)\n"
        "Caused by: java.io.IOException: Stream closed\n"
        "\tat java.base/java.io.DataOutputStream.flush(DataOutputStream.java:128)\n"
        "\tat org.apache.spark.api.python.PythonWorkerFactory.create(PythonWorkerFactory.scala:174)\n"
    )
    assert engine_failure(RuntimeError(text)) == "Caused by: java.io.IOException: Stream closed"
    assert engine_failure(RuntimeError(text.replace("PythonWorkerFactory", "PythonRunner"))) is None


def test_a_file_that_changed_since_planning_is_noticed(spark, data):
    frame = fast(spark, data)
    text = data.read_bytes()
    data.write_bytes(text + b"\0")
    raised = error_of(frame.collect)
    assert "SourceError" in str(raised)
    assert f"{data} has changed since the query was planned" in str(raised)
    assert "has changed" in engine_failure(raised)


def test_a_file_that_is_gone_is_named(spark, data):
    frame = fast(spark, data)
    data.unlink()
    raised = error_of(frame.collect)
    assert f"{data} does not exist any more" in str(raised)
    assert "SourceError" in engine_failure(raised)


def test_a_damaged_row_group_is_named(spark, data):
    frame = fast(spark, data)
    state = data.stat()
    with open(data, "r+b") as file:
        file.seek(200)
        file.write(b"\xff" * 4000)  # a malformed page header
        file.seek(4)
        file.write(b"\xff" * 100)
    os.utime(data, ns=(state.st_atime_ns, state.st_mtime_ns))
    raised = error_of(frame.collect)
    assert f"cannot read row group 0 of {data}" in str(raised)
    assert "SourceError" in engine_failure(raised)


def test_a_file_without_a_footer_falls_back_to_spark_or_named(spark, data):
    frame = spark.read.parquet(str(data.parent))
    data.write_bytes(b"PAR1 this is not Parquet PAR1")
    raised = error_of(
        lambda: (
            frame.groupBy("k").count().transform(kq.kquery_plan, when="always", fallback="error").collect()
        )
    )
    assert str(data) in str(raised)


def test_cancelling_a_job_stops_it_and_does_not_start_it_again(spark, tpch_dir, recwarn):
    tpch.register(spark, tpch_dir)
    # without keys to join by: 60,000 x 60,000 rows take longer than anybody waits
    slow = spark.sql(
        "SELECT count(*) FROM lineitem a JOIN lineitem b ON a.l_orderkey + b.l_orderkey < 0 AND a.l_comment > b.l_comment"
    ).transform(kq.kquery_plan, when="always")
    context = spark.sparkContext
    caught = []

    def run():
        context.setJobGroup("to be cancelled", "slow", interruptOnCancel=True)
        try:
            slow.collect()
        except Exception as error:
            caught.append(error)

    from pyspark import InheritableThread

    thread = InheritableThread(target=run)
    thread.start()
    deadline = time.monotonic() + 60
    while not context.statusTracker().getJobIdsForGroup("to be cancelled") and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.5)
    context.cancelJobGroup("to be cancelled")
    thread.join(60)
    assert not thread.is_alive()
    assert "cancelled" in str(caught[0]).lower()
    assert [w for w in recwarn if w.category is kq.FallbackWarning] == []
    assert len(context.statusTracker().getJobIdsForGroup("to be cancelled")) == 1
    assert spark.sql("SELECT max(n_name) FROM nation").transform(kq.kquery_plan, when="always").count() == 1


def spills():
    return {p.name for p in Path(tempfile.gettempdir()).glob("kquery-spill-*")}


def test_no_files_are_left_behind(spark, tpch_dir):
    tpch.register(spark, tpch_dir)
    before = spills()
    with settings(spark, {**ANSI, "spark.kquery.memoryBytes": "64k"}):
        query = """SELECT l_orderkey, l_partkey, sum(l_quantity) FROM lineitem JOIN orders ON l_orderkey = o_orderkey
                   GROUP BY l_orderkey, l_partkey ORDER BY 3 DESC, 1, 2"""
        report = kq.verify(spark.sql(query))
        assert report.ok, str(report)
        failing = spark.sql(
            "SELECT l_orderkey, l_partkey, sum(1 / (l_orderkey - 1)) FROM lineitem GROUP BY 1, 2"
        )
        error_of(failing.transform(kq.kquery_plan, when="always").collect)
    deadline = time.monotonic() + 20  # a failed task's worker may still be cleaning up
    while spills() - before and time.monotonic() < deadline:
        time.sleep(0.2)
    assert spills() - before == set()


def test_many_threads_share_a_session(spark, tpch_dir):
    tpch.register(spark, tpch_dir)
    frame = spark.sql("SELECT l_returnflag, count(*) AS n FROM lineitem GROUP BY l_returnflag")
    expected = sorted(map(repr, frame.collect()))
    actual = []

    def run():
        actual.append(
            sorted(map(repr, frame.transform(kq.kquery_plan, when="always", fallback="error").collect()))
        )

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert actual == [expected] * 6


def test_a_failure_in_a_directory_of_that_name_is_no_cancellation():
    failure = task_error(SourceError("/data/orders cancelled/1.parquet was changed"))
    error = RuntimeError(f"Job aborted: kquery_spark.task_errors.TaskError: {failure}\n\tat org.apache.spark")
    assert engine_failure(error) == "SourceError: /data/orders cancelled/1.parquet was changed"
    cancelled = RuntimeError("[SPARK_JOB_CANCELLED] Job 3 cancelled by the user")
    assert engine_failure(cancelled) is None
    assert is_cancelled(cancelled)
    assert is_cancelled(RuntimeError("Job 3 cancelled because SparkContext was shut down"))
    assert not is_cancelled(RuntimeError("[USER_RAISED_EXCEPTION] the order was cancelled"))
    assert not is_cancelled(error)
