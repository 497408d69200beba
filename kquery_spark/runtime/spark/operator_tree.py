"""Converts operator reports to the graph that Spark's UI shows: stages, and in each stage its operators with metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kquery_spark.physical.operators.scan import BYTES_READ
from kquery_spark.physical.spill import SPILLED_BYTES
from kquery_spark.runtime.spark.operator_reports import OperatorReport, StageReport
from kquery_spark.spark_bridge.ui.sql_executions import FinishedExecution, MetricType, PlanNode

_MAX_DESCRIPTION_LENGTH = 200
_MAX_TEXT_LENGTH = 1000
_BEFORE_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
ENGINE_NODE = "kquery"
"""The prefix of the titles of stages. Every graph of the engine's operators starts with a stage."""
_PASSING_ON = frozenset({"ReadExec", "ProjectionExec", "ReplicateExec"})
_Metric = tuple[str, MetricType, int]


def finished_execution(reports: Sequence[StageReport], redacted: bool) -> FinishedExecution:
    """Return an execution that shows the stages of one query, below the Spark execution that ran its tasks.

    redacted: show only the names of operators, because the session redacts the strings of plans.
    """
    roots = _Tree({report.stage_id: report for report in reports}, redacted).roots()
    plan = (
        roots[0]
        if len(roots) == 1
        else PlanNode(ENGINE_NODE, "stages whose consumers did not run", (), roots)
    )
    steps = [step for step in map(_step, _bottom_up(plan)) if step is not None]
    return FinishedExecution(
        f"kquery: {', '.join(steps)}"[:_MAX_DESCRIPTION_LENGTH],
        plan,
        "\n".join(_lines(plan)),
        round(min(report.started for report in reports) * 1000),
        round(max(report.ended for report in reports) * 1000),
        max((r.execution.root_id for r in reports if r.execution is not None), default=None),
    )


@dataclass(frozen=True)
class _Tree:
    """Builds the tree of stages: each stage is below the stage that reads it, or below the first one of several."""

    reports: Mapping[str, StageReport]
    redacted: bool
    drawn: set[str] = field(default_factory=set)

    def roots(self) -> tuple[PlanNode, ...]:
        """Return the stages that no other stage reads, with everything below them."""
        read = {operator.reads for report in self.reports.values() for operator in report.operators}
        return tuple(self._stage(r) for r in self.reports.values() if r.stage_id not in read)

    def _stage(self, report: StageReport) -> PlanNode:
        self.drawn.add(report.stage_id)
        where = "in the driver" if report.execution is None else "as tasks of Spark"
        metrics: list[_Metric] = [("tasks", "sum", report.tasks)]
        if report.sent_bytes:
            metrics.append(("data sent", "size", report.sent_bytes))
        top, _ = self._operator(report.operators, 0)
        return PlanNode(
            f"{ENGINE_NODE} {report.stage_id}", f"{report.stage_id} {where}", tuple(metrics), (top,)
        )

    def _operator(self, operators: Sequence[OperatorReport], index: int) -> tuple[PlanNode, int]:
        """Return the operator at an index of the printed list with all operators below it, and the index after these.

        The time of an operator includes that of its children, so theirs is subtracted.
        """
        operator, children = operators[index], []
        seconds, index = operator.metrics.seconds, index + 1
        while index < len(operators) and operators[index].depth > operator.depth:
            seconds -= operators[index].metrics.seconds
            child, index = self._operator(operators, index)
            children.append(child)
        below = None if operator.reads is None else self.reports.get(operator.reads)
        if below is not None and below.stage_id not in self.drawn:
            children.append(self._stage(below))
        name = operator.label.partition(":")[0]
        text = name if self.redacted else operator.label[:_MAX_TEXT_LENGTH]
        return PlanNode(name, text, tuple(_metrics(operator, max(seconds, 0.0))), tuple(children)), index


def _metrics(operator: OperatorReport, own_seconds: float) -> Iterator[_Metric]:
    """Yield the metrics of an operator. If Spark has the same metric, it gets Spark's name."""
    metrics = operator.metrics
    yield "number of output rows", "sum", metrics.rows
    yield "data size", "size", metrics.nbytes
    yield "time in operator", "timing", round(own_seconds * 1000)
    if operator.splits is not None:
        read, before_pruning = operator.splits
        yield "splits read", "sum", read
        yield "splits pruned", "sum", max(before_pruning - read, 0)
    for name, amount in sorted(metrics.extra.items()):
        if name == SPILLED_BYTES:
            yield "spill size", "size", amount
        elif name == BYTES_READ:
            yield "bytes read", "size", amount
        else:
            yield name.replace("_", " "), "sum", amount


def _bottom_up(node: PlanNode) -> Iterator[PlanNode]:
    for child in node.children:
        yield from _bottom_up(child)
    yield node


def _step(node: PlanNode) -> str | None:
    """Describe an operator, for example as ``scan trips``; None for stages and for operators that only pass rows on."""
    if not node.name.endswith("Exec") or node.name in _PASSING_ON:
        return None
    words = _BEFORE_CAPITAL.sub(" ", node.name.removesuffix("Exec")).lower()
    if node.name != "ScanExec":
        return words
    table = node.text.removeprefix("ScanExec").removeprefix(": ").partition(";")[0]
    return f"{words} {table}".strip()


def _lines(node: PlanNode, depth: int = 0) -> Iterator[str]:
    """Yield the lines of the graph as ``kq.explain(df, analyze=True)`` prints them."""
    metrics = ", ".join(
        f"{name}: {value:,}{' ms' if kind == 'timing' else ''}" for name, kind, value in node.metrics
    )
    yield f"{'  ' * depth}{node.text}  [{metrics}]"
    for child in node.children:
        yield from _lines(child, depth + 1)
