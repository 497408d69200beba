"""Runs a lambda over the elements of all rows at once, each beside the columns of its row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError
from kquery_spark.expr.lambdas import HigherOrder
from kquery_spark.kernels.elements import Elements, elements, listed
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch
from kquery_spark.types.sizes import reserve_gather
from kquery_spark.types.vector import Data, Vector, from_arrow

Body = Callable[[Batch], Vector]


def body_schema(expr: HigherOrder) -> pa.Schema:
    """The columns of the body: the element, its place, and the columns of the row."""
    names = (*expr.parameters, *expr.inputs)
    places = (t.INT,) * (len(expr.parameters) - 1)
    types = (expr.array.dtype.value_type, *places, *(c.dtype for c in expr.captured))
    return pa.schema([pa.field(name, dtype) for name, dtype in zip(names, types, strict=True)])


def apply(expr: HigherOrder, body: Body, array: Vector, captured: Sequence[Vector], num_rows: int) -> Vector:
    """The value of the call in each row."""
    array_elements = elements(array.array(num_rows))
    batch = _batch(expr, array_elements, captured, num_rows)
    if expr.entry.quantifies:
        return Vector(t.BOOL, _quantified(expr.function == "exists", body, array_elements, batch))
    value = body(batch)
    if not expr.entry.is_condition:
        values = value.array(batch.num_rows)
        return Vector(
            expr.dtype,
            listed(values, np.arange(len(values)), array_elements.sizes, array_elements.nulls, expr.dtype),
        )
    passing = np.flatnonzero(_flags(value, batch.num_rows)[0])
    sizes = np.bincount(array_elements.rows[passing], minlength=num_rows)
    return Vector(expr.dtype, listed(array_elements.values, passing, sizes, array_elements.nulls, expr.dtype))


def _batch(expr: HigherOrder, array_elements: Elements, captured: Sequence[Vector], num_rows: int) -> Batch:
    schema = body_schema(expr)
    columns: list[Any] = [from_arrow(array_elements.values.type, array_elements.values).data]
    if len(expr.parameters) > 1:
        columns.append(pa.array(array_elements.order.astype(np.int32)))
    rows = pa.array(array_elements.rows)
    outer = [vector.physical(num_rows) for vector in captured]
    reserve_gather(outer, array_elements.rows)
    columns += [column.take(rows) for column in outer]
    return Batch(schema, tuple(columns), len(array_elements.rows))


def _flags(value: Vector, length: int) -> tuple[Any, Any]:
    """Where a condition is true, and where it is NULL."""
    data = pa.nulls(length, t.BOOL) if value.dtype == t.NULL else value.array(length)
    true = np.asarray(pc.fill_null(data, False).to_numpy(zero_copy_only=False), np.bool_)
    return true, np.asarray(data.is_null().to_numpy(zero_copy_only=False), np.bool_)


def _quantified(exists: bool, body: Body, array_elements: Elements, batch: Batch) -> Data:
    """Whether the lambda holds for some (or each) element; NULL where only unknown ones could decide."""
    rows = len(array_elements.sizes)
    decided, unknown = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)

    def note(places: Any, part: Batch) -> None:
        true, missing = _flags(body(part), part.num_rows)
        decided[array_elements.rows[places[true if exists else ~true & ~missing]]] = True
        unknown[array_elements.rows[places[missing]]] = True

    try:
        note(np.arange(batch.num_rows), batch)
    except ExecutionError:
        # Spark stops at the first element that decides, so the ones after it must not be evaluated.
        decided[:] = unknown[:] = False
        order = array_elements.order
        for step in range(int(array_elements.sizes.max(initial=0))):
            places = np.flatnonzero((order == step) & ~decided[array_elements.rows])
            note(places, batch.take(pa.array(places)))
    return pa.array(decided == exists, mask=array_elements.nulls | (unknown & ~decided))
