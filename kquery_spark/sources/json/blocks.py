"""Parses blocks of JSON lines into columns: with Arrow where it agrees with Spark, else line by line.

Arrow and Spark agree on a line that is one whole object with values of the right types:

1. ``split_lines`` marks lines that do not look like such an object as **odd**.
2. ``parse_or_bisect`` lets Arrow parse all other lines at once. If that fails, it parses each half of the lines, and so
   on, until only small groups of lines are left that Arrow cannot parse.
3. The parser of ``kernels/json_parser.py``, which follows Jackson, parses the odd lines and these groups one by one.
4. The results are merged in the order of the lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as pa_json

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.kernels.integer_order import stable_order
from kquery_spark.kernels.json_bytes import BACKSLASH, CLOSE_OBJECT, LINE_FEED, OPEN_ARRAY, OPEN_OBJECT, QUOTE
from kquery_spark.kernels.json_parser import UNCERTAIN_REASON, MalformedJson, Node, parse_line
from kquery_spark.sources.json.options import JsonOptions
from kquery_spark.sources.json.values import Converter, from_strings, is_date_or_timestamp
from kquery_spark.types import names as t
from kquery_spark.types.batch import one_array

Bools = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]
_LONG_LINE_BYTES = 1000  # shorter lines are not checked for deep nesting and long numbers
_MAX_LINE_BYTES = 20_000_000
_MAX_NAME_BYTES = 50_000  # Jackson refuses names of more characters, which have at least as many bytes
_FEW_LINES = 32  # groups of at most this many lines are parsed line by line instead of being bisected
_WORDS = re.compile(rb"[:,\[][ \t]*[+-]?(?:Inf|NaN)")
# The second alternative matches a string without an end. Without it, the search would begin again at each of its quotes.
_STRING = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)(?:"([ \t]*:)?|\\?\Z)')
_LONG_NUMBER = re.compile(rb"[0-9.eE+-]{1000}")
# A column that does not occur in any line, because Arrow would treat an empty schema like no schema.
_PLACEHOLDER_SCHEMA = pa.schema([("\x01", pa.null())])


class LineError(Exception):
    """A line that the engine cannot read like Spark. line: its number in the block, from 0."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class BadRecord(LineError):
    """A malformed record in the mode FAILFAST."""


@dataclass(frozen=True)
class Lines:
    """The lines of a block that are not empty. starts, ends: their byte positions in the block."""

    block: bytes
    starts: Positions
    ends: Positions

    def __len__(self) -> int:
        return len(self.starts)

    def text(self, i: int) -> str:
        """The string of one line."""
        return self.block[self.starts[i] : self.ends[i]].decode()

    def concatenate(self, line_indexes: Positions) -> bytes:
        """Return some lines in their order. Adjacent lines are copied as one run, so the loop is over the gaps."""
        if not len(line_indexes):
            return b""
        starts, ends = self.starts[line_indexes], self.ends[line_indexes]
        breaks = np.flatnonzero(np.diff(line_indexes) != 1) + 1
        first = np.concatenate([[0], breaks])
        last = np.concatenate([breaks - 1, [len(line_indexes) - 1]])
        runs = [self.block[starts[a] : ends[b]] for a, b in zip(first, last, strict=True)]
        return b"\n".join([*runs, b""])

    def number(self, i: int) -> int:
        """The number of a line in the block, from 0."""
        return self.block.count(b"\n", 0, int(self.starts[i]))


@dataclass(frozen=True)
class Rows:
    """The rows of a block. good: False for records that are malformed or have a value of a wrong type."""

    columns: tuple[pa.Array, ...]
    num_rows: int
    good: Bools


