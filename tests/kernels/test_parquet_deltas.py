"""The kernels decode delta-encoded integers and strings, and byte-stream-split values, of Parquet pages."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquery_spark.kernels.parquet_page_table import (
    AS_IN_ARROW,
    BODY,
    BYTE_STREAM_SPLIT,
    CONVERSION_SLACK,
    DATA,
    DELTA_BINARY_PACKED,
    DELTA_BYTE_ARRAY,
    DELTA_LENGTH_BYTE_ARRAY,
    ENCODING,
    KIND,
    MAX_CONVERTED_BYTES,
    PAGE_FIELDS,
    PLAIN,
    SIZE,
    VALUES,
)

_EVERY = np.ones(1, np.bool_)
_WORD = 1 << 64
_UNTOUCHED = 0xA5
EXAMPLE = bytes.fromhex("80 01 04 08 0E 03 02 00 00 00 C0 3F") + bytes(6)
"""The example in ``parquet_deltas.py``: 7, 5, 3, 1, 2, 3, 4, 5."""


def varint(number: int) -> bytes:
    """Encode an unsigned integer."""
    data = bytearray()
    while number >= 0x80:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])


def zigzag(number: int) -> bytes:
    """Encode a signed integer of 64 bits as a varint."""
    return varint((number << 1 ^ number >> 63) % _WORD)


def signed(number: int) -> int:
    """Return the signed integer with these 64 bits."""
    return (number + (_WORD >> 1)) % _WORD - (_WORD >> 1)


def encode(values: list[int], block: int = 128, miniblocks: int = 4) -> bytes:
    """Encode integers with DELTA_BINARY_PACKED; each miniblock has the least bit width that suffices."""
    data = varint(block) + varint(miniblocks) + varint(len(values)) + zigzag(values[0] if values else 0)
    differences = [signed((b - a) % _WORD) for a, b in pairwise(values)]
    size = block // miniblocks
    for start in range(0, len(differences), block):
        part = differences[start : start + block]
        least = min(part)
        numbers = [(d - least) % _WORD for d in part]
        chunks = [numbers[i : i + size] for i in range(0, block, size)]
        widths = [max(chunk, default=0).bit_length() for chunk in chunks]
        data += zigzag(least) + bytes(widths)
        for chunk, bits in zip(chunks, widths, strict=True):
            packed = sum(n << (i * bits) for i, n in enumerate(chunk))
            data += packed.to_bytes(size * bits // 8, "little") if chunk else b""
    return data


def page(data: bytes, encoding: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The bytes and the page table of a data page without levels, which follows other bytes."""
    before = b"\xff" * 5
    table = np.zeros((1, PAGE_FIELDS), np.int64)
    table[0, [KIND, VALUES, BODY, SIZE, ENCODING]] = DATA, count, len(before), len(data), encoding
    return np.frombuffer(before + data, np.uint8), table


def integers(
    kernels: ModuleType, data: bytes, count: int, dtype: str, encoding: int = DELTA_BINARY_PACKED
) -> list[int] | None:
    """Decode a page of integers; None if it is declined."""
    stored, table = page(data, encoding, count)
    width = np.dtype(dtype).itemsize
    room = len(stored) + count * width + CONVERSION_SLACK
    memory = np.full(room + 64, _UNTOUCHED, np.uint8)
    out = memory[:room]
    is_sound = kernels.convert_pages(stored, table, _EVERY, False, AS_IN_ARROW, width, width, out)
    assert (memory[room:] == _UNTOUCHED).all()
    if not is_sound:
        return None
    assert table[0, ENCODING] == PLAIN and table[0, SIZE] == count * width
    begin = table[0, BODY]
    return out[begin : begin + count * width].view(dtype).tolist()


def strings(
    kernels: ModuleType, data: bytes, count: int, encoding: int, stored: int = 0
) -> list[bytes] | None:
    """Decode a page of strings; None if it is declined."""
    raw, table = page(data, encoding, count)
    is_sound, out = kernels.plain_strings(raw, table, _EVERY, False, stored)
    if not is_sound:
        return None
    assert table[0, ENCODING] == PLAIN and table[0, SIZE] == len(out)
    plain, found = out.tobytes(), []
    while plain:
        size = stored or int.from_bytes(plain[:4], "little")
        plain = plain if stored else plain[4:]
        found.append(plain[:size])
        plain = plain[size:]
    return found


