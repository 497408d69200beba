"""Meters that report what operators did for Spark's UI, from Spark's workers and from the driver itself."""

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
        with contextlib.suppress(Exception):  # no task is to fail for this
            execution = execution_of_task()
            if execution is None:  # a job of an RDD, whose end the driver could not find out
                return
            splits = self._splits[stage.stage_id]
            self._reports.add([stage_report(self._query, stage, context, sent, execution, splits)])


class DriverMeter(TaskMeter):
    """Keeps the reports of tasks that run in the driver."""

    def __init__(self, query: int) -> None:
        self.query = query
        self.reports: Reports = []

    @override
    def add(self, stage: Stage, context: TaskContext, sent: int) -> None:
        with contextlib.suppress(Exception):  # no query is to fail for this
            self.reports.append(stage_report(self.query, stage, context, sent, None, split_counts(stage)))


class Receiver(Protocol):
    """Takes the reports that arrive in the driver."""

    def receive(self, reports: Reports) -> None:
        """Take the reports of a finished task; raises nothing, as this runs in PySpark's accumulator server."""


class Inbox(ListParam[StageReport]):
    """How the accumulator works in the driver: it passes reports on and stays empty."""

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