def split_lines(block: bytes) -> tuple[Lines, Bools]:
    """The lines of a block (line ends normalized), and a flag for each line that looks odd."""
    raw = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(raw == LINE_FEED)
    if len(block) and not block.endswith(b"\n"):
        ends = np.append(ends, len(raw))
    starts = np.append(0, ends[:-1] + 1)[: len(ends)]
    keep = ends > starts
    starts, ends = starts[keep], ends[keep]
    if not len(starts):
        return Lines(block, starts, ends), np.zeros(0, np.bool_)
    _check_utf8(block)
    odd = (raw[starts] != OPEN_OBJECT) | (raw[ends - 1] != CLOSE_OBJECT)
    longest = int((ends - starts).max())
    if longest >= _MAX_LINE_BYTES:
        raise SourceError("a line of more than 20 MB is not supported")
    if longest >= _LONG_LINE_BYTES:
        # A line with more than 200 opening brackets may be nested very deeply. Python parses it and limits the depth.
        opens = np.cumsum((raw == OPEN_OBJECT) | (raw == OPEN_ARRAY), dtype=np.int64)
        odd |= opens[ends - 1] - opens[starts] >= 200
        if _LONG_NUMBER.search(block) is not None:
            raise SourceError("a number of more than 1000 characters is not supported")
    if longest > _MAX_NAME_BYTES:
        odd |= _lines_with_long_names(block, raw, starts, ends)
    for at in _special_offsets(block, raw):
        odd[np.searchsorted(starts, at, side="right") - 1] = True
    return Lines(block, starts, ends), odd


def _lines_with_long_names(
    block: bytes, raw: npt.NDArray[np.uint8], starts: Positions, ends: Positions
) -> Bools:
    """Mark the lines with a name that may be too long for Jackson; Arrow accepts names of any length.

    Quotes that follow a backslash are ignored, so the two quotes around such a name are more than ``_MAX_NAME_BYTES`` apart.
    The exact but slower search for names runs only in lines with such a gap, which a long value may cause, too.
    """
    quotes = np.flatnonzero(raw == QUOTE)
    quotes = quotes[raw[np.maximum(quotes - 1, 0)] != BACKSLASH]
    far_apart = quotes[:-1][np.diff(quotes) > _MAX_NAME_BYTES]
    marked = np.zeros(len(starts), np.bool_)
    for line in np.unique(np.searchsorted(starts, far_apart, side="right") - 1).tolist():
        strings = _STRING.finditer(block, int(starts[line]), int(ends[line]))
        marked[line] = any(m[2] is not None and m.end(1) - m.start(1) > _MAX_NAME_BYTES for m in strings)
    return marked


def _check_utf8(block: bytes) -> None:
    if block.isascii():
        return
    try:
        block.decode()
    except UnicodeDecodeError as error:
        raise LineError(block.count(b"\n", 0, error.start), "text that is not UTF-8") from None


def _special_offsets(block: bytes, raw: npt.NDArray[np.uint8]) -> Iterator[Positions]:
    """The positions of NaN, infinities and zero bytes, which Arrow and Jackson parse differently."""
    if b"NaN" in block or b"Inf" in block:
        yield np.array([m.start() for m in _WORDS.finditer(block)], np.int64)
    if b"\0" in block:
        yield np.flatnonzero(raw == 0)


def parse_objects(text: bytes, rows: int, schema: pa.Schema | None) -> pa.Table | None:
    """Parse lines with Arrow, with inferred types if ``schema`` is None; None if it fails.

    Every line must begin with { and end with }. Then no object can continue in the next line, because a { cannot follow a }
    inside of an object. So if Arrow finds as many objects as there are lines, each line is exactly one object.
    """
    options = (
        pa_json.ParseOptions()
        if schema is None
        else pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    )
    try:
        table = pa_json.read_json(
            pa.BufferReader(text),
            read_options=pa_json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=options,
        )
    except pa.ArrowInvalid:
        return None
    return table if table.num_rows == rows else None


def parse_or_bisect(line_indexes: Positions, attempt: Callable[[Positions], bool]) -> list[int]:
    """Call ``attempt`` with all lines, and bisect those for which it returns False; returns the lines that remain."""
    waiting, left = [line_indexes], []
    while waiting:
        some = waiting.pop()
        if not len(some) or attempt(some):
            continue
        if len(some) <= _FEW_LINES:
            left += some.tolist()
        else:
            middle = len(some) // 2
            waiting += [some[middle:], some[:middle]]
    return left


