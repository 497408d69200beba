"""Executor: runs the stages of one query and collects the result in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa


class Executor(ABC):
    """Runs one compiled query. The implementations differ in where the tasks run.

    - ``LocalExecutor``: in threads of this process, without Spark.
    - ``DriverExecutor``: the last stage in the driver, and the earlier ones in Spark's tasks; or all stages in threads of
      the driver. The work of the driver is limited.
    - ``SparkExecutor``: all stages in Spark's tasks.
    """

    @abstractmethod
    def table(self) -> pa.Table:
        """Run the query and return all rows in order. Raises LimitReached if another executor has to run it instead."""

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows batch by batch. This default computes all rows before it returns the first batch."""
        return self.table().to_reader()
