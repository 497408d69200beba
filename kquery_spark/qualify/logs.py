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
from kquery_spark.qualify.fields import MalformedEvent, printable
from kquery_spark.qualify.judgment import JudgedNode, judge
from kquery_spark.qualify.lines import MAX_LINE_BYTES
from kquery_spark.qualify.names import runs_in_engine, summarize
from kquery_spark.qualify.report import (
    ApplicationReport,
    Qualification,
    QueryOutcome,
    QueryReport,
    ReportNode,
)
from kquery_spark.spark_bridge.session.versions import SUPPORTED, minor_version


def qualify_logs(
    path: str | Path, costs: CostModel | None = None, config: EngineConfig | None = None
) -> Qualification:
    """Qualify the queries of the event logs at a path; raises SourceError if no file is an event log.

    If one of several files cannot be read, the result names it and contains none of its queries.
    """
    costs, config = costs or CostModel(), config or EngineConfig()
    applications: list[ApplicationReport] = []
    queries: list[QueryReport] = []
    left_out = accelerated = 0
    unreadable: list[SourceError] = []
    for log in find_logs(path):
        application = Application(log)
        reports: list[QueryReport] = []
        without_tasks = too_deep = in_engine = 0
        try:
            for run in application.queries():
                if runs_in_engine(run.plan):
                    in_engine += 1
                    continue
                if not run.stages:
                    without_tasks += 1
                    continue
                try:
                    reports.append(_query(application, run, costs, config))
                except (MalformedEvent, RecursionError):
                    too_deep += 1
        except SourceError as error:
            unreadable.append(error)
            continue
        queries += reports
        left_out += without_tasks
        # The engine reports each query that it ran, unless the session switches that off.
        accelerated += max(in_engine, application.engine_reports)
        applications.append(_application(application, too_deep))
    if not applications:
        raise unreadable[0]
    return Qualification(
        tuple(applications),
        tuple(queries),
        left_out,
        accelerated,
        tuple(printable(str(error)) for error in unreadable),
    )


def _application(application: Application, too_deep: int) -> ApplicationReport:
    return ApplicationReport(
        _id(application),
        application.name,
        application.spark_version,
        printable(str(application.log.path)),
        application.other_task_seconds,
        tuple(_notes(application, too_deep)),
    )


def _id(application: Application) -> str:
    return application.id or printable(application.log.path.name)


def _notes(application: Application, too_deep: int) -> Iterator[str]:
    if application.log.is_running:
        yield "the application was running when its log was copied"
    if application.log.is_compacted:
        yield "the history server compacted the log, so queries that had ended by then are missing"
    if application.truncated:
        yield "the end of the log is cut off"
    if application.malformed:
        first = f", the first of them {application.first_problem}" if application.first_problem else ""
        yield f"{application.malformed:,} malformed events are left out{first}"
    if application.too_long:
        yield f"{application.too_long:,} events of more than {MAX_LINE_BYTES >> 20} MiB are left out"
    if too_deep:
        yield f"{too_deep:,} queries with plans or expressions that nest too deeply are left out"
    minor = minor_version(application.spark_version)
    if minor is None or ".".join(map(str, minor)) not in SUPPORTED:
        version = application.spark_version or "of an unknown version"
        yield f"kquery_spark runs on Spark {SUPPORTED[0]} to {SUPPORTED[-1]}, and this was Spark {version}"


def _query(application: Application, run: QueryRun, costs: CostModel, config: EngineConfig) -> QueryReport:
    judged = judge(run.plan, application.spark_version)
    seconds = task_seconds(run.plan, judged, run.stages)
    result = estimate(run, judged, seconds, costs, config)
    outcome = (
        QueryOutcome.RUNNING
        if run.seconds is None
        else QueryOutcome.FAILED
        if run.error
        else QueryOutcome.ENDED
    )
    return QueryReport(
        _id(application),
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
        summarize(run.plan),
    )


def _nodes(judged: Iterable[JudgedNode], seconds: Mapping[int, float]) -> Iterator[ReportNode]:
    for top in judged:
        for node in top.walk():
            took = seconds.get(id(node.node), 0.0)
            yield ReportNode(node.node.name, node.depth, node.runs, node.reason, node.conditions, took)
