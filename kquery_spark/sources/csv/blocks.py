"""Splits a block of whole lines into columns of strings: with Arrow where it agrees with Spark, else line by line.

Arrow and Spark agree on a line with the expected number of values, if all its quotes are next to delimiters and it has no
escape character. A few passes over the bytes detect such regular lines. The other lines are **odd** and go through
``LineTokenizer``, which follows Spark's rules exactly. Blank lines and comments are not rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from kquery_spark.errors import SourceError
from kquery_spark.kernels.text import if_else
from kquery_spark.sources.csv.fields import cut
from kquery_spark.sources.csv.odd_lines import odd_lines
from kquery_spark.sources.csv.options import MAX_COLUMNS, CsvOptions
from kquery_spark.sources.csv.tokens import LineTokenizer
from kquery_spark.types import names as t
from kquery_spark.types.batch import one_array

Bools = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]
_BLANKS = "".join(map(chr, range(33)))
_NEWLINE = 10
MAX_WHOLE_BYTES = 1 << 30
"""Size of the largest file that is read as a whole. Arrow's CSV reader has a limit of 2 GiB."""


@dataclass(frozen=True)
class TextColumns:
    """Rows of a block. columns: strings, or numbers that Arrow has already parsed, with NULL where Spark has NULL.

    wrong_width: True for rows whose number of values differs from the table's number of columns; None without such a row.
    """

    columns: tuple[pa.Array, ...]
    num_rows: int
    wrong_width: Bools | None = None


def text_columns(
    block: bytes,
    options: CsvOptions,
    width: int,
    column_types: dict[int, pa.DataType],
    columns: int,
    kernels: ModuleType | None = None,
) -> TextColumns:
    """Split ``block``, whose line ends are normalized to ``\\n``.

    width: the number of values in a usual line of this file. column_types: the indexes of the columns to return, with their
    types if Arrow may parse the numbers itself, else string. columns: the number of the table's columns. kernels: compiled
    loops that split regular lines faster than Arrow.
    """
    if not block:
        return TextColumns(tuple(pa.array([], dtype) for dtype in column_types.values()), 0)
    _check_width(width)
    if options.multi_line:
        return _multi_line(block, options, width, column_types, columns)
    arrays = _split_regular_block(block, options, width, column_types, len(column_types) < columns, kernels)
    if arrays is None:
        return _split_line_by_line(block, options, width, list(column_types), columns, ord(options.quote))
    rows = len(arrays[0]) if arrays else _count_lines(block)
    return _rows_of_equal_width(arrays, rows, width, columns)


def _split_regular_block(
    block: bytes,
    options: CsvOptions,
    width: int,
    column_types: dict[int, pa.DataType],
    pruned: bool,
    kernels: ModuleType | None,
) -> list[pa.Array] | None:
    """Split a block in which all lines have ``width`` values; None if lines must be checked one by one."""
    quoted = options.quote.encode() in block
    if options.trims or (quoted and kernels is None) or _has_special_lines(block, options, width):
        return None
    if kernels is not None:
        arrays = cut(block, options, width, column_types, quoted, pruned, kernels)
        if arrays is not None:
            return arrays
    return None if quoted else _parse(block, options, width, column_types, quoted=False)


def _rows_of_equal_width(arrays: list[pa.Array], rows: int, width: int, columns: int) -> TextColumns:
    """Build the result for rows that all have ``width`` values. columns: the number of the table's columns."""
    return TextColumns(tuple(arrays), rows, np.ones(rows, np.bool_) if width != columns else None)


def count_rows(block: bytes, options: CsvOptions) -> int:
    """Count the rows, which are lines that are neither blank nor comments."""
    if not block:
        return 0
    if not _has_special_lines(block, options, 1):
        return _count_lines(block)
    return int(_lines(block, options)[0].size)


def _count_lines(block: bytes) -> int:
    raw = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(raw == _NEWLINE)
    empty = int((np.diff(ends, prepend=-1) == 1).sum())
    return len(ends) - empty + (0 if block.endswith(b"\n") else 1)


def _has_special_lines(block: bytes, options: CsvOptions, width: int) -> bool:
    """Return whether a line may be blank (but not empty) or a comment, which Arrow would read as a row."""
    first = options.comment.encode()
    if first and first in block and (block.startswith(first) or b"\n" + first in block):
        return True
    if width > 1 and options.delimiter > " ":
        return False  # a blank line has one value, so Arrow's own count finds it
    raw = np.frombuffer(block, np.uint8)
    starts = np.append(0, np.flatnonzero(raw[:-1] == _NEWLINE) + 1)
    heads = raw[starts]
    return bool(((heads <= 32) & (heads != _NEWLINE)).any())


