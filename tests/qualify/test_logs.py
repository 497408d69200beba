"""Event logs that a Spark session writes, in every compression, read and qualified."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from kquery_spark.errors import SourceError
from kquery_spark.qualify.event_files import EventReader, find_logs
from kquery_spark.qualify.html import render_html
from kquery_spark.qualify.judgment import NO_EXPENSIVE_OPERATOR, RunsOn
from kquery_spark.qualify.logs import qualify_logs
from kquery_spark.qualify.report import QueryOutcome, QueryReport
from kquery_spark.qualify.text import render_text
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS
from tests.support.event_logs import logged_events

CODECS = ("none", "lz4", "zstd", "snappy")
QUERIES = {
    "grouped": "SELECT k, sum(v) AS s FROM qualified WHERE v > 10 GROUP BY k ORDER BY k",
    "joined": "SELECT a.k, a.v FROM qualified a JOIN qualified b ON a.v = b.v ORDER BY a.v DESC LIMIT 3",
    "random": "SELECT k, max(r) FROM (SELECT k, rand() AS r FROM qualified) GROUP BY k",
    "sampled": "SELECT k, max(v) FROM (SELECT * FROM qualified TABLESAMPLE (50 PERCENT)) GROUP BY k",
    "failing": "SELECT raise_error(CAST(v AS STRING)) FROM qualified",
}


@pytest.fixture(scope="module")
def logs(spark, tmp_path_factory) -> Path:
    """A directory for each codec, and one with a rolled log, of the same queries."""
    root = tmp_path_factory.mktemp("logs")
    data = str(root / "data")
    spark.range(20_000).selectExpr("id % 7 AS k", "id AS v").write.parquet(data)
    with ExitStack() as stack:
        for codec in CODECS:
            compress = (
                {"compress": "true", "compression_codec": codec} if codec != "none" else {"compress": "false"}
            )
            stack.enter_context(logged_events(spark, root / codec, rolling_enabled="false", **compress))
        stack.enter_context(logged_events(spark, root / "rolled", rolling_enabled="true", compress="false"))
        spark.read.parquet(data).createOrReplaceTempView("qualified")
        for name, sql in QUERIES.items():
            spark.sparkContext.setJobDescription(name)
            if name == "failing":
                with pytest.raises(SPARK_ERRORS):
                    spark.sql(sql).collect()
            else:
                spark.sql(sql).collect()
        spark.sparkContext.setJobDescription(None)
        spark.range(10)._jdf.javaRDD().count()
    spark.catalog.dropTempView("qualified")
    return root


@pytest.fixture(scope="module")
def queries(logs) -> dict[str, QueryReport]:
    return {query.description: query for query in qualify_logs(logs / "none").queries}


@pytest.mark.parametrize("directory", [*CODECS[1:], "rolled"])
def test_every_compression_says_the_same(logs, directory):
    expected, result = qualify_logs(logs / "none"), qualify_logs(logs / directory)
    assert len(result.queries) == len(QUERIES)
    assert [replace(query, application="") for query in result.queries] == [
        replace(query, application="") for query in expected.queries
    ]
    assert not result.applications[0].notes


def test_a_query_that_the_engine_has_all_of_runs_whole(queries):
    for name in ("grouped", "joined"):
        query = queries[name]
        assert query.outcome is QueryOutcome.ENDED
        assert query.runs_whole
        assert query.engine_share == pytest.approx(1)
        assert not [node for node in query.nodes if node.reason]
        assert query.seconds > 0
        assert query.bytes_read > 0


def test_the_time_of_tasks_is_all_shared_out(queries):
    for query in queries.values():
        assert sum(node.task_seconds for node in query.nodes) == pytest.approx(query.task_seconds)


def test_nodes_stay_with_spark_for_reasons(queries):
    reasons = {node.name: node.reason for node in queries["random"].nodes if node.reason}
    assert reasons.pop("Project") == "random numbers are not supported"
    assert set(reasons.values()) <= {NO_EXPENSIVE_OPERATOR}
    sampled = queries["sampled"]
    runs = {node.name: node.runs for node in sampled.nodes}
    assert runs["Sample"] is RunsOn.SPARK
    assert runs["HashAggregate"] is RunsOn.ENGINE
    assert 0 < sampled.engine_share < 1


def test_a_failed_query_saves_nothing(queries):
    query = queries["failing"]
    assert query.outcome is QueryOutcome.FAILED
    assert query.error
    assert query.wall.expected == query.tasks.expected == 0


def test_savings_are_in_their_range_and_below_the_time(queries):
    for query in queries.values():
        assert 0 <= query.wall.low <= query.wall.expected <= query.wall.high <= query.seconds
        assert 0 <= query.tasks.low <= query.tasks.expected <= query.tasks.high <= query.task_seconds


def test_commands_are_left_out_and_other_tasks_are_counted(logs):
    result = qualify_logs(logs / "none")
    assert result.left_out >= 1
    assert result.applications[0].other_task_seconds > 0


def test_a_cut_off_log_is_read_to_its_last_event(logs, tmp_path):
    (log,) = find_logs(logs / "none")
    lines = log.files[0].read_bytes().splitlines(keepends=True)
    half = b"".join(lines[:-5]) + lines[-5][:40]
    (tmp_path / "app.inprogress").write_bytes(half)
    (application,) = qualify_logs(tmp_path).applications
    assert application.notes[:2] == (
        "the application was running when its log was copied",
        "the end of the log is cut off",
    )


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_cut_off_compressed_log_is_read_to_its_last_event(logs, tmp_path, codec):
    (log,) = find_logs(logs / codec)
    file = tmp_path / log.files[0].name
    content = log.files[0].read_bytes()
    file.write_bytes(content[: len(content) * 2 // 3])
    (log,) = find_logs(tmp_path)
    reader = EventReader(log)
    list(reader)
    assert reader.truncated


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_damaged_compressed_log_names_the_file(logs, tmp_path, codec):
    (log,) = find_logs(logs / codec)
    file = tmp_path / log.files[0].name
    file.write_bytes(b"\x00 this is not compressed at all, by nobody" * 3)
    with pytest.raises(SourceError, match=f"cannot decompress {file}"):
        qualify_logs(file)


def test_reports_have_every_query_and_escape_names(logs):
    result = qualify_logs(logs / "none")
    text = render_text(result, 20)
    page = render_html(result, "a < b")
    assert all(name in text and name in page for name in QUERIES)
    assert "random numbers are not supported" in text
    assert "<title>a &lt; b</title>" in page
    assert "http" not in page
    assert "prefers-color-scheme: dark" in page
    read_back = json.loads(json.dumps(result.as_dict()))
    assert {query["description"] for query in read_back["queries"]} == set(QUERIES)
    assert "... and 4 more" in render_text(result, 1)
