"""Qualifies the queries of event logs, one log after another, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kquery_spark.config.cost import CostModel
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import SourceError
from kquery_spark.qualify.application import Application, QueryRun
from kquery_spark.qualify.attribution import task_seconds
from kquery_spark.qualify.estimate import estimate
from kquery_spark.qualify.event_files import find_logs
from kquery_spark.qualify.judgement import JudgedNode, judge
from kquery_spark.qualify.report import (
    ApplicationReport,
    Outcome,
    Qualification,
    QueryReport,
    ReportNode,
)
from kquery_spark.spark_bridge.session.versions import SUPPORTED, minor_version


def qualify_logs(
    path: str | Path, costs: CostModel | None = None, config: EngineConfig | None = None
) -> Qualification:
    """Qualify the queries of the event logs at a path; SourceError if none of its files is an event log.

    A file among others that cannot be read is named in the result, which leaves out all of its queries.
    """
    costs, config = costs or CostModel(), config or EngineConfig()
    applications: list[ApplicationReport] = []
    queries: list[QueryReport] = []
    left_out = 0
    unreadable: list[SourceError] = []
    for log in find_logs(path):
        application = Application(log)
        try:
            reports = [
                _query(application, run, costs, config) if run.stages else None
                for run in application.queries()
            ]
        except SourceError as error:
            unreadable.append(error)
            continue
        with_tasks = [report for report in reports if report is not None]
        queries += with_tasks
        left_out += len(reports) - len(with_tasks)
        applications.append(_application(application))
    if not applications:
        raise unreadable[0]
    return Qualification(tuple(applications), tuple(queries), left_out, tuple(map(str, unreadable)))


def _application(application: Application) -> ApplicationReport:
    return ApplicationReport(
        application.id or application.log.path.name,
        application.name,
        application.spark_version,
        str(application.log.path),
        application.other_task_seconds,
        tuple(_notes(application)),
    )


def _notes(application: Application) -> Iterator[str]:
    if application.log.is_running:
        yield "the application was running when its log was copied"
    if application.log.is_compacted:
        yield "the history server compacted the log, so queries that had ended by then are missing"
    if application.truncated:
        yield "the end of the log is cut off"
    minor = minor_version(application.spark_version)
    if minor is None or ".".join(map(str, minor)) not in SUPPORTED:
        version = application.spark_version or "of an unknown version"
        yield f"kquery_spark runs on Spark {SUPPORTED[0]} to {SUPPORTED[-1]}, and this was Spark {version}"


def _query(application: Application, run: QueryRun, costs: CostModel, config: EngineConfig) -> QueryReport:
    judged = judge(run.plan, application.spark_version)
    seconds = task_seconds(run.plan, judged, run.stages)
    result = estimate(run, judged, seconds, costs, config)
    outcome = Outcome.RUNNING if run.seconds is None else Outcome.FAILED if run.error else Outcome.ENDED
    return QueryReport(
        application.id or application.log.path.name,
        run.number,
        run.description,
        outcome,
        run.seconds,
        run.total("run_seconds"),
        run.total("cpu_seconds"),
        int(run.total("bytes_read")),
        int(run.total("shuffle_bytes")),
        result.engine_share,
        result.wall,
        result.tasks,
        tuple(_nodes(judged, seconds)),
        run.error.partition("\n")[0],
    )


def _nodes(judged: Iterable[JudgedNode], seconds: Mapping[int, float]) -> Iterator[ReportNode]:
    for top in judged:
        for node in top.walk():
            took = seconds.get(id(node.node), 0.0)
            yield ReportNode(node.node.name, node.depth, node.runs, node.reason, node.conditions, took)