def with_shared_bytes(values: list[bytes], longest: int = 1 << 30) -> bytes:
    """Encode strings with DELTA_BYTE_ARRAY. longest: the largest number of bytes that a string shares with another."""
    heads = [0]
    for before, value in pairwise(values):
        same = 0
        while same < min(len(before), len(value), longest) and before[same] == value[same]:
            same += 1
        heads.append(same)
    own = [value[head:] for value, head in zip(values, heads, strict=False)]
    return encode(heads[: len(values)]) + encode(list(map(len, own))) + b"".join(own)


def test_the_example_of_the_documentation(kernels):
    assert integers(kernels, EXAMPLE, 8, "i4") == [7, 5, 3, 1, 2, 3, 4, 5]
    assert encode([7, 5, 3, 1, 2, 3, 4, 5]) == EXAMPLE


@settings(max_examples=200)
@given(data=st.data())
def test_integers_of_all_widths_are_decoded(kernels, data):
    bits = data.draw(st.integers(0, 63))
    number = st.integers(-(1 << bits), (1 << bits) - 1)
    runs = data.draw(st.lists(st.tuples(number, st.integers(1, 70)), min_size=1, max_size=30))
    values = [value for value, times in runs for _ in range(times)]
    miniblocks = data.draw(st.sampled_from([1, 2, 3, 4, 8]))
    block = miniblocks * 32 * data.draw(st.integers(1, 4))
    encoded = encode(values, block, miniblocks)
    for tail in (b"", b"\xff" * 20):
        assert integers(kernels, encoded + tail, len(values), "i8") == values
        if bits < 31:  # as differences of 32-bit integers
            assert integers(kernels, encoded + tail, len(values), "i4") == values


@pytest.mark.parametrize("bits", range(65))
def test_each_bit_width_is_unpacked(kernels, bits):
    rng = np.random.default_rng(bits)
    packed = [int.from_bytes(rng.bytes(8), "little") % (1 << bits) for _ in range(256)]
    data = varint(256) + varint(1) + varint(257) + zigzag(-5) + zigzag(3) + bytes([bits])
    data += sum(n << (i * bits) for i, n in enumerate(packed)).to_bytes(32 * bits, "little")
    expected = [-5]
    for number in packed:
        expected.append(signed((expected[-1] + number + 3) % _WORD))
    for tail in range(20):
        assert integers(kernels, data + bytes(tail), 257, "i8") == expected
    narrow = integers(kernels, data, 257, "i4")
    if bits > 32:
        assert narrow is None
    else:
        assert narrow == np.array(expected).astype(np.int32).tolist()


def test_sums_wrap_around(kernels):
    ends = [(1 << 63) - 1, -(1 << 63), 0, -1, (1 << 63) - 1, -(1 << 63)]
    assert integers(kernels, encode(ends), len(ends), "i8") == ends
    data = varint(128) + varint(4) + varint(2) + zigzag((1 << 31) - 1) + zigzag(1) + bytes(4)
    assert integers(kernels, data, 2, "i4") == [(1 << 31) - 1, -(1 << 31)]


def test_truncated_integers_are_declined(kernels):
    rng = np.random.default_rng(2)
    values = rng.integers(-(1 << 40), 1 << 40, 300).tolist()
    encoded = encode(values)
    for size in range(len(encoded)):
        assert integers(kernels, encoded[:size], 300, "i8") is None
    for size in range(1, len(EXAMPLE)):
        assert integers(kernels, EXAMPLE[:size], 8, "i4") is None


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (varint(128) + varint(4) + varint(9) + zigzag(7), "another number of values"),
        (varint(128) + varint(4) + varint(0) + zigzag(7), "no values"),
        (varint(128) + varint(0) + varint(8) + zigzag(7), "no miniblocks"),
        (varint(0) + varint(4) + varint(8) + zigzag(7), "empty blocks"),
        (varint(128) + varint(3) + varint(8) + zigzag(7), "miniblocks of a fraction"),
        (varint(64) + varint(4) + varint(8) + zigzag(7), "miniblocks of 16 values"),
        (varint(1 << 40) + varint(4) + varint(8) + zigzag(7), "blocks that are too large"),
        (varint(128) + varint(1 << 62) + varint(8) + zigzag(7), "too many miniblocks"),
        (b"\xff" * 10 + varint(4) + varint(8) + zigzag(7), "a varint of ten bytes"),
    ],
)
def test_malformed_headers_are_declined(kernels, header, problem):
    assert integers(kernels, header + EXAMPLE[5:] + bytes(300), 8, "i4") is None, problem


