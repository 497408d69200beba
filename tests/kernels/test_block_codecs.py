"""The kernel decompresses Snappy and LZ4 blocks like pyarrow, detects damage, and never writes outside of its output."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquery_spark.kernels.parquet_page_table import (
    BODY,
    COMPRESSED,
    DATA,
    DATA_V2,
    KIND,
    LEVEL_BYTES,
    LZ4,
    PAGE_FIELDS,
    RAW_SIZE,
    SIZE,
    SNAPPY,
)

_UNTOUCHED = 0xA5
CODECS = {"snappy": SNAPPY, "lz4_raw": LZ4}


def decompress(kernels: ModuleType, stored: bytes, raw_size: int, codec: int = SNAPPY) -> bytes | None:
    """Decompress one block that follows other bytes of a chunk; None for a damaged block. Other bytes must not change."""
    before = 5
    data = np.frombuffer(b"\x01" * before + stored, np.uint8)
    page = np.zeros((1, PAGE_FIELDS), np.int64)
    page[0, [BODY, SIZE, RAW_SIZE, COMPRESSED]] = before, len(stored), raw_size, 1
    output_size = raw_size + kernels.PADDING
    memory = np.full(output_size + 64, _UNTOUCHED, np.uint8)
    is_sound = kernels.decompress_pages(codec, data, page, np.ones(1, np.bool_), memory[:output_size])
    assert (memory[output_size:] == _UNTOUCHED).all()
    return memory[:raw_size].tobytes() if is_sound else None


def decompress_with_pyarrow(stored: bytes, raw_size: int) -> bytes | None:
    """Return the bytes that pyarrow returns; None for a damaged block, or one that declares another size."""
    declared = shift = 0
    for byte in stored:
        declared |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if declared != raw_size:
        return None
    try:
        return bytes(pa.decompress(stored, raw_size, codec="snappy", asbytes=True))
    except OSError:
        return None


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ("08 04 61 62 09 02", b"abababab"),
        ("05 10 61 62 63 64 65", b"abcde"),
        ("05 F0 04 61 62 63 64 65", b"abcde"),  # the size of a literal in one, two, three, and four bytes
        ("05 F4 04 00 61 62 63 64 65", b"abcde"),
        ("05 F8 04 00 00 61 62 63 64 65", b"abcde"),
        ("05 FC 04 00 00 00 61 62 63 64 65", b"abcde"),
        ("06 00 61 11 01", None),  # a copy beyond the raw size
        ("05 00 61 01 01", b"aaaaa"),
        ("05 00 61 0E 01 00", b"aaaaa"),  # the offset of a copy in two and in four bytes
        ("05 00 61 0F 01 00 00 00", b"aaaaa"),
        ("05 00 61 0E 02 00", None),  # an offset before the first byte
        ("05 00 61 0E 00 00", None),
        ("05 00 61 0F 01 00 00", None),  # a truncated offset
        ("05 10 61 62 63 64", None),  # a truncated literal
        ("05 FC FF FF FF FF 61 62", None),
        ("06 10 61 62 63 64 65", None),  # fewer bytes than declared
        ("05 10 61 62 63 64 65 00", None),  # bytes after the end
        ("", None),
    ],
)
def test_literals_and_copies(kernels: ModuleType, stored: str, expected: bytes | None):
    block = bytes.fromhex(stored)
    size = block[0] if block else 5
    assert decompress(kernels, block, size) == expected
    assert expected is None or decompress_with_pyarrow(block, size) == expected


def block_of(elements: list[tuple[int, bytes, int, int]]) -> tuple[bytes, bytes]:
    """Encode elements as a Snappy block; returns the block and its raw bytes. An element: kind, literal, offset, and size."""
    stored, raw = bytearray(), bytearray()
    # the block begins with a literal, because a copy needs bytes before it
    for kind, literal, offset, size in [(0, b"0123456789", 0, 0), *elements]:
        if kind == 0:
            short = len(literal) <= 60
            stored += bytes([(len(literal) - 1) << 2] if short else [60 << 2, len(literal) - 1]) + literal
            raw += literal
            continue
        offset = min(offset, len(raw))
        if kind == 1:
            size = 4 + size % 8
            stored += bytes([(offset >> 8) << 5 | (size - 4) << 2 | 1, offset & 0xFF])
        else:
            stored += bytes([(size - 1) << 2 | kind]) + offset.to_bytes(2 if kind == 2 else 4, "little")
        for _ in range(size):
            raw.append(raw[-offset])
    declared = bytes([len(raw) & 0x7F | 0x80, len(raw) >> 7])
    return declared + bytes(stored), bytes(raw)


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.binary(min_size=1, max_size=70), st.integers(1, 2047), st.integers(1, 64)
        ),
        max_size=120,
    )
)
def test_elements_in_any_order_are_decompressed(
    kernels: ModuleType, elements: list[tuple[int, bytes, int, int]]
):
    """Snappy's own compressor writes no literal after a literal, and few copies with an offset of four bytes."""
    stored, raw = block_of(elements)
    assert decompress(kernels, stored, len(raw)) == raw
    assert decompress_with_pyarrow(stored, len(raw)) == raw


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.binary(min_size=1, max_size=4),
            st.integers(1, 2),
            st.one_of(st.integers(1, 24), st.integers(1, 2047)),
            st.integers(1, 18),
        ),
        min_size=20,
        max_size=200,
    )
)
def test_pairs_of_a_short_literal_and_a_copy_are_decompressed(
    kernels: ModuleType, pairs: list[tuple[bytes, int, int, int]]
):
    """Columns of 64-bit integers consist of such pairs, which have a loop of their own."""
    elements = [
        element for literal, *copy in pairs for element in ((0, literal, 0, 0), (copy[0], b"", *copy[1:]))
    ]
    stored, raw = block_of(elements)
    assert decompress(kernels, stored, len(raw)) == raw
    assert decompress_with_pyarrow(stored, len(raw)) == raw


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ("50 61 62 63 64 65", b"abcde"),
        ("26 61 62 02 00 50 63 64 65 66 67", b"abababababab" + b"cdefg"),
        ("F0 01" + " 61" * 16, b"a" * 16),  # a literal with a long size, and a copy with one
        ("1F 61 01 00 01 50 62 63 64 65 66", b"a" * 21 + b"bcdef"),
        ("1F 61 01 00 FF 00 50 62 63 64 65 66", b"a" * 275 + b"bcdef"),
        ("26 61 62 03 00 50 63 64 65 66 67", None),  # an offset before the first byte, and an offset of zero
        ("26 61 62 00 00 50 63 64 65 66 67", None),
        ("25 61 62 02 00 50 63 64 65 66 67", None),  # one raw byte less than expected
        ("27 61 62 02 00 50 63 64 65 66 67", None),
        ("26 61 62 02 00 50 63 64 65 66 67 00", None),  # bytes after the end
        ("26 61 62 02 00 50 63 64 65 66", None),  # a truncated literal
        ("26 61 62 02 00", None),  # a copy at the end
        ("26 61 62 02 00 40 63 64 65 66", None),  # a last literal of four bytes
        ("F0", None),
        ("F0 FF", None),
        ("", None),
    ],
)
def test_sequences_of_lz4(kernels: ModuleType, stored: str, expected: bytes | None):
    block = bytes.fromhex(stored)
    size = 17 if expected is None else len(expected)
    assert decompress(kernels, block, size, LZ4) == expected
    assert expected is None or bytes(pa.decompress(block, size, codec="lz4_raw", asbytes=True)) == expected


