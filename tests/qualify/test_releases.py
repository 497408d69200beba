"""Logs that earlier releases wrote, cut down to the events and fields that are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kquery_spark.qualify.judgment import RunsOn
from kquery_spark.qualify.logs import qualify_logs
from kquery_spark.qualify.report import QueryOutcome

LOGS = Path(__file__).parent / "logs"


@pytest.mark.parametrize("version", ["3.5.9", "4.0.5"])
def test_a_log_of_an_earlier_release(version):
    result = qualify_logs(LOGS / f"spark-{version}")
    (application,), (query,) = result.applications, result.queries
    assert (application.name, application.spark_version, application.notes) == ("tiny", version, ())
    assert (query.description, query.outcome) == ("sum by key", QueryOutcome.ENDED)
    assert query.runs_whole
    operators = dict.fromkeys(node.name for node in query.nodes if node.runs is RunsOn.ENGINE)
    assert list(operators) == ["Sort", "SortAggregate", "Filter", "Scan parquet"]
    assert query.bytes_read > 0
    assert query.shuffle_bytes > 0
    assert query.task_seconds > 0
    assert query.seconds > 0
