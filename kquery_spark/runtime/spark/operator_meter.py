"""Meters that report operator metrics to Spark's UI, from Spark's workers and from the driver."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Mapping
from typing import Protocol

from pyspark import Accumulator
from typing_extensions import override

from kquery_spark.physical.operators import TaskContext
from kquery_spark.runtime.spark.metering import ListParam
from kquery_spark.runtime.spark.operator_reports import SplitCount, StageReport, split_counts, stage_report
from kquery_spark.runtime.task_meter import TaskMeter
from kquery_spark.spark_bridge.session.task_execution import execution_of_task
from kquery_spark.stages.graph import Stage

Reports = list[StageReport]


class OperatorMeter(TaskMeter):
    """Reports a query's tasks from Spark's workers. splits: by stage, as in ``split_counts``."""

    def __init__(
        self, reports: Accumulator[Reports], query: int, splits: Mapping[str, tuple[SplitCount | None, ...]]
    ) -> None:
        self._reports = reports
        self._query = query
        self._splits = splits

    @override
    def add(self, stage: Stage, context: TaskContext, sent: int) -> None:
        with contextlib.suppress(Exception):  # a problem with metrics must not make a task fail
            execution = execution_of_task()
            if execution is None:  # a job of an RDD: the driver could not detect its end
                return
            splits = self._splits[stage.stage_id]
            self._reports.add([stage_report(self._query, stage, context, sent, execution, splits)])


class DriverMeter(TaskMeter):
    """Collects the reports of tasks that run in the driver."""

    def __init__(self, query: int) -> None:
        self.query = query
        self.reports: Reports = []

    @override
    def add(self, stage: Stage, context: TaskContext, sent: int) -> None:
        with contextlib.suppress(Exception):  # a problem with metrics must not make a query fail
            self.reports.append(stage_report(self.query, stage, context, sent, None, split_counts(stage)))


class Receiver(Protocol):
    """Receives the reports that arrive in the driver."""

    def receive(self, reports: Reports) -> None:
        """Receive the reports of a finished task. It must not raise, because it runs in PySpark's accumulator server."""


class Inbox(ListParam[StageReport]):
    """The accumulator in the driver: it forwards reports to the receiver and stays empty itself."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = weakref.ref(receiver)

    @override
    def addInPlace(self, value1: Reports, value2: Reports) -> Reports:
        receiver = self._receiver()
        if receiver is not None:
            receiver.receive(value2)
        return value1

    @override
    def __reduce__(self) -> tuple[type[ListParam[StageReport]], tuple[()]]:
        return ListParam, ()