def damaged_blocks(codec: str, data: bytes, random: np.random.Generator) -> Iterator[bytes]:
    """5,000 compressed blocks of ``data``, with up to three bytes changed; a fifth of them is also truncated."""
    stored = pa.compress(data, codec, asbytes=True)
    for _ in range(5_000):
        damaged = bytearray(stored)
        for at in random.integers(0, len(damaged), random.integers(1, 4)):
            damaged[at] = random.integers(0, 256)
        if random.random() < 0.2:
            del damaged[random.integers(0, len(damaged)) :]
        yield bytes(damaged)


def repetitive_bytes(random: np.random.Generator) -> bytes:
    return b"".join(random.bytes(int(n)) * 3 for n in random.integers(1, 30, 40)) + bytes(500)


def test_damaged_blocks_of_lz4_are_refused_or_give_the_bytes_of_pyarrow(kernels: ModuleType):
    """pyarrow also accepts blocks that are too short, and copies with an offset of zero; the kernel refuses both."""
    random = np.random.default_rng(4)
    data = repetitive_bytes(random)
    accepted = 0
    for damaged in damaged_blocks("lz4_raw", data, random):
        found = decompress(kernels, damaged, len(data), LZ4)
        if found is not None:
            assert found == pa.decompress(damaged, len(data), codec="lz4_raw", asbytes=True)
        accepted += found is not None
    assert 500 < accepted < 4_000


