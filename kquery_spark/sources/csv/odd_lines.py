"""Detects the *odd lines* of a CSV block: those that Arrow and Spark might read differently.

A line is odd if its number of columns is not that of the schema, or if a quote is neither the first nor the last byte of a
value, as in ``a"b,c``. With some options, doubled quotes, escapes, and empty quoted values also make a line odd. A few
vectorized passes over the bytes find these lines. Arrow reads all others.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kquery_spark.sources.csv.options import CsvOptions

Bools = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


def odd_lines(
    raw: npt.NDArray[np.uint8],
    starts: Positions,
    ends: Positions,
    options: CsvOptions,
    column_count: int,
    quote: int,
    pruned: bool,
) -> Bools:
    """Return a mask of the odd lines.

    raw: the bytes of the block. starts, ends: the position of each line's first byte, and the position after its last one.
    quote: the byte that quotes values. pruned: True if some columns are not read.
    """
    odd = np.zeros(len(starts), np.bool_)
    if not len(starts):
        return odd
    quotes = np.flatnonzero(raw == quote)
    if len(quotes):
        # Lines cover every byte except line ends, blank lines and comments; the quotes in these are ignored here.
        line = np.searchsorted(starts, quotes, side="right") - 1
        inside = (line >= 0) & (quotes < ends[np.maximum(line, 0)])
        quotes, line = quotes[inside], line[inside]
    delimiters = np.flatnonzero(raw == ord(options.delimiter))
    if len(quotes):
        odd = _lines_with_odd_quotes(raw, starts, ends, quotes, line, options, pruned)
        # Delimiters between an opening and its closing quote belong to the value. If no line is odd, every line has an even
        # number of quotes, so those before a delimiter can be counted from the start of the block.
        delimiters = (
            _unquoted_delimiters(delimiters, quotes, starts)
            if odd.any()
            else delimiters[np.searchsorted(quotes, delimiters) % 2 == 0]
        )
    counts = np.searchsorted(delimiters, ends) - np.searchsorted(delimiters, starts)
    odd |= counts != column_count - 1
    return odd


def _lines_with_odd_quotes(
    raw: npt.NDArray[np.uint8],
    starts: Positions,
    ends: Positions,
    quotes: Positions,
    line: Positions,
    options: CsvOptions,
    pruned: bool,
) -> Bools:
    """Return a mask of the lines with odd quotes. quotes, line: the position and the line of each quote.

    In each line, the first, third, ... quote opens a value, and the second, fourth, ... closes it. A clean opening quote is
    the first byte of a value, and a clean closing quote is the last one.
    """
    delimiter, quote = ord(options.delimiter), ord(options.quote)
    odd = np.zeros(len(starts), np.bool_)
    first = np.searchsorted(quotes, starts)
    ordinal = np.arange(len(quotes)) - first[line]
    opening = ordinal % 2 == 0
    before, after = raw[np.maximum(quotes - 1, 0)], raw[np.minimum(quotes + 1, len(raw) - 1)]
    clean_open = (quotes == starts[line]) | (before == delimiter)
    clean_close = (quotes + 1 == ends[line]) | (after == delimiter)
    if options.doubles_quotes:
        # A doubled quote is a closing quote that an opening quote follows immediately.
        clean_open |= (before == quote) & (ordinal > 0)
        clean_close |= after == quote
    odd[line[~np.where(opening, clean_open, clean_close)]] = True
    odd[line[opening & (np.append(line[1:], -1) != line)]] = True  # the last quote of a line opens a value
    if options.trims:
        odd[line] = True
    if options.distinguishes_empty_values(pruned):
        empty = opening[:-1] & (quotes[1:] == quotes[:-1] + 1)
        odd[line[:-1][empty]] = True
    if options.doubles_quotes:
        # In three quotes in a row, the tokenizer reads an empty value next to a doubled quote.
        tripled = (quotes[2:] == quotes[:-2] + 2) if len(quotes) > 2 else np.zeros(0, np.bool_)
        odd[line[: len(tripled)][tripled]] = True
    else:
        odd[_lines_with_escapes(raw, starts, line, ord(options.escape))] = True
    return odd


def _lines_with_escapes(
    raw: npt.NDArray[np.uint8], starts: Positions, quoted_lines: Positions, escape: int
) -> Positions:
    """Return the lines that have both quotes and an escape character."""
    escapes = np.flatnonzero(raw == escape)
    if not len(escapes):
        return escapes
    has_quote = np.zeros(len(starts), np.bool_)
    has_quote[quoted_lines] = True
    line = np.maximum(np.searchsorted(starts, escapes, side="right") - 1, 0)
    lines: Positions = line[has_quote[line]]
    return lines


def _unquoted_delimiters(delimiters: Positions, quotes: Positions, starts: Positions) -> Positions:
    """Return the delimiters outside of quotes. Quotes are counted from the start of each line."""
    line = np.maximum(np.searchsorted(starts, delimiters, side="right") - 1, 0)
    before = np.searchsorted(quotes, delimiters) - np.searchsorted(quotes, starts)[line]
    outside: Positions = delimiters[before % 2 == 0]
    return outside
