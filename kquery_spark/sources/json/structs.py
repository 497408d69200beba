"""Implements FROM_JSON: parses each string of a column as one line of a JSON file."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.functions.registry import CallContext
from kquery_spark.kernels.elements import structs
from kquery_spark.kernels.text import as_lines, replace_all
from kquery_spark.sources.csv.options import CsvOptions
from kquery_spark.sources.json.blocks import LineError, read_rows
from kquery_spark.sources.json.infer import has_duplicate_fields
from kquery_spark.sources.json.maps import check_map, map_rows
from kquery_spark.sources.json.options import JsonOptions
from kquery_spark.sources.json.values import check_type
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

_BLANKS = " \t\r\n"
_CORRUPT_RECORD = "_corrupt_record"
_BYTE_ORDER_MARK = "\ufeff"


def check_record(dtype: pa.DataType) -> None:
    """Raise Unsupported for a result type that FROM_JSON does not support."""
    if pa.types.is_map(dtype):
        return check_map(dtype)
    if not pa.types.is_struct(dtype) or not dtype.num_fields:
        raise Unsupported(f"from_json of {t.spark_name(dtype)} is not supported")
    if any(field.name.lower() == _CORRUPT_RECORD for field in dtype):
        raise Unsupported("from_json with a column for malformed records is not supported")
    if has_duplicate_fields(dtype, False):
        raise Unsupported("from_json of a struct with two fields of one name is not supported")
    for field in dtype:
        check_type(field.name, field.type)


def from_json(args: Sequence[Vector], context: CallContext) -> Data:
    """Parse each string to a struct or map: NULL for blank strings; malformed values give NULL fields."""
    strings = pc.utf8_trim(args[0].array(context.num_rows), _BLANKS)
    present = pc.fill_null(pc.not_equal(strings, ""), False)
    if pc.any(pc.starts_with(strings, _BYTE_ORDER_MARK)).as_py():
        raise Unsupported("from_json of a string that begins with a byte order mark is not supported")
    try:
        if pa.types.is_map(context.dtype):
            return map_rows(pc.if_else(present, strings, ""), context.dtype, _options(context.tz))
        documents = _lines(strings.filter(present))
        rows = read_rows(documents, pa.schema(list(context.dtype)), _options(context.tz))
    except (LineError, SourceError) as error:
        raise Unsupported(f"from_json declines a string: {error}") from None
    if rows.num_rows != present.true_count:
        raise Unsupported("from_json of strings with several records is not supported")
    return structs(rows.columns, context.dtype, present)


def _options(time_zone: str) -> JsonOptions:
    return JsonOptions(strings=CsvOptions(time_zone=time_zone), exact_strings=False)


def _lines(strings: pa.Array) -> bytes:
    """Join the strings to lines. A string that does not begin with an object is replaced by ``{}``, which gives the same."""
    if not len(strings):
        return b""
    strings = pc.if_else(pc.starts_with(strings, "{"), strings, "{}")
    for line_end in "\n\r":  # like tabs, they are blanks between values and errors inside strings
        strings = replace_all(strings, line_end, "\t")
    return as_lines(strings)
