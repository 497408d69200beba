"""Implements FROM_CSV: parses each string of a column as one record of a CSV file."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, SourceError, Unsupported
from kquery_spark.functions.registry import CallContext
from kquery_spark.kernels.elements import structs
from kquery_spark.kernels.text import as_lines
from kquery_spark.sources.csv.blocks import text_columns, tokenize_lines
from kquery_spark.sources.csv.options import CsvOptions, csv_options
from kquery_spark.sources.csv.values import check_type, converted
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

_BLANKS = "".join(map(chr, range(33)))
_LINE_ENDS = r"[\r\n]"
_BYTE_ORDER_MARK = "\ufeff"


def record_options(options_map: Mapping[str, str], time_zone: str) -> CsvOptions:
    """Parse the options of FROM_CSV; raises Unsupported for an option that the engine does not support exactly."""
    options = csv_options(options_map, time_zone)
    for name, is_set in {
        "header": options.header,
        "multiLine": options.multi_line,
        "comment": bool(options.comment),
        "mode": options.mode == "DROPMALFORMED",
    }.items():
        if is_set:
            raise Unsupported(f"from_csv with the option {name} is not supported")
    return options


def check_fields(dtype: pa.DataType) -> None:
    """Raise Unsupported for a struct type that FROM_CSV does not support."""
    names = [field.name for field in dtype]
    if not names or len(set(names)) < len(names):
        raise Unsupported("from_csv of a struct without fields, or with two of one name, is not supported")
    for field in dtype:
        check_type(field.name, field.type)


def encoded_parameters(options_map: Mapping[str, str], columns: int, indexes: Sequence[int]) -> str:
    """Encode the parameters of a call as one string literal, which ``_decoded_parameters`` decodes.

    columns: the number of values that a record should have. indexes: the positions of the result's fields among them.
    """
    return json.dumps({"options": dict(options_map), "columns": columns, "indexes": list(indexes)})


@functools.lru_cache(maxsize=64)
def _decoded_parameters(description: str, time_zone: str) -> tuple[CsvOptions, int, tuple[int, ...]]:
    parts = json.loads(description)
    return record_options(parts["options"], time_zone), parts["columns"], tuple(parts["indexes"])


def from_csv(args: Sequence[Vector], context: CallContext) -> Data:
    """Parse each string to a struct: NULL for NULL; missing and malformed values give NULL fields."""
    options, columns, indexes = _decoded_parameters(args[1].data.as_py(), context.tz)
    strings = args[0].array(context.num_rows)
    if pc.any(pc.match_substring_regex(strings, _LINE_ENDS)).as_py():
        raise Unsupported("from_csv of a string with line ends is not supported")
    if pc.any(pc.starts_with(strings, _BYTE_ORDER_MARK)).as_py():
        raise Unsupported("from_csv of a string that begins with a byte order mark is not supported")
    try:
        cells, malformed = _cells(strings.drop_null(), options, columns, indexes)
        values = [converted(c, f.type, options) for c, f in zip(cells, context.dtype, strict=True)]
    except SourceError as error:
        raise Unsupported(f"from_csv of a string where {error} is not supported") from None
    if options.mode == "FAILFAST":
        for cell, value in zip(cells, values, strict=True):
            malformed |= np.asarray(pc.and_(cell.is_valid(), value.is_null()))
        if malformed.any():
            raise ExecutionError(
                "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION",
                "Malformed records are detected in record parsing. Parse Mode: FAILFAST.",
            )
    return structs(values, context.dtype, strings.is_valid())


def _cells(
    strings: pa.Array, options: CsvOptions, columns: int, indexes: Sequence[int]
) -> tuple[list[pa.Array], np.ndarray]:
    """Split records into the values at ``indexes``.

    Returns the values as strings, with NULL where Spark has NULL, and which records have too few or too many values.
    """
    # 1. Split the strings that are not blank with the reader of CSV files, as one file with a line per string.
    is_blank = np.asarray(pc.equal(pc.utf8_trim(strings, _BLANKS), ""))
    lines = strings.filter(pa.array(~is_blank))
    types = dict.fromkeys(indexes, t.STRING)
    parsed = text_columns(as_lines(lines), options, columns, types, columns)
    if parsed.num_rows != len(lines):
        raise SourceError("a string is not exactly one record")
    wrong_width = (
        np.zeros(len(lines), np.bool_) if parsed.wrong_width is None else np.asarray(parsed.wrong_width)
    )
    if not is_blank.any():
        return list(parsed.columns), wrong_width
    # 2. A file reader skips blank lines, but FROM_CSV does not: blanks are a record with one value, and an empty string is a
    #    record without values. There are few distinct blank strings, so each is split once.
    selected = list(indexes) if len(indexes) < columns else None
    blank_strings = strings.filter(pa.array(is_blank)).dictionary_encode()
    distinct = blank_strings.dictionary.to_pylist()
    arrays, widths = tokenize_lines((s.encode() for s in distinct), options, list(indexes), selected)
    blank_indices = np.asarray(blank_strings.indices)
    malformed = np.zeros(len(strings), np.bool_)
    malformed[~is_blank] = wrong_width
    malformed[is_blank] = ((widths != columns) | np.array([not s for s in distinct]))[blank_indices]
    # 3. Put both kinds of records into the order of the strings: lines first, then the distinct blank strings.
    order = np.empty(len(strings), np.int64)
    order[~is_blank], order[is_blank] = np.arange(len(lines)), len(lines) + blank_indices
    merged = [pa.concat_arrays([a, b]) for a, b in zip(parsed.columns, arrays, strict=True)]
    return [a.take(pa.array(order)) for a in merged], malformed