def read_rows(block: bytes, schema: pa.Schema, options: JsonOptions) -> Rows:
    """Parse the records of a block into the columns of ``schema``."""
    lines, odd = split_lines(block)
    if not len(schema) and options.mode == "PERMISSIVE" and not odd.any():
        return Rows((), len(lines), np.ones(len(lines), np.bool_))  # malformed lines are rows, too
    reader = _Reader(lines, schema, options)
    left = parse_or_bisect(np.flatnonzero(~odd), reader.bulk)
    strange = np.sort(np.concatenate([np.flatnonzero(odd), np.array(left, np.int64)]))
    if len(strange) or not reader.parts:
        reader.parse_lines(strange)
    return reader.result()


@dataclass
class _Reader:
    """Parses groups of lines of a block, and merges the results.

    parts: for each parsed group, the line of each row, the columns, and which rows are good (see ``Rows``). written: the
    schema that Arrow parses, which differs from ``schema`` in dates and timestamps (see ``_arrow_type``).
    """

    lines: Lines
    schema: pa.Schema
    options: JsonOptions
    parts: list[tuple[Positions, list[pa.Array], Bools]] = field(default_factory=list)

    def __post_init__(self) -> None:
        fields = [pa.field(f.name, _arrow_type(f.type)) for f in self.schema]
        self.written = pa.schema(fields) if fields else _PLACEHOLDER_SCHEMA

    def bulk(self, line_indexes: Positions) -> bool:
        """Parse lines with Arrow; returns False if it fails, or if a nested value has a wrong type."""
        table = parse_objects(self.lines.concatenate(line_indexes), len(line_indexes), self.written)
        if table is None:
            return False
        columns, good = [], np.ones(len(line_indexes), np.bool_)
        for column, dtype in zip(table.columns, self.schema.types, strict=False):
            array = one_array(column)
            values = _finished(array, dtype, self.options)
            if values is None or (t.is_nested(dtype) and values.null_count != array.null_count):
                return False
            if values.null_count != array.null_count:
                good &= np.asarray(values.is_valid()) | np.asarray(array.is_null())
            columns.append(values)
        self.parts.append((line_indexes, columns, good))
        return True

    def parse_lines(self, line_indexes: Positions) -> None:
        """Parse lines one by one. A line may have no record, or several ones in an array."""
        converter = Converter(self.options)
        columns = {f.name: (i, f.type) for i, f in enumerate(self.schema)}
        rows: list[list[Any]] = []
        good: list[bool] = []
        owners: list[int] = []
        for line in line_indexes.tolist():
            for values, fine in self._records(line, converter, columns):
                rows.append(values)
                good.append(fine)
                owners.append(line)
        arrays = [pa.array([row[i] for row in rows], _nullable(f.type)) for i, f in enumerate(self.schema)]
        self.parts.append((np.array(owners, np.int64), arrays, np.array(good, np.bool_)))

    def _records(
        self, line: int, converter: Converter, columns: dict[str, tuple[int, pa.DataType]]
    ) -> list[tuple[list[Any], bool]]:
        """The values of each record of a line, and whether the record is good; a malformed line is one bad record."""
        try:
            node = parse_line(self.lines.text(line))
            if node is None:
                return []
            if node.kind == "array":
                return self._array_records(node, converter, columns)
            return [self._record(node, converter, columns)]
        except MalformedJson as error:
            if self.options.mode == "PERMISSIVE":
                self._check_certain(error.certain, line)
            return [([None] * len(columns), False)]
        except (SourceError, Unsupported) as error:
            raise LineError(self.lines.number(line), str(error)) from None

    def _array_records(
        self, node: Node, converter: Converter, columns: dict[str, tuple[int, pa.DataType]]
    ) -> list[tuple[list[Any], bool]]:
        """The records of an array; if one of them is bad, the whole array is malformed."""
        records = [self._record(n, converter, columns) for n in node.items]
        if not all(fine for _, fine in records):
            raise MalformedJson(certain=all(n.kind != "object" for n in node.items))
        return records

    def _record(
        self, node: Node, converter: Converter, columns: dict[str, tuple[int, pa.DataType]]
    ) -> tuple[list[Any], bool]:
        row: list[Any] = [None] * len(columns)
        if node.kind != "object":
            return row, False
        converter.partial = False
        converter.row(node, columns, row)
        return row, not converter.partial

    def _check_certain(self, certain: bool, line: int) -> None:
        """Raise LineError unless Spark certainly reads all columns of a malformed line as NULL."""
        if not certain:
            raise LineError(self.lines.number(line), UNCERTAIN_REASON)
        if self.options.null_filters:
            raise LineError(
                self.lines.number(line), "malformed, but Spark filters for NULL before it detects this"
            )

    def result(self) -> Rows:
        """Merge all parts in the order of the lines."""
        parts = self.parts
        owners = np.concatenate([p[0] for p in parts])
        good = np.concatenate([p[2] for p in parts])
        if self.options.mode == "FAILFAST" and not good.all():
            first = int(owners[~good].min())
            raise BadRecord(self.lines.number(first), "Malformed records are detected in record parsing.")
        if len(parts) == 1:
            return Rows(tuple(parts[0][1]), len(owners), good)
        order = stable_order(owners)
        columns = []
        for i, column in enumerate(self.schema):
            dtype = _nullable(column.type)
            whole = pa.concat_arrays([p[1][i].cast(dtype) for p in parts])
            columns.append(whole.take(pa.array(order)))
        return Rows(tuple(columns), len(owners), good[order])


