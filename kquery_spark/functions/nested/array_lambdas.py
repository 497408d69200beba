"""Functions of arrays and a lambda: ``transform``, ``filter``, ``exists``, ``forall``, ``zip_with``, ``aggregate``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.functions.call_form import TWO_COLUMNS, CallForm
from kquery_spark.functions.nested.higher_order import (
    HigherOrderFunction,
    LambdaCall,
    element_field,
    first_type,
    list_of_results,
    register_higher_order,
)
from kquery_spark.functions.nullability import Nullability
from kquery_spark.kernels.elements import (
    Elements,
    Mask,
    cast_nullability,
    element_places,
    elements,
    gather_lists,
    list_array,
)
from kquery_spark.kernels.integer_order import stable_order
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s, Vector

# In the time of one step of AGGREGATE, Spark processes this number of elements.
_MIN_ROWS_OF_A_STEP = 200
_MAX_SHORT_STEPS = 1000  # up to this number of steps, even few rows take little time


def _with_position(items: Elements, parameters: int) -> list[pa.Array]:
    """The lambda's arguments: the elements and, if it has two parameters, the position of each element in its array."""
    if parameters == 1:
        return [items.values]
    return [items.values, pa.array(items.order.astype(np.int32))]


def truth(value: Vector, length: int) -> tuple[Mask, Mask]:
    """Return two masks: where a condition is true, and where it is NULL."""
    data = pa.nulls(length, t.BOOL) if value.dtype == t.NULL else value.array(length)
    true = np.asarray(pc.fill_null(data, False).to_numpy(zero_copy_only=False), np.bool_)
    return true, np.asarray(data.is_null().to_numpy(zero_copy_only=False), np.bool_)


def _transform(args: Sequence[pa.Array], call: LambdaCall) -> Data:
    items = elements(args[0])
    values = call.function(_with_position(items, call.parameters), items.rows).array(len(items.rows))
    return list_array(values, items.sizes, items.nulls, call.dtype)


def _filter(args: Sequence[pa.Array], call: LambdaCall) -> Data:
    items = elements(args[0])
    value = call.function(_with_position(items, call.parameters), items.rows)
    passing = np.flatnonzero(truth(value, len(items.rows))[0])
    sizes = np.bincount(items.rows[passing], minlength=call.num_rows)
    return gather_lists(items.values, passing, sizes, items.nulls, call.dtype)


def _quantified(exists: bool) -> Any:
    """Build the kernel of EXISTS or FORALL; the result is NULL if only elements with an unknown condition could decide."""

    def run(args: Sequence[pa.Array], call: LambdaCall) -> Data:
        items = elements(args[0])
        decided, unknown = np.zeros(call.num_rows, np.bool_), np.zeros(call.num_rows, np.bool_)

        def evaluate(places: Int64s, values: pa.Array) -> None:
            rows = items.rows[places]
            true, missing = truth(call.function([values], rows), len(rows))
            decided[rows[true if exists else ~true & ~missing]] = True
            unknown[rows[missing]] = True

        try:
            evaluate(np.arange(len(items.rows)), items.values)
        except ExecutionError:
            _evaluate_until_decided(
                items, decided, lambda places: evaluate(places, items.values.take(pa.array(places)))
            )
        return pa.array(decided == exists, mask=items.nulls | (unknown & ~decided))

    return run


def _evaluate_until_decided(items: Elements, decided: Mask, evaluate: Callable[[Int64s], None]) -> None:
    """Evaluate the elements of each row up to the first one that decides, since later ones must not raise an error.

    Each step evaluates several elements of each row: twice as many after a success, half as many after an error. If a step
    with one element per row raises, Spark raises the same error.
    """
    starts, done = items.starts, np.zeros(len(items.sizes), np.int64)
    rows, width = np.flatnonzero(items.sizes), 1
    while len(rows):
        counts = np.minimum(items.sizes[rows] - done[rows], width)
        _, within = element_places(counts)
        try:
            evaluate(np.repeat(starts[rows] + done[rows], counts) + within)
        except ExecutionError:
            if width == 1:
                raise
            width //= 2
            continue
        done[rows] += counts
        rows = rows[(done[rows] < items.sizes[rows]) & ~decided[rows]]
        width *= 2


