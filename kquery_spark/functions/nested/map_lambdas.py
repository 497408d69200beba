"""Functions of maps with a lambda: ``map_filter``, ``transform_keys``, ``transform_values``, ``map_zip_with``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.functions.call_form import TWO_COLUMNS
from kquery_spark.functions.core.conditional import common_argument_type
from kquery_spark.functions.nested.array_lambdas import truth
from kquery_spark.functions.nested.higher_order import (
    HigherOrderFunction,
    LambdaCall,
    entry_fields,
    first_type,
    register_higher_order,
)
from kquery_spark.functions.registry import ALWAYS_RAISES, EvalMode
from kquery_spark.kernels.elements import Elements, cast_nullability, elements, value_ranks
from kquery_spark.kernels.equal_rows import first_rows
from kquery_spark.kernels.integer_order import stable_order
from kquery_spark.kernels.maps import build_maps, map_array
from kquery_spark.kernels.ordered_bytes import can_order, has_floats
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s


def _entries(array: pa.Array) -> tuple[Elements, pa.Array]:
    """The keys of all maps as elements, and their values at the same positions."""
    return elements(array, array.keys), elements(array, array.items).values


def _filter(args: Sequence[pa.Array], call: LambdaCall) -> Data:
    keys, values = _entries(args[0])
    value = call.function([keys.values, values], keys.rows)
    passing = np.flatnonzero(truth(value, len(keys.rows))[0])
    sizes = np.bincount(keys.rows[passing], minlength=call.num_rows)
    places = pa.array(passing)
    return map_array(keys.values.take(places), values.take(places), sizes, keys.nulls, call.dtype)


def _transform_values(args: Sequence[pa.Array], call: LambdaCall) -> Data:
    keys, values = _entries(args[0])
    new = call.function([keys.values, values], keys.rows).array(len(keys.rows))
    return map_array(keys.values, new, keys.sizes, keys.nulls, call.dtype)


def _transform_keys(args: Sequence[pa.Array], call: LambdaCall) -> Data:
    keys, values = _entries(args[0])
    new = call.function([keys.values, values], keys.rows).array(len(keys.rows))
    return build_maps(keys.rows, new, values, keys.nulls, call.dtype, call.mode is EvalMode.LEGACY)


def _zip_with(args: Sequence[pa.Array], call: LambdaCall) -> Data:
    """Evaluate the lambda for each key of two maps with its values in both; NULL if a map does not have the key."""
    (left, left_values), (right, right_values) = map(_entries, args)
    nulls = left.nulls | right.nulls
    rows = np.concatenate([left.rows, right.rows])
    keys = pa.concat_arrays([cast_nullability(side.values, call.dtype.key_type) for side in (left, right)])
    ids = value_ranks(keys)
    marks = rows * (int(ids.max(initial=0)) + 1) + ids
    order = stable_order(rows)
    order = order[~nulls[rows[order]]]
    first = order[first_rows(marks[order])] if len(order) else order
    columns = [
        _first_values(marks[: len(left.rows)], left_values, marks[first]),
        _first_values(marks[len(left.rows) :], right_values, marks[first]),
    ]
    chosen = keys.take(pa.array(first))
    values = call.function([chosen, *columns], rows[first]).array(len(first))
    sizes = np.bincount(rows[first], minlength=call.num_rows)
    return map_array(chosen, values, sizes, nulls, call.dtype)


def _first_values(marks: Int64s, values: pa.Array, searched: Int64s) -> pa.Array:
    """Return the value of the first entry with each searched mark; NULL if there is none."""
    distinct, first = np.unique(marks, return_index=True)
    places = np.searchsorted(distinct, searched)
    inside = np.minimum(places, max(len(distinct) - 1, 0))
    missing = (places >= len(distinct)) | (
        distinct[inside] != searched if len(distinct) else np.ones(len(searched), np.bool_)
    )
    at = first[inside] if len(distinct) else np.zeros(len(searched), np.int64)
    return values.take(pa.array(np.where(missing, 0, at), mask=missing))


# --- types ----------------------------------------------------------------------------------------


def _entry(types: Sequence[pa.DataType]) -> Sequence[pa.Field]:
    return entry_fields(types[0])


def _key_and_values(types: Sequence[pa.DataType]) -> Sequence[pa.Field]:
    (key, left), (other, right) = map(entry_fields, types)
    if t.spark_name(key.type) != t.spark_name(other.type):
        raise Unsupported("map_zip_with of keys of two types is not supported")
    if has_floats(key.type):
        raise Unsupported("map_zip_with of keys with floats is not supported")
    key = key.with_type(common_argument_type([key.type, other.type]))
    return key, left.with_name("left").with_nullable(True), right.with_name("right").with_nullable(True)


def _with_values(types: Sequence[pa.DataType], value: pa.Field) -> pa.DataType:
    return pa.map_(types[0].key_field, value)


def _with_common_keys(types: Sequence[pa.DataType], value: pa.Field) -> pa.DataType:
    key, _, _ = _key_and_values(types)
    return pa.map_(key, value)


def _with_keys(types: Sequence[pa.DataType], value: pa.Field) -> pa.DataType:
    if not can_order(value.type):
        raise PlanError(
            f"[DATATYPE_MISMATCH.INVALID_MAP_KEY_TYPE] {t.spark_name(value.type)} is not a key type"
        )
    if has_floats(value.type):
        raise Unsupported("transform_keys to floats is not supported")
    return pa.map_(pa.field("key", value.type, False), types[0].item_field)


register_higher_order(
    HigherOrderFunction(
        "map_filter",
        catalyst="MapFilter",
        parameters=_entry,
        is_condition=True,
        result=first_type,
        kernel=_filter,
    ),
    HigherOrderFunction(
        "transform_values",
        catalyst="TransformValues",
        parameters=_entry,
        result=_with_values,
        kernel=_transform_values,
    ),
    # in mode LEGACY, the last of duplicate keys wins
    HigherOrderFunction(
        "transform_keys",
        catalyst="TransformKeys",
        parameters=_entry,
        result=_with_keys,
        kernel=_transform_keys,
        raises=ALWAYS_RAISES,
    ),
    HigherOrderFunction(
        "map_zip_with",
        calls=TWO_COLUMNS,
        catalyst="MapZipWith",
        arguments=2,
        parameters=_key_and_values,
        result=_with_common_keys,
        kernel=_zip_with,
    ),
)