def _multi_line(
    block: bytes, options: CsvOptions, width: int, column_types: dict[int, pa.DataType], columns: int
) -> TextColumns:
    """Split a whole file whose quoted values may have line ends; raises SourceError if Arrow and Spark would differ."""
    if len(block) > MAX_WHOLE_BYTES:
        raise SourceError(f"CSV files with multiLine are supported up to {MAX_WHOLE_BYTES:,} bytes")
    if not _has_plain_quotes(block, options, pruned=len(column_types) < columns):
        raise SourceError("quotes or escapes inside values are not supported with multiLine")
    arrays = _parse(block, options, width, column_types, quoted=True)
    if arrays is None:
        raise SourceError("lines with different numbers of values are not supported with multiLine")
    return _rows_of_equal_width(arrays, len(arrays[0]), width, columns)


def _has_plain_quotes(block: bytes, options: CsvOptions, pruned: bool) -> bool:
    """Return whether Arrow and Spark agree on all quoted values.

    They agree if quotes are around whole values, no escapes occur, and no value is empty although Spark distinguishes
    empty strings from NULL.
    """
    raw = np.frombuffer(block, np.uint8)
    at = np.flatnonzero(raw == ord(options.quote))
    if not len(at):
        return True
    bounds = (ord(options.delimiter), _NEWLINE)
    before = np.where(at == 0, _NEWLINE, raw[np.maximum(at - 1, 0)])
    after = np.where(at + 1 == len(raw), _NEWLINE, raw[np.minimum(at + 1, len(raw) - 1)])
    clean = np.where(np.arange(len(at)) % 2 == 0, np.isin(before, bounds), np.isin(after, bounds)).all()
    empty = options.distinguishes_empty_values(pruned) and (np.diff(at) == 1).any()
    return bool(clean and len(at) % 2 == 0 and not options.has_escapes(block) and not empty)


def _parse(
    block: bytes, options: CsvOptions, width: int, column_types: dict[int, pa.DataType], quoted: bool
) -> list[pa.Array] | None:
    """Read the columns with Arrow; None if a line has another number of values."""
    if not column_types:
        return None
    # An empty list of columns would mean all of them.
    present = {i: dtype for i, dtype in column_types.items() if i < width} or {0: t.STRING}
    columns = _read_columns(block, options, width, present, quoted)
    if columns is None:
        columns = _read_columns(block, options, width, dict.fromkeys(present, t.STRING), quoted)
    if columns is None:
        return None
    rows = len(columns[min(columns)])
    return [columns[i] if i in columns else pa.nulls(rows, t.STRING) for i in column_types]


def _read_columns(
    block: bytes, options: CsvOptions, width: int, types: dict[int, pa.DataType], quoted: bool
) -> dict[int, pa.Array] | None:
    """Read the columns in ``types``; None if Arrow does not read them like Spark."""
    table = _read_csv(block, options, width, types, quoted)
    if table is None:
        return None
    columns = dict(zip(types, map(one_array, table.columns), strict=True))
    # Arrow reads "inf" and "nan" in any spelling as numbers; Spark has its own words for them.
    return columns if all(t.is_string(a.type) or _finite(a) for a in columns.values()) else None


