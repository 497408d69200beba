"""FROM_CSV: reads the strings of a column as the lines of a CSV file, one record a text."""

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
from kquery_spark.sources.csv.blocks import text_columns, tokenized
from kquery_spark.sources.csv.options import CsvOptions, csv_options
from kquery_spark.sources.csv.values import check_type, converted
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

_BLANKS = "".join(map(chr, range(33)))
_LINE_ENDS = r"[\r\n]"
_MARK = "\ufeff"


def record_options(given: Mapping[str, str], time_zone: str) -> CsvOptions:
    """The options of FROM_CSV; Unsupported, with the name, for one that the engine does not follow exactly."""
    options = csv_options(given, time_zone)
    for name, differs in {
        "header": options.header,
        "multiLine": options.multi_line,
        "comment": bool(options.comment),
        "mode": options.mode == "DROPMALFORMED",
    }.items():
        if differs:
            raise Unsupported(f"from_csv with the option {name} is not supported")
    return options


def check_fields(dtype: pa.DataType) -> None:
    """Raise Unsupported for a struct that FROM_CSV does not read in the engine."""
    names = [field.name for field in dtype]
    if not names or len(set(names)) < len(names):
        raise Unsupported("from_csv of a struct without fields, or with two of one name, is not supported")
    for field in dtype:
        check_type(field.name, field.type)


def encoded_parameters(given: Mapping[str, str], columns: int, indexes: Sequence[int]) -> str:
    """The parameters of a call as one literal, which ``_decoded_parameters`` reads.

    columns: how many values a record should have. indexes: which of them are fields of the result.
    """
    return json.dumps({"options": dict(given), "columns": columns, "indexes": list(indexes)})


@functools.lru_cache(maxsize=64)
def _decoded_parameters(description: str, time_zone: str) -> tuple[CsvOptions, int, tuple[int, ...]]:
    parts = json.loads(description)
    return record_options(parts["options"], time_zone), parts["columns"], tuple(parts["indexes"])


def from_csv(args: Sequence[Vector], context: CallContext) -> Data:
    """The struct of each text: NULL for NULL, and fields that are NULL for what is missing or malformed."""
    options, columns, indexes = _decoded_parameters(args[1].data.as_py(), context.tz)
    strings = args[0].array(context.num_rows)
    if pc.any(pc.match_substring_regex(strings, _LINE_ENDS)).as_py():
        raise Unsupported("from_csv of a text with line ends is not supported")
    if pc.any(pc.starts_with(strings, _MARK)).as_py():
        raise Unsupported("from_csv of a text that begins with a byte order mark is not supported")
    try:
        cells, malformed = _cells(strings.drop_null(), options, columns, indexes)
        values = [converted(c, f.type, options) for c, f in zip(cells, context.dtype, strict=True)]
    except SourceError as error:
        raise Unsupported(f"from_csv of a text where {error} is not supported") from None
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
    """The values at ``indexes`` as strings, NULL where Spark has NULL, and the records with too few or too many values."""
    blank = np.asarray(pc.equal(pc.utf8_trim(strings, _BLANKS), ""))
    lines = strings.filter(pa.array(~blank))
    types = dict.fromkeys(indexes, t.STRING)
    read = text_columns(as_lines(lines), options, columns, types, columns)
    if read.num_rows != len(lines):
        raise SourceError("a record is read as several, or as none")
    uneven = np.zeros(len(lines), np.bool_) if read.uneven is None else np.asarray(read.uneven)
    if not blank.any():
        return list(read.columns), uneven
    # Files have no records of blank lines. As a text, blanks are a record of one value, an empty text one of none.
    selected = list(indexes) if len(indexes) < columns else None
    spaces = strings.filter(pa.array(blank)).dictionary_encode()
    distinct = spaces.dictionary.to_pylist()
    arrays, widths = tokenized((s.encode() for s in distinct), options, list(indexes), selected)
    places = np.asarray(spaces.indices)
    malformed = np.zeros(len(strings), np.bool_)
    malformed[~blank] = uneven
    malformed[blank] = ((widths != columns) | np.array([not s for s in distinct]))[places]
    order = np.empty(len(strings), np.int64)
    order[~blank], order[blank] = np.arange(len(lines)), len(lines) + places
    merged = [pa.concat_arrays([a, b]) for a, b in zip(read.columns, arrays, strict=True)]
    return [a.take(pa.array(order)) for a in merged], malformed
