"""TO_CSV: structs as lines, as Spark's CSV writer writes them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.json.writing import WHOLE_MINUTES, plain_text
from kquery_spark.functions.registry import CallContext, Function, Nullability, register
from kquery_spark.kernels.text import if_else, replace_all
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

_BLANKS = "".join(map(chr, range(33)))
# univocity skips leading blanks, including line ends, before it looks for characters that need quotes.
_NEEDS_QUOTES = r'[,"]|[^\x00-\x20][\x00-\x20]*[\r\n]'
_NEEDS_QUOTES_IN_FRONT = f"^#|{_NEEDS_QUOTES}"  # in the first field, a # would start a comment
_EMPTY = '""'


def _to_csv(args: Sequence[Vector], context: CallContext) -> Data:
    structs = args[0].array(context.num_rows)
    patterns = [_NEEDS_QUOTES_IN_FRONT, *[_NEEDS_QUOTES] * (structs.type.num_fields - 1)]
    fields = [_field(pc.struct_field(structs, [i]), p, context) for i, p in enumerate(patterns)]
    lines = pc.binary_join_element_wise(*fields, ",")
    present = structs.is_valid()
    if len(fields) == 1:  # univocity gives nothing for a line without a value
        present = pc.and_(present, pc.struct_field(structs, [0]).is_valid())
    return if_else(present, lines, pa.scalar(None, t.STRING))


def _field(values: pa.Array, needs_quotes: str, context: CallContext) -> pa.Array:
    """The string of each value between delimiters; nothing for NULL."""
    strings = plain_text(values, context)
    if values.type == t.STRING:
        strings = _quote_fields(strings, needs_quotes)
    return pc.fill_null(strings, "")


def _quote_fields(strings: pa.Array, needs_quotes: str) -> pa.Array:
    """Strings without blanks around them, in quotes where they have to be."""
    trimmed = pc.utf8_trim(strings, _BLANKS)
    escaped = replace_all(replace_all(trimmed, "\\", "\\\\"), '"', '\\"')
    in_quotes = pc.binary_join_element_wise('"', escaped, '"', "")
    written = pc.if_else(pc.match_substring_regex(strings, needs_quotes), in_quotes, trimmed)
    return pc.if_else(pc.equal(trimmed, ""), _EMPTY, written)


def _type(types: Sequence[pa.DataType]) -> pa.DataType:
    dtype = types[0]
    if not pa.types.is_struct(dtype) or not dtype.num_fields:
        raise PlanError("to_csv needs a struct with fields")
    for field in dtype:
        atomic = field.type in (t.STRING, t.BOOL, t.DATE) or pa.types.is_timestamp(field.type)
        if not (atomic or t.is_numeric(field.type)):
            raise Unsupported(f"to_csv of {t.spark_name(field.type)} is not supported")
    return t.STRING


register(
    Function(
        "to_csv",
        _to_csv,
        _type,
        nullable=Nullability.OTHER_REASONS,
        changes=(WHOLE_MINUTES,),
        invalid_utf8=InvalidUtf8.REPLACED,
    )
)