def _read_csv(
    block: bytes, options: CsvOptions, width: int, types: dict[int, pa.DataType], quoted: bool
) -> pa.Table | None:
    """Call Arrow's CSV reader for the columns in ``types``; None if it fails."""
    try:
        return pa_csv.read_csv(
            pa.BufferReader(block),
            read_options=pa_csv.ReadOptions(
                use_threads=False, block_size=len(block) + 1, column_names=[str(i) for i in range(width)]
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=options.delimiter,
                quote_char=options.quote if quoted else False,
                double_quote=options.doubles_quotes,
                newlines_in_values=options.multi_line,
            ),
            convert_options=pa_csv.ConvertOptions(
                check_utf8=True,
                column_types={str(i): dtype for i, dtype in types.items()},
                include_columns=[str(i) for i in types],
                null_values=list(options.null_strings),
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            raise SourceError("a value is not valid UTF-8") from None
        return None


def _finite(array: pa.Array) -> bool:
    return pc.all(pc.is_finite(array)).as_py() is not False


def _lines(block: bytes, options: CsvOptions) -> tuple[Positions, Positions]:
    """Return the starts and ends of the lines that are rows."""
    raw = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(raw == _NEWLINE)
    if not block.endswith(b"\n"):
        ends = np.append(ends, len(raw))
    starts = np.append(0, ends[:-1] + 1)
    keep = ends > starts
    heads = raw[np.minimum(starts, len(raw) - 1)]
    suspects = keep & ((heads <= 32) | (heads == ord(options.comment or "\0")))
    comment = options.comment.encode()
    for i in np.flatnonzero(suspects):
        line = block[starts[i] : ends[i]]
        if (comment and line.startswith(comment)) or not line.decode("utf-8", "replace").strip(_BLANKS):
            keep[i] = False
    return starts[keep], ends[keep]


def _split_line_by_line(
    block: bytes, options: CsvOptions, width: int, column_indexes: list[int], columns: int, quote: int
) -> TextColumns:
    """Split a block that may have odd lines: Arrow reads the regular lines, and ``LineTokenizer`` the odd ones."""
    starts, ends = _lines(block, options)
    selected = column_indexes if len(column_indexes) < columns else None
    odd = odd_lines(np.frombuffer(block, np.uint8), starts, ends, options, width, quote, selected is not None)
    regular = np.flatnonzero(~odd)
    parts: list[list[pa.Array]] = []
    wrong_width = np.full(len(starts), width != columns)
    if len(regular):
        regular_lines = _regular_lines(block, starts, ends, odd)
        types = dict.fromkeys(column_indexes, t.STRING)
        regular_columns = _parse(regular_lines, options, width, types, quoted=True)
        if regular_columns is None or len(regular_columns[0]) != len(regular):
            # Arrow finds other lines or values than ``odd_lines`` has counted, so the tokenizer splits all lines.
            odd[:] = True
            regular = regular[:0]
        else:
            parts.append([_trimmed(a, options) for a in regular_columns])
    odd_numbers = np.flatnonzero(odd)
    if len(odd_numbers) or not parts:
        lines = (block[starts[i] : ends[i]] for i in odd_numbers)
        arrays, widths = tokenize_lines(lines, options, column_indexes, selected)
        parts.append(arrays)
        wrong_width[odd_numbers] = widths != columns
    merged = _in_line_order(parts, regular, odd_numbers)
    return TextColumns(tuple(merged), len(starts), wrong_width if wrong_width.any() else None)


def _in_line_order(parts: list[list[pa.Array]], regular: Positions, odd: Positions) -> list[pa.Array]:
    """Merge the columns of the regular and of the odd lines into the order of the lines."""
    merged = [pa.concat_arrays(arrays) for arrays in zip(*parts, strict=True)]
    if len(parts) == 1:
        return merged
    rows = len(regular) + len(odd)
    order = np.empty(rows, np.int64)
    order[np.concatenate([regular, odd])] = np.arange(rows)
    return [a.take(pa.array(order)) for a in merged]


def tokenize_lines(
    lines: Iterable[bytes], options: CsvOptions, column_indexes: list[int], selected: list[int] | None
) -> tuple[list[pa.Array], Positions]:
    """Split lines by Spark's rules; returns the strings of some columns, and the number of values of each line."""
    tokenizer = LineTokenizer(options)
    cells: list[list[str | None]] = [[] for _ in column_indexes]
    widths = []
    for line in lines:
        try:
            tokens = tokenizer.tokens(line.decode(), selected)
        except UnicodeDecodeError:
            raise SourceError("a value is not valid UTF-8") from None
        _check_width(len(tokens))
        widths.append(len(tokens))
        for cell, index in zip(cells, column_indexes, strict=True):
            value = tokens[index] if index < len(tokens) else None
            cell.append(None if value == options.null_value else value)
    return [pa.array(cell, t.STRING) for cell in cells], np.array(widths, np.int64)


def _check_width(width: int) -> None:
    if width > MAX_COLUMNS:
        raise SourceError(f"a line of {width:,} values is not supported; Spark reads {MAX_COLUMNS:,} at most")


def _trimmed(array: pa.Array, options: CsvOptions) -> pa.Array:
    if options.trim_leading:
        array = pc.utf8_ltrim(array, characters=_BLANKS)
    if options.trim_trailing:
        array = pc.utf8_rtrim(array, characters=_BLANKS)
    if options.trims:
        array = if_else(pc.equal(array, options.null_value), pa.scalar(None, t.STRING), array)
    return array


def _regular_lines(block: bytes, starts: Positions, ends: Positions, odd: Bools) -> bytes:
    """Return the block without odd lines, blank lines and comments."""
    starts, ends = starts[~odd], ends[~odd]
    # Adjacent lines are copied as one run, so the loop is over the gaps.
    breaks = np.flatnonzero(starts[1:] != ends[:-1] + 1) + 1
    first = np.concatenate([[0], breaks])
    last = np.concatenate([breaks - 1, [len(starts) - 1]])
    runs = [block[starts[a] : ends[b]] for a, b in zip(first, last, strict=True)]
    return b"\n".join([*runs, b""])
