"""Types of Parquet columns: which types a table may declare for them."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.types import decimals
from kquery_spark.types import names as t
from kquery_spark.types.arrow_types import LARGE_BINARIES, LISTS, STRINGS, UNSIGNED, is_any


def readable_as(file_type: pa.DataType, dtype: pa.DataType, instants: bool = False) -> bool:
    """True if a file's column can be read as the table's type without changing a value, as Spark reads it.

    instants: whether the column has INT96 times, which Arrow reads as wall-clock times although they are instants.
    """
    if pa.types.is_dictionary(file_type):
        file_type = file_type.value_type
    if file_type == dtype:
        return True
    if dtype == t.STRING:
        return is_any(file_type, STRINGS)
    if dtype == t.BINARY:
        return is_any(file_type, (*LARGE_BINARIES, *STRINGS))
    if t.is_interval(dtype):  # Parquet has no such types, so Spark stores them as plain integers
        return bool(file_type == t.INTERVAL_STORAGE[dtype])
    if dtype == t.TIME:
        return bool(file_type == pa.time64("us"))
    if pa.types.is_nested(file_type):
        return _nested_readable_as(file_type, dtype, instants)
    if pa.types.is_timestamp(file_type) and pa.types.is_timestamp(dtype):
        return (file_type.tz is None) == (dtype.tz is None) or (instants and file_type.tz is None)
    return _number_readable_as(file_type, dtype)


def _number_readable_as(file_type: pa.DataType, dtype: pa.DataType) -> bool:
    """True if the table's type can represent every number of the file's type."""
    if t.is_integral(file_type):
        return _integer_readable_as(file_type, dtype)
    if file_type == pa.uint64():
        return bool(dtype == UNSIGNED[file_type])
    if pa.types.is_unsigned_integer(file_type):
        return t.is_integral(dtype) and bool(file_type.bit_width < dtype.bit_width)
    if t.is_decimal(file_type) and t.is_decimal(dtype):
        whole_digits_fit = dtype.precision - dtype.scale >= file_type.precision - file_type.scale
        return bool(whole_digits_fit and dtype.scale >= file_type.scale)
    return bool(file_type == t.FLOAT and dtype == t.DOUBLE)


def _integer_readable_as(file_type: pa.DataType, dtype: pa.DataType) -> bool:
    if t.is_integral(dtype):
        return bool(file_type.bit_width <= dtype.bit_width)
    stored = t.LONG if file_type == t.LONG else t.INT  # Parquet has no shorter ones
    digits = decimals.for_integral(stored).precision
    return t.is_decimal(dtype) and bool(dtype.precision - dtype.scale >= digits)


def _nested_readable_as(file_type: pa.DataType, dtype: pa.DataType, instants: bool) -> bool:
    if pa.types.is_struct(file_type) and pa.types.is_struct(dtype):
        return all(_field_readable_as(file_type, field, instants) for field in dtype)
    if pa.types.is_map(file_type) and pa.types.is_map(dtype):
        return readable_as(file_type.key_type, dtype.key_type, instants) and readable_as(
            file_type.item_type, dtype.item_type, instants
        )
    if is_any(file_type, LISTS) and pa.types.is_list(dtype):
        return readable_as(file_type.value_type, dtype.value_type, instants)
    return False


def _field_readable_as(struct: pa.DataType, field: pa.Field, instants: bool) -> bool:
    """True if a file's struct has one readable field with exactly this name, or lacks the field, which is then NULL."""
    matches = [f for f in struct if f.name.lower() == field.name.lower()]
    if not matches:
        return True
    return [f.name for f in matches] == [field.name] and readable_as(matches[0].type, field.type, instants)


def is_promoted(file_type: pa.DataType, dtype: pa.DataType, instants: bool) -> bool:
    """True if only Spark 4.0 and later can read a file's column as a table's type. ``readable_as`` must hold.

    This is so for wider types of numbers, and for INT96 times (``instants``) as wall-clock times. The function is also True
    for some decimals that earlier releases can read.
    """
    if pa.types.is_dictionary(file_type):
        file_type = file_type.value_type
    if pa.types.is_struct(file_type):
        fields = [
            (file_type.field(f.name).type, f.type) for f in dtype if file_type.get_field_index(f.name) >= 0
        ]
        return any(is_promoted(*types, instants) for types in fields)
    if pa.types.is_map(file_type):
        keys = is_promoted(file_type.key_type, dtype.key_type, instants)
        return keys or is_promoted(file_type.item_type, dtype.item_type, instants)
    if is_any(file_type, LISTS):
        return is_promoted(file_type.value_type, dtype.value_type, instants)
    if pa.types.is_timestamp(file_type):
        return instants and dtype.tz is None
    if t.is_decimal(dtype):
        return bool(dtype not in (file_type, UNSIGNED.get(file_type)))
    if dtype == t.LONG:
        return bool(file_type not in (t.LONG, pa.uint32()))
    return bool(dtype == t.DOUBLE and file_type == t.FLOAT)


def mismatch(path: str, name: str, file_type: pa.DataType, dtype: pa.DataType) -> str:
    """The message for a column whose type in the file cannot be read as the table's type."""
    stored_name, table_name = t.spark_name(file_type), t.spark_name(dtype)
    return f"{path}: column {name} is {stored_name} in the file, but {table_name} in the table"


def lacks_fields(file_type: pa.DataType, dtype: pa.DataType) -> bool:
    """True if a struct in a file's column lacks a field that the table's type has."""
    if pa.types.is_struct(file_type) and pa.types.is_struct(dtype):
        names = {field.name for field in file_type}
        return any(f.name not in names or lacks_fields(file_type.field(f.name).type, f.type) for f in dtype)
    if is_any(file_type, LISTS) and pa.types.is_list(dtype):
        return lacks_fields(file_type.value_type, dtype.value_type)
    if pa.types.is_map(file_type) and pa.types.is_map(dtype):
        keys = lacks_fields(file_type.key_type, dtype.key_type)
        return keys or lacks_fields(file_type.item_type, dtype.item_type)
    return False


def has_times(dtype: pa.DataType) -> bool:
    """True if a column or a nested part of it has dates or times."""
    if pa.types.is_nested(dtype):
        return any(has_times(dtype.field(i).type) for i in range(dtype.num_fields))
    return bool(pa.types.is_date32(dtype) or pa.types.is_timestamp(dtype))


def is_in_nanoseconds(dtype: pa.DataType) -> bool:
    """True if a column or a nested part of it has times in nanoseconds; INT96 times are read as microseconds.

    Times of day in nanoseconds have the Arrow type that the engine calls ``t.TIME``, but the engine's values of this type
    have at most six decimals of a second.
    """
    if pa.types.is_nested(dtype):
        return any(is_in_nanoseconds(dtype.field(i).type) for i in range(dtype.num_fields))
    return bool((pa.types.is_timestamp(dtype) or pa.types.is_time64(dtype)) and dtype.unit == "ns")
