"""Converts arguments of ``@udf`` without Arrow, which Spark pickles and PySpark's types then convert."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import pyarrow as pa
from pyspark.sql.types import TimestampNTZType, TimestampType, _create_row

from kquery_spark.kernels.utf8 import replace_malformed
from kquery_spark.spark_bridge.python.pickled_values import Pickling
from kquery_spark.types import names as t


@dataclass(frozen=True)
class PickledArguments:
    """Converts arguments."""

    pickling: Pickling

    def rows(self, batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
        """The rows of arguments that functions receive."""
        if not batch.num_columns:
            return repeat((), batch.num_rows)
        return zip(*map(self._values, batch.columns), strict=True)

    def _values(self, array: pa.Array) -> Sequence[Any]:
        if pa.types.is_struct(array.type):
            return self._structs(array)
        if pa.types.is_list(array.type):
            return self._lists(array)
        if pa.types.is_timestamp(array.type):
            return _times(array)
        if pa.types.is_string(array.type):
            array = replace_malformed(
                array
            )  # Spark pickles Java strings, in which malformed bytes are U+FFFD
        values: list[Any] = array.to_pylist()
        if pa.types.is_binary(array.type) and not self.pickling.binary_as_bytes:
            return [value if value is None else bytearray(value) for value in values]
        return values

    def _structs(self, array: pa.Array) -> list[Any]:
        names = [field.name for field in array.type]
        rows = zip(*map(self._values, array.flatten()), strict=True)
        is_valid = array.is_valid().to_pylist()
        return [_create_row(names, row) if valid else None for row, valid in zip(rows, is_valid, strict=True)]

    def _lists(self, array: pa.Array) -> list[Any]:
        child, spans = _spans(array)
        elements = self._values(array.values.slice(child.start, child.stop - child.start))
        return [span if span is None else list(elements[span]) for span in spans]


def _times(array: pa.Array) -> list[Any]:
    """Convert timestamps to datetimes without a zone; instants become wall-clock times in the worker's own zone."""
    spark = TimestampType() if array.type.tz else TimestampNTZType()
    return [spark.fromInternal(micros) for micros in array.cast(t.LONG).to_pylist()]


def _spans(array: pa.Array) -> tuple[slice, list[slice | None]]:
    """The slice of the child array that all lists use, and the slice of that for each row; None for NULL."""
    bounds = array.offsets.to_pylist()
    first = bounds[0]
    spans = [
        slice(start - first, stop - first) if valid else None
        for valid, start, stop in zip(array.is_valid().to_pylist(), bounds, bounds[1:], strict=False)
    ]
    return slice(first, bounds[-1]), spans
