"""The graph of operators for Spark's UI, made from the reports of stages."""

from __future__ import annotations

from kquery_spark.physical.operators import Metrics
from kquery_spark.runtime.spark.operator_reports import OperatorReport, StageReport
from kquery_spark.runtime.spark.operator_tree import finished_execution
from kquery_spark.spark_bridge.session.task_execution import SparkExecution
from kquery_spark.spark_bridge.ui.sql_executions import PlanNode

TASKS = SparkExecution(7, 5, redacted=False)


def operator(
    label: str, depth: int, seconds: float = 0.0, reads: str | None = None, **extra: int
) -> OperatorReport:
    return OperatorReport(label, depth, Metrics(rows=10, nbytes=80, seconds=seconds, extra=extra), reads)


def stage(number: int, *operators: OperatorReport, execution: SparkExecution | None = TASKS) -> StageReport:
    return StageReport(1, f"stage-{number}", execution, operators, 2, 100, 10.0 + number, 20.0 + number)


SCANNED = stage(1, operator("ScanExec: t; columns=[k]", 0, 2.0, rows_ruled_out=3))
JOINED = stage(
    2,
    operator("JoinExec: inner", 0, 5.0, spilled_bytes=64),
    operator("FilterExec: #k > 1", 1, 1.5),
    operator("ReadExec: stage-1", 2, 1.0, reads="stage-1"),
    operator("ReadExec: stage-1", 1, 0.5, reads="stage-1"),
    execution=None,
)


def names(node: PlanNode) -> list[object]:
    return [node.name, *map(names, node.children)]


def values(node: PlanNode) -> dict[str, int]:
    return {name: value for name, _, value in node.metrics}


def test_stages_are_joined_where_one_reads_another_and_drawn_once() -> None:
    shown = finished_execution([SCANNED, JOINED], redacted=False)
    below = ["ReadExec", ["kquery stage-1", ["ScanExec"]]]
    assert names(shown.plan) == ["kquery stage-2", ["JoinExec", ["FilterExec", below], ["ReadExec"]]]
    assert shown.plan.text == "stage-2 in the driver"
    assert shown.description == "kquery: scan t, filter, join"
    assert (shown.root_id, shown.started_ms, shown.ended_ms) == (5, 11_000, 22_000)
    (join,) = shown.plan.children
    assert values(join)["time in operator"] == 3000  # without the 1.5 and 0.5 seconds of what it reads
    assert values(join)["spill size"] == 64
    assert (
        "JoinExec: inner  [number of output rows: 10, data size: 80, time in operator: 3,000 ms"
        in shown.plan_text
    )


def test_a_query_whose_last_stage_never_ran_shows_the_others() -> None:
    shown = finished_execution([SCANNED, stage(3, operator("ScanExec: u; columns=[k]", 0))], redacted=False)
    assert names(shown.plan) == ["kquery", ["kquery stage-1", ["ScanExec"]], ["kquery stage-3", ["ScanExec"]]]


def test_redacted_strings_are_the_names_of_operators() -> None:
    shown = finished_execution([SCANNED, JOINED], redacted=True)
    assert shown.description == "kquery: scan, filter, join"
    assert "#k" not in shown.plan_text


def test_reports_of_tasks_add_up() -> None:
    both = SCANNED.merged(SCANNED)
    assert (both.tasks, both.sent_bytes, both.started, both.ended) == (4, 200, 11.0, 21.0)
    (scan,) = both.operators
    assert (scan.metrics.rows, scan.metrics.extra) == (20, {"rows_ruled_out": 6})
    assert SCANNED.operators[0].metrics.rows == 10
