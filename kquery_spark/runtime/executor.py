"""Executor: runs the stages of one query at one place and collects the rows in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa


class Executor(ABC):
    """Runs one compiled query. Implementations differ in who runs the tasks.

    ``LocalExecutor``: threads of this process, without Spark. ``DriverExecutor``: the driver runs the last stage and Spark's
    tasks those before it, or threads of the driver run all of them; within limits. ``SparkExecutor``: Spark's tasks.
    """

    @abstractmethod
    def table(self) -> pa.Table:
        """Run the query: all rows, in order. LimitReached if this is more than may be done here; another executor has to."""

    def reader(self) -> pa.RecordBatchReader:
        """The rows batch by batch; here they are all there before the first is read."""
        return self.table().to_reader()