@settings(max_examples=300)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=200),
            st.tuples(st.binary(min_size=1, max_size=12), st.integers(1, 40)).map(lambda p: p[0] * p[1]),
            st.lists(st.integers(0, 1 << 20), max_size=50).map(lambda n: np.array(n, np.int64).tobytes()),
        ),
        max_size=12,
    )
)
def test_any_bytes_are_decompressed(kernels: ModuleType, parts: list[bytes]):
    data = b"".join(parts)
    for name, codec in CODECS.items():
        stored = pa.compress(data, name, asbytes=True)
        if data:  # pages without bytes are not decompressed
            assert decompress(kernels, stored, len(data), codec) == data
        assert decompress(kernels, stored, len(data) + 1, codec) is None


def test_large_blocks_are_decompressed(kernels: ModuleType):
    random = np.random.default_rng(2)
    for data in (
        np.sort(random.integers(0, 1 << 24, 200_000)).tobytes(),
        random.bytes(300_000),
        b"".join(random.bytes(7) * int(n) for n in random.integers(1, 40, 3_000)),
    ):
        for name, codec in CODECS.items():
            assert decompress(kernels, pa.compress(data, name, asbytes=True), len(data), codec) == data


def test_blocks_that_alternate_between_integers_and_strings(kernels: ModuleType):
    """The loops for both take turns, and the last bytes, which neither reads in whole blocks, have any length."""
    random = np.random.default_rng(6)
    words = [random.bytes(int(n)) for n in random.integers(2, 12, 50)]
    parts = []
    for size in (10_000, 300, 70, 5_000):
        parts.append(random.integers(0, 1 << 20, size // 8).astype(np.int64).tobytes())
        parts.append(b" ".join(words[int(i)] for i in random.integers(0, 50, size // 8)))
    data = b"".join(parts)
    for start in range(0, 200, 7):
        for end in range(len(data) - 150, len(data), 11):
            part = data[start:end]
            assert decompress(kernels, pa.compress(part, "snappy", asbytes=True), len(part)) == part


@pytest.mark.parametrize("kind", ["repetitive", "integers"])
def test_damaged_blocks_give_the_same_result_as_in_pyarrow(kernels: ModuleType, kind: str):
    random = np.random.default_rng(3)
    integers = random.integers(0, 1 << 24, 200).astype(np.int64).tobytes()
    data = integers if kind == "integers" else repetitive_bytes(random)
    rejected = 0
    for damaged in damaged_blocks("snappy", data, random):
        actual = decompress(kernels, damaged, len(data))
        assert actual == decompress_with_pyarrow(damaged, len(data))
        rejected += actual is None
    assert 1_000 < rejected < 5_000


@pytest.mark.parametrize(("name", "codec"), CODECS.items())
def test_the_pages_that_are_needed_are_decompressed_one_after_the_other(
    kernels: ModuleType, name: str, codec: int
):
    parts = [b"first " * 30, b"second " * 30, b"levels" + b"values " * 30, b"stored as it is"]
    stored = [pa.compress(parts[0], name, asbytes=True), pa.compress(parts[1], name, asbytes=True)]
    stored += [parts[2][:6] + pa.compress(parts[2][6:], name, asbytes=True), parts[3]]
    pages = np.zeros((4, PAGE_FIELDS), np.int64)
    pages[:, BODY] = np.cumsum([0, *map(len, stored[:3])])
    pages[:, SIZE], pages[:, RAW_SIZE] = list(map(len, stored)), list(map(len, parts))
    pages[:, KIND], pages[2, [KIND, LEVEL_BYTES]], pages[:3, COMPRESSED] = DATA, (DATA_V2, 6), 1
    data = np.frombuffer(b"".join(stored), np.uint8)
    table, is_needed = pages.copy(), np.array([True, False, True, True])
    size = sum(len(p) for p, needed in zip(parts, is_needed, strict=True) if needed)
    out = np.empty(size + kernels.PADDING, np.uint8)
    assert kernels.decompress_pages(codec, data, table, is_needed, out)
    assert out[:size].tobytes() == parts[0] + parts[2] + parts[3]
    assert table[:, BODY].tolist() == [0, len(parts[0]), len(parts[0]), len(parts[0]) + len(parts[2])]
    assert table[:, SIZE].tolist() == [len(parts[0]), 0, len(parts[2]), len(parts[3])]
    for column, value in ((SIZE, len(data) + 1), (BODY, -1), (RAW_SIZE, size), (LEVEL_BYTES, 10_000)):
        wrong = pages.copy()
        wrong[2, column] = value
        assert not kernels.decompress_pages(codec, data, wrong, is_needed, out), column
    assert not kernels.decompress_pages(codec, data, pages.copy(), is_needed, out[:-1])