def _zip_with(args: Sequence[pa.Array], call: LambdaCall) -> Data:
    """Evaluate the lambda for the elements at each position of two arrays; NULL after the end of the shorter one."""
    sides = [elements(array) for array in args]
    nulls = sides[0].nulls | sides[1].nulls
    sizes = np.where(nulls, 0, np.maximum(sides[0].sizes, sides[1].sizes))
    rows, order = element_places(sizes)
    columns = [side.at(rows, order) for side in sides]
    values = call.function(columns, rows).array(len(rows))
    return list_array(values, sizes, nulls, call.dtype)


def _aggregate(args: Sequence[pa.Array], call: LambdaCall) -> Data:
    """Fold each array from the left. Each step processes one element of all rows that have another element.

    Rows are sorted by the size of their array, the largest first, so the rows of a step are always a prefix.
    """
    array, zero = args
    items = elements(array)
    order = stable_order(-items.sizes)
    starts, sizes = items.starts[order], items.sizes[order]
    steps = np.arange(int(sizes[0]) if len(sizes) else 0)
    if len(steps) > _MAX_SHORT_STEPS and len(items.rows) < _MIN_ROWS_OF_A_STEP * len(steps):
        raise Unsupported("AGGREGATE over few long arrays is not supported")
    live = np.searchsorted(-sizes, -steps, side="left")  # rows with more elements than the step's number
    value = cast_nullability(zero.take(pa.array(order)), call.dtype)
    done: list[pa.Array] = []
    for step, count in zip(steps.tolist(), live.tolist(), strict=True):
        if count < len(value):
            done.append(value.slice(count))
            value = value.slice(0, count)
        element = items.values.take(pa.array(starts[:count] + step))
        value = cast_nullability(call.function([value, element], order[:count]).array(count), call.dtype)
    folded = pa.concat_arrays([value, *reversed(done)])
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return folded.take(pa.array(places, mask=items.nulls))


def _element_and_place(types: Sequence[pa.DataType]) -> Sequence[pa.Field]:
    return element_field(types[0]), pa.field("place", t.INT, False)


def _pair(types: Sequence[pa.DataType]) -> Sequence[pa.Field]:
    return [element_field(dtype, name).with_nullable(True) for dtype, name in zip(types, "lr", strict=True)]


def _state_and_element(types: Sequence[pa.DataType]) -> Sequence[pa.Field]:
    return pa.field("state", t.nullable_within(types[1])), element_field(types[0])


def _state_type(types: Sequence[pa.DataType], value: pa.Field) -> pa.DataType:
    if value.type != t.NULL and t.spark_name(value.type) != t.spark_name(types[1]):
        raise PlanError(
            f"[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] the lambda of aggregate gives {t.spark_name(value.type)}, "
            f"but starts with {t.spark_name(types[1])}"
        )
    return t.nullable_within(types[1])


def _condition(types: Sequence[pa.DataType], value: pa.Field) -> pa.DataType:
    return t.BOOL


register_higher_order(
    HigherOrderFunction(
        "transform",
        catalyst="ArrayTransform",
        parameters=_element_and_place,
        optional=1,
        result=list_of_results,
        kernel=_transform,
    ),
    HigherOrderFunction(
        "filter",
        catalyst="ArrayFilter",
        parameters=_element_and_place,
        optional=1,
        is_condition=True,
        result=first_type,
        kernel=_filter,
    ),
    *(
        HigherOrderFunction(
            name,
            catalyst=cls,
            parameters=lambda types: [element_field(types[0])],
            is_condition=True,
            result=_condition,
            kernel=_quantified(name == "exists"),
            nullable=Nullability.ARGUMENT_OR_BODY,
        )
        for name, cls in (("exists", "ArrayExists"), ("forall", "ArrayForAll"))
    ),
    HigherOrderFunction(
        "zip_with",
        calls=TWO_COLUMNS,
        catalyst="ZipWith",
        arguments=2,
        parameters=_pair,
        result=list_of_results,
        kernel=_zip_with,
    ),
    HigherOrderFunction(
        "aggregate",
        ("reduce",),
        CallForm((0, 1), adds=(3, ", lambdafunction(namedlambdavariable(), namedlambdavariable())")),
        catalyst="ArrayAggregate",
        arguments=2,
        parameters=_state_and_element,
        result=_state_type,
        kernel=_aggregate,
        nullable=Nullability.OTHER_REASONS,
        finishes=True,
    ),
)