def _nullable(dtype: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType] = lambda d: d) -> pa.DataType:
    """Make all nested fields nullable, as Spark reads files, and replace each leaf type by ``leaf(type)``."""
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(f.name, _nullable(f.type, leaf)) for f in dtype])
    if pa.types.is_list(dtype):
        return pa.list_(pa.field(dtype.value_field.name, _nullable(dtype.value_type, leaf)))
    return leaf(dtype)


def _arrow_type(dtype: pa.DataType) -> pa.DataType:
    """The type that Arrow parses: string instead of date and timestamp types, which need Spark's own parsers."""
    return _nullable(dtype, lambda d: t.STRING if is_date_or_timestamp(d) else d)


def _finished(array: pa.Array, dtype: pa.DataType, options: JsonOptions) -> pa.Array | None:
    """Convert a column from the type that Arrow parsed to its own type; None if Arrow may differ from Spark."""
    if is_date_or_timestamp(dtype):
        return from_strings(array, dtype, options)
    if t.is_decimal(dtype):
        return array if _fits(array) else None
    if t.is_fractional(dtype):
        return None if _has_negative_zero(array) else array
    if pa.types.is_struct(dtype):
        return _finished_struct(array, dtype, options)
    if pa.types.is_list(dtype):
        items = _convert_without_loss(array.values, dtype.value_type, options)
        if items is None:
            return None
        list_type = pa.list_(pa.field(dtype.value_field.name, items.type))
        return pa.ListArray.from_arrays(array.offsets, items, type=list_type, mask=array.is_null())
    return array


def _finished_struct(array: pa.Array, dtype: pa.DataType, options: JsonOptions) -> pa.Array | None:
    children = []
    for i, column in enumerate(dtype):
        values = _convert_without_loss(array.field(i), column.type, options)
        if values is None:
            return None
        children.append(values)
    fields = [pa.field(f.name, c.type) for f, c in zip(dtype, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


def _convert_without_loss(array: pa.Array, dtype: pa.DataType, options: JsonOptions) -> pa.Array | None:
    """Convert a nested column; None also if a value would become NULL, because then the whole record is bad."""
    values = _finished(array, dtype, options)
    return None if values is None or values.null_count != array.null_count else values


def _has_negative_zero(array: pa.Array) -> bool:
    """True if a value is -0.0, which may be written as -0: a negative zero to Arrow, but the integer 0 to Jackson."""
    values = array.drop_null().to_numpy(zero_copy_only=False)
    return bool((np.signbit(values) & (values == 0)).any())


def _fits(array: pa.Array) -> bool:
    """True if no decimal has more digits than its type allows: Arrow's parser checks only the digits after the point."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
