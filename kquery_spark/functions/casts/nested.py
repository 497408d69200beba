"""Casts of arrays, structs and maps, which cast their elements, fields and values; NULL stays NULL."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.kernels.elements import cast_nullability, elements, list_array
from kquery_spark.kernels.maps import map_array
from kquery_spark.types.vector import Data, Vector

CastParts = Callable[[Vector, pa.DataType, int], Vector]


def parts(source: pa.DataType, target: pa.DataType) -> list[tuple[pa.DataType, pa.DataType]] | None:
    """The pairs of types to cast inside of nested types; None if the nested types do not correspond.

    Structs must have the same number of fields, and maps the same type of keys.
    """
    if pa.types.is_map(source) and pa.types.is_map(target):
        return [(source.item_type, target.item_type)] if source.key_type == target.key_type else None
    if pa.types.is_map(source) or pa.types.is_map(target):
        return None
    if pa.types.is_list(source) and pa.types.is_list(target):
        return [(source.value_type, target.value_type)]
    if pa.types.is_struct(source) and pa.types.is_struct(target) and len(source) == len(target):
        return [(a.type, b.type) for a, b in zip(source, target, strict=True)]
    return None


def cast_nested(array: pa.Array, target: pa.DataType, cast: CastParts) -> Data:
    """Cast a nested array; ``cast`` converts each part."""
    if pa.types.is_list(target):
        items = elements(array)
        values = cast(Vector(items.values.type, items.values), target.value_type, len(items.rows))
        flat = values.array(len(items.rows))
        return list_array(flat, items.sizes, items.nulls, target)
    if pa.types.is_map(target):
        keys, items = elements(array, array.keys), elements(array, array.items)
        values = cast(Vector(items.values.type, items.values), target.item_type, len(items.rows))
        return map_array(keys.values, values.array(len(items.rows)), keys.sizes, keys.nulls, target)
    fields = []
    for index, field in enumerate(target):
        part = pc.struct_field(array, [index])
        fields.append(
            cast_nullability(
                cast(Vector(part.type, part), field.type, len(array)).array(len(array)), field.type
            )
        )
    mask = array.is_null() if array.null_count else None
    if not fields:
        return array.cast(target)
    return pa.StructArray.from_arrays(fields, fields=list(target), mask=mask)
