"""Executor: runs the stages of one query and collects the result in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator

import pyarrow as pa


class Executor(ABC):
    """Runs one compiled query. The implementations differ in where the tasks run.

    - ``LocalExecutor``: in threads of this process, without Spark.
    - ``DriverExecutor``: the last stage in the driver, and the earlier ones in Spark's tasks; or all stages in threads of
      the driver. The work of the driver is limited.
    - ``SparkExecutor``: all stages in Spark's tasks.

    Callers use only these methods. Each of them runs the query, and raises LimitReached if the query has to run in another
    way instead. A lazy DataFrame of the result needs no executor, because PySpark runs it.
    """

    @abstractmethod
    def table(self, limit: int | None = None) -> pa.Table:
        """Return the rows in order. limit: return only this many of the first rows (None: all)."""

    def count(self) -> int:
        """Return the number of rows. This default collects them."""
        return int(self.table().num_rows)

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows batch by batch, in order; closing the generator stops the run.

        This default computes all rows before it yields the first batch.
        """
        yield from self.table().to_batches()

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of the batches. This default computes all rows before it returns."""
        return self.table().to_reader()


def first_rows(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the first ``limit`` rows (None: all). Batches that are not needed are not read."""
    if limit is None:
        yield from batches
        return
    for batch in batches if limit > 0 else ():
        yield batch.slice(0, limit)
        limit -= batch.num_rows
        if limit <= 0:
            return