def test_too_wide_integers_are_declined(kernels):
    for width, dtype in ((33, "i4"), (65, "i8"), (255, "i8")):
        data = EXAMPLE[:6] + bytes([width, 0, 0, 0]) + bytes(2000)
        assert integers(kernels, data, 8, dtype) is None
    assert integers(kernels, EXAMPLE[:7] + b"\xff\xff\xff" + EXAMPLE[10:], 8, "i4") is not None  # not used


@settings(max_examples=100)
@given(
    values=st.lists(
        st.binary(max_size=90) | st.sampled_from([b"", b"ab" * 40, b"ab" * 39 + b"c"]), min_size=1
    )
)
def test_strings_are_decoded(kernels, values):
    lengths = encode(list(map(len, values))) + b"".join(values)
    assert strings(kernels, lengths, len(values), DELTA_LENGTH_BYTE_ARRAY) == values
    for longest in (0, 3, 1 << 30):
        shared = with_shared_bytes(values, longest)
        assert strings(kernels, shared, len(values), DELTA_BYTE_ARRAY) == values


def test_strings_of_a_fixed_number_of_bytes_have_no_lengths(kernels):
    values = [b"abcd", b"abxy", b"abxy", b"zzzz"]
    assert strings(kernels, with_shared_bytes(values), 4, DELTA_BYTE_ARRAY, stored=4) == values
    for other in (3, 5):
        assert strings(kernels, with_shared_bytes(values), 4, DELTA_BYTE_ARRAY, stored=other) is None


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (encode([2, -1]) + b"abc", DELTA_LENGTH_BYTE_ARRAY),
        (encode([2, 2]) + b"abc", DELTA_LENGTH_BYTE_ARRAY),
        (encode([2, (1 << 31) - 1]) + b"abc", DELTA_LENGTH_BYTE_ARRAY),
        (encode([2]) + b"abc", DELTA_LENGTH_BYTE_ARRAY),
        (encode([1, 0]) + encode([1, 1]) + b"ab", DELTA_BYTE_ARRAY),
        (encode([0, 2]) + encode([1, 1]) + b"ab", DELTA_BYTE_ARRAY),
        (encode([0, -1]) + encode([1, 1]) + b"ab", DELTA_BYTE_ARRAY),
        (encode([0, 1]) + encode([1, -1]) + b"ab", DELTA_BYTE_ARRAY),
        (encode([0, 1]) + encode([1]) + b"ab", DELTA_BYTE_ARRAY),
        (encode([0, 1]), DELTA_BYTE_ARRAY),
    ],
)
def test_malformed_lengths_are_declined(kernels, data, encoding):
    assert strings(kernels, data, 2, encoding) is None


def test_pages_that_expand_are_decoded_up_to_a_limit(kernels):
    long = b"0123456789abcdef" * 4096
    count = MAX_CONVERTED_BYTES // len(long)
    for repeats in (500, count):
        data = encode([0, *[len(long)] * (repeats - 1)]) + encode([len(long), *[0] * (repeats - 1)]) + long
        found = strings(kernels, data, repeats, DELTA_BYTE_ARRAY)
        assert found == ([long] * repeats if repeats < count else None)


@pytest.mark.parametrize("dtype", ["i4", "i8"])
@pytest.mark.parametrize("count", [1, 3, 4, 7, 8, 9, 100])
def test_byte_streams_are_joined(kernels, dtype, count):
    values = np.arange(1, count + 1).astype(dtype) * 0x01030507
    data = values.view(np.uint8).reshape(count, -1).T.tobytes()
    assert integers(kernels, data, count, dtype, BYTE_STREAM_SPLIT) == values.tolist()
    for other in (data[:-1], data + b"\0"):
        assert integers(kernels, other, count, dtype, BYTE_STREAM_SPLIT) is None
