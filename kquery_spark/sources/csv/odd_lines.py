"""Detects odd lines of a CSV block, which Arrow and Spark might read differently, by a few passes over its bytes."""

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
    width: int,
    quote: int,
    pruned: bool,
) -> Bools:
    """Return which lines Arrow and Spark might read differently. pruned: whether some columns are not read."""
    odd = np.zeros(len(starts), np.bool_)
    if not len(starts):
        return odd
    at = np.flatnonzero(raw == quote)
    if len(at):
        # Lines cover every byte except line ends, blank lines and comments; the quotes in these are ignored here.
        line = np.searchsorted(starts, at, side="right") - 1
        inside = (line >= 0) & (at < ends[np.maximum(line, 0)])
        at, line = at[inside], line[inside]
    separators = np.flatnonzero(raw == ord(options.delimiter))
    if len(at):
        odd = _lines_of_odd_quotes(raw, starts, ends, at, line, options, pruned)
        # Delimiters between an opening and its closing quote belong to the value.
        separators = (
            _unquoted_separators(separators, at, starts)
            if odd.any()
            else separators[np.searchsorted(at, separators) % 2 == 0]
        )
    counts = np.searchsorted(separators, ends) - np.searchsorted(separators, starts)
    odd |= counts != width - 1
    return odd


def _lines_of_odd_quotes(
    raw: npt.NDArray[np.uint8],
    starts: Positions,
    ends: Positions,
    at: Positions,
    line: Positions,
    options: CsvOptions,
    pruned: bool,
) -> Bools:
    """Return the lines with quotes that Arrow and Spark might read differently.

    at: the positions of the quotes. line: the line of each quote.
    """
    delimiter, quote = ord(options.delimiter), ord(options.quote)
    odd = np.zeros(len(starts), np.bool_)
    first = np.searchsorted(at, starts)
    ordinal = np.arange(len(at)) - first[line]
    opening = ordinal % 2 == 0
    before, after = raw[np.maximum(at - 1, 0)], raw[np.minimum(at + 1, len(raw) - 1)]
    clean_open = (at == starts[line]) | (before == delimiter)
    clean_close = (at + 1 == ends[line]) | (after == delimiter)
    if options.doubles_quotes:
        # A doubled quote is a closing quote with an opening one right behind it.
        clean_open |= (before == quote) & (ordinal > 0)
        clean_close |= after == quote
    odd[line[~np.where(opening, clean_open, clean_close)]] = True
    odd[line[opening & (np.append(line[1:], -1) != line)]] = True
    if options.trims:
        odd[line] = True
    if options.distinguishes_empty_values(pruned):
        empty = opening[:-1] & (at[1:] == at[:-1] + 1)
        odd[line[:-1][empty]] = True
    if options.doubles_quotes:
        # The tokenizer reads an empty value next to a doubled quote.
        tripled = (at[2:] == at[:-2] + 2) if len(at) > 2 else np.zeros(0, np.bool_)
        odd[line[: len(tripled)][tripled]] = True
    else:
        odd[_lines_with_escapes(raw, starts, line, ord(options.escape))] = True
    return odd


def _lines_with_escapes(
    raw: npt.NDArray[np.uint8], starts: Positions, quoted_lines: Positions, escape: int
) -> Positions:
    """Return those of the lines with quotes that also have an escape character."""
    escapes = np.flatnonzero(raw == escape)
    if not len(escapes):
        return escapes
    has_quote = np.zeros(len(starts), np.bool_)
    has_quote[quoted_lines] = True
    owner = np.maximum(np.searchsorted(starts, escapes, side="right") - 1, 0)
    lines: Positions = owner[has_quote[owner]]
    return lines


def _unquoted_separators(separators: Positions, at: Positions, starts: Positions) -> Positions:
    """Return the delimiters outside of quotes. Quotes are counted from the start of each line."""
    owner = np.maximum(np.searchsorted(starts, separators, side="right") - 1, 0)
    before = np.searchsorted(at, separators) - np.searchsorted(at, starts)[owner]
    outside: Positions = separators[before % 2 == 0]
    return outside
