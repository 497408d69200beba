"""The result of a query as an Arrow table, put together in the driver from what the workers wrote.

Left to itself Spark takes every row out of the workers' batches, and puts it into other batches for the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from traceback import clear_frames
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kquery_spark.run_control import LimitReached, RunControl
from kquery_spark.spark_bridge.arrow_collection import collect_batches, max_result_bytes, with_session_tags
from kquery_spark.stages.payload import decode_payload
from kquery_spark.types.names import nullable_within


class ArrowResult:
    """The rows of a result. build: makes the DataFrame of payload rows (see ``shipped``), or None where that cannot be done.

    made: the schema that the last stage gives. schema: the result's. The DataFrame is kept for further actions.
    """

    def __init__(self, build: Callable[[], DataFrame | None], made: pa.Schema, schema: StructType) -> None:
        self._build = build
        self._made = made
        self._schema = schema
        self._frame: Any = None
        self._too_large = False

    def table(self) -> pa.Table | None:
        """Run the query: all rows, in order, in the Arrow types that Spark gives; None where Spark has to bring them."""
        if self._frame is None and not self._too_large:
            self._frame = self._build()
        if self._frame is None:
            return None
        with with_session_tags(self._frame.sparkSession):
            batches = collect_batches(self._frame)
        control = RunControl(max_bytes=max_result_bytes(self._frame.sparkSession))
        try:
            return control.controlled(self._decoded)(batches, control)
        except LimitReached as reached:
            clear_frames(reached.__traceback__)  # of what they hold
            self._too_large, self._frame = True, None
            return None

    def _decoded(self, batches: list[pa.RecordBatch], control: RunControl) -> pa.Table:
        """The rows in the payloads, which may take many times as many bytes as these."""

        def decoded() -> Iterator[pa.RecordBatch]:
            for payload in (cell.as_buffer() for batch in batches for cell in batch.column(2)):
                rows = decode_payload(payload, self._made).to_arrow()
                control.add(rows.num_rows, rows.nbytes)
                yield rows

        return table_of(decoded(), self._made, self._schema)


def table_of(batches: Iterable[pa.RecordBatch], made: pa.Schema, schema: StructType) -> pa.Table:
    """Batches of a last stage, which has the schema ``made``, as Spark's own ``toArrow`` would give the rows."""
    wanted = to_arrow_schema(schema, timezone="UTC")
    found = [b.rename_columns(wanted.names) for b in batches if b.num_rows]
    if not found:  # columns of no chunks are not for PySpark
        return wanted.empty_table()
    named = pa.schema([f.with_name(n) for f, n in zip(made, wanted.names, strict=True)])
    table = pa.Table.from_batches(found, schema=named)
    try:
        return table.cast(wanted)
    except (
        pa.ArrowInvalid
    ):  # a struct that is NULL, of fields that are not, which Spark's rows can be and Arrow's cannot
        return table.cast(pa.schema([f.with_type(nullable_within(f.type)) for f in wanted]))
