"""The kernels decode runs of definition levels and dictionary indices of Parquet pages, and detect malformed runs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquery_spark.kernels.parquet_page_table import (
    BODY,
    DATA,
    ENTRIES,
    FIRST_ENTRY,
    KIND,
    PAGE_FIELDS,
    SIZE,
    VALUES,
)

MAX_ENTRIES = 2**16 - 1  # indices have 16 bits, and the one after the last entry stands for NULL


def encode(values: list[int], width: int, packed: list[bool]) -> bytes:
    """Encode integers in Parquet's hybrid of bit-packed runs (of eight integers) and repeated values.

    packed: whether each run is bit-packed; the items are used in turn, again from the first after the last.
    """
    data = bytearray()
    at = run_number = 0
    while at < len(values):
        if packed[run_number % len(packed)]:
            run = values[at : at + 8]
            at += len(run)
            run += [0] * (8 - len(run))
            data.append(1 << 1 | 1)
            data += sum(v << (i * width) for i, v in enumerate(run)).to_bytes(width, "little")
        else:
            end = at
            while end < len(values) and values[end] == values[at]:
                end += 1
            header = (end - at) << 1
            while header >= 0x80:
                data.append(header & 0x7F | 0x80)
                header >>= 7
            data.append(header)
            data += values[at].to_bytes((width + 7) // 8, "little")
            at = end
        run_number += 1
    return bytes(data)


def page_table(
    starts: np.ndarray, sizes: np.ndarray, counts: np.ndarray, firsts: list[int], entries: int
) -> np.ndarray:
    """Return the page table of uncompressed data pages of version 1. firsts: where the dictionary of each page begins."""
    pages = np.zeros((len(starts), PAGE_FIELDS), np.int64)
    pages[:, KIND], pages[:, BODY], pages[:, SIZE], pages[:, VALUES] = DATA, starts, sizes, counts
    pages[:, FIRST_ENTRY], pages[:, ENTRIES] = firsts, entries
    return pages


@st.composite
def page_rows(draw: st.DrawFn, width: int) -> list[int | None]:
    """Draw the dictionary index of each row of a page; None for NULL."""
    run = st.tuples(st.integers(0, 2**width - 1), st.integers(1, 30))
    runs = draw(st.lists(run, min_size=1, max_size=20))
    nulls = draw(st.lists(st.booleans(), min_size=1, max_size=9))
    indices = [index for index, times in runs for _ in range(times)][::-1]
    rows: list[int | None] = []
    while indices:
        is_null = nulls[len(rows) % len(nulls)] and len(rows) % 3 != 0
        rows.append(None if is_null else indices.pop())
    return rows


def page_bytes(rows: list[int | None], width: int, packed: list[bool]) -> bytes:
    """Return the bytes of a data page: the length and runs of the levels, the bit width, and the runs of the indices."""
    levels = encode([int(index is not None) for index in rows], 1, packed)
    indices = encode([index for index in rows if index is not None], width, packed)
    return len(levels).to_bytes(4, "little") + levels + bytes([width]) + indices


@given(st.data())
@settings(max_examples=150)
def test_any_runs_of_levels_and_indices_are_decoded(kernels, data):
    width = data.draw(st.integers(0, 16))
    pages = data.draw(st.lists(page_rows(width), min_size=1, max_size=3))
    packed = st.lists(st.booleans(), min_size=1, max_size=5)
    parts = [page_bytes(rows, width, data.draw(packed)) for rows in pages]
    indices = [index for rows in pages for index in rows]
    # the dictionary of each page begins somewhere in the concatenated dictionaries
    firsts = [data.draw(st.integers(0, 40)) for _ in pages]
    own_entries = min(2**width, MAX_ENTRIES - 80)
    entries = max(firsts) + own_entries + data.draw(st.integers(0, 40))
    is_bad = [index is not None and index >= own_entries for index in indices]
    first_of_row = [first for first, rows in zip(firsts, pages, strict=True) for _ in rows]
    expected = [
        entries if index is None else first + index
        for first, index in zip(first_of_row, indices, strict=True)
    ]

    stored = np.frombuffer(b"".join(parts), np.uint8)
    bounds, counts = np.cumsum([0, *map(len, parts)]), np.array(list(map(len, pages)))
    table = page_table(bounds[:-1], np.diff(bounds), counts, firsts, own_entries)
    chunk = stored, table, True
    out = np.empty(len(indices), np.uint16)
    nulls = kernels.decode_indices(*chunk, entries, out)
    assert nulls == (-1 if any(is_bad) else indices.count(None))
    assert any(is_bad) or out.tolist() == expected

    flags = np.resize(
        np.array(data.draw(st.lists(st.booleans(), min_size=1, max_size=30)), np.uint8), entries + 1
    )
    matches = np.empty(len(indices) + 1, np.int64)
    hits = kernels.filter_chunk(*chunk, flags, matches)
    if any(is_bad):
        assert hits == -1
    else:
        assert matches[:hits].tolist() == [row for row, index in enumerate(expected) if flags[index]]

    beyond = table.copy()
    beyond[-1, FIRST_ENTRY] = entries - own_entries + 1
    assert kernels.decode_indices(stored, beyond, True, entries, out) == -1
    assert kernels.filter_chunk(stored, beyond, True, flags, matches) == -1

    chosen = data.draw(st.lists(st.integers(0, len(indices) - 1), unique=True, max_size=20))
    rows = np.array(sorted(chosen), np.int64)
    selected = np.empty(len(rows), np.uint16)
    status = kernels.decode_selected_indices(*chunk, entries, rows, selected)
    assert status == (-1 if any(is_bad[row] for row in rows) else 0)
    assert status == -1 or selected.tolist() == [expected[row] for row in rows]

    # cut anywhere: the kernels return a result or -1, but do not read past the end
    for end in data.draw(st.lists(st.integers(0, len(stored) - 1), max_size=5)):
        cut = stored[:end], page_table(np.array([0]), np.array([end]), counts[:1], [0], entries), True
        inside = rows[rows < counts[0]]
        assert kernels.decode_indices(*cut, entries, out[: counts[0]]) >= -1
        assert kernels.filter_chunk(*cut, flags, matches) >= -1
        assert kernels.decode_selected_indices(*cut, entries, inside, selected[: len(inside)]) in (0, -1)


@pytest.mark.parametrize(("header", "is_sound"), [(0x05, True), (0x07, False)])
def test_an_incomplete_packed_run_is_malformed(header: int, is_sound: bool) -> None:
    """Spark and pyarrow refuse a run whose bytes end early, even if the missing values belong to no row."""
    from kquery_spark.kernels.loops.parquet_levels import unpack_flags
    from kquery_spark.kernels.loops.parquet_runs import unpack_indices

    # two groups of eight ones, or three groups without the last byte
    data = np.array([header, 0xFF, 0xFF], np.uint8)
    start, end, one_bit, entries = np.uint64(0), np.uint64(3), np.uint64(1), np.uint64(2)
    ones = unpack_flags(data, start, end, np.empty(16, np.uint8))
    indices = np.empty(16, np.uint32)
    assert unpack_indices(data, start, end, one_bit, entries, indices) == is_sound
    assert ones == (16 if is_sound else -1)
    assert not is_sound or indices.tolist() == [1] * 16
