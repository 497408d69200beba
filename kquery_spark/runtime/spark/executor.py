"""SparkExecutor: runs all stages in Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from traceback import clear_frames

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType
from typing_extensions import override

from kquery_spark.run_control import LimitReached, RunControl
from kquery_spark.runtime.executor import Executor
from kquery_spark.runtime.spark.result_table import result_table
from kquery_spark.spark_bridge.frames.arrow_collection import (
    collect_batches,
    max_result_bytes,
    with_session_tags,
)
from kquery_spark.spark_bridge.frames.pyspark_names import arrow_table
from kquery_spark.spark_bridge.session.bypass import bypass
from kquery_spark.stages.payload import decode_payload


@dataclass(frozen=True)
class Payloads:
    """How to collect a result as payloads: the workers encode and the driver decodes it, so the JVM only copies bytes.

    Otherwise Spark would convert the workers' batches to rows, and these to batches for the driver. build: returns the
    DataFrame of payload rows (see ``payload_frame``), or None if that is not possible. produced: the schema of the last
    stage. schema: the schema of the result.
    """

    build: Callable[[], DataFrame | None]
    produced: pa.Schema
    schema: StructType


class SparkExecutor(Executor):
    """Collects the result as payloads if possible, otherwise as PySpark collects any DataFrame.

    payloads: None if the types of the result, or parts that Spark computes, do not allow payloads. rows: builds the lazy
    DataFrame of the result, in task order; None if the caller collects such a DataFrame itself, so that ``table`` raises
    LimitReached instead. Each DataFrame is built once, when it is needed first.
    """

    def __init__(self, payloads: Payloads | None, rows: Callable[[], DataFrame] | None = None) -> None:
        self._payloads = payloads
        self._rows = rows
        self._frame: DataFrame | None = None
        self._payload_frame: DataFrame | None = None

    @override
    def table(self, limit: int | None = None) -> pa.Table:
        """Return the rows in order, in the Arrow types of Spark's ``toArrow``."""
        table = self._payload_table()
        if table is None:
            if self._rows is None:
                raise LimitReached("the result is not collected as payloads")
            if self._frame is None:
                self._frame = self._rows()
            with bypass():
                table = arrow_table(self._frame)
        return table if limit is None else table.slice(0, limit)

    def _payload_table(self) -> pa.Table | None:
        """Return all rows, collected as payloads; None if that is not possible, and then it is not tried again."""
        payloads, frame = self._payloads, self._payload_frame
        if payloads is None:
            return None
        if frame is None:
            frame = self._payload_frame = payloads.build()
        if frame is None:
            return None
        with with_session_tags(frame.sparkSession):
            batches = collect_batches(frame)
        control = RunControl(max_bytes=max_result_bytes(frame.sparkSession))
        try:
            return control.controlled(_decode)(batches, payloads, control)
        except LimitReached as reached:
            clear_frames(reached.__traceback__)  # frees the rows that were decoded so far
            self._payloads = self._payload_frame = None
            return None


def _decode(batches: list[pa.RecordBatch], payloads: Payloads, control: RunControl) -> pa.Table:
    """Decode the payloads. ``control`` limits the result, which can have many times the bytes of the payloads."""

    def decoded() -> Iterator[pa.RecordBatch]:
        for payload in (cell.as_buffer() for batch in batches for cell in batch.column(2)):
            rows = decode_payload(payload, payloads.produced).to_arrow()
            control.add(rows.num_rows, rows.nbytes)
            yield rows

    return result_table(decoded(), payloads.produced, payloads.schema)
