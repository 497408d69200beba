"""Roaring bitmaps: the numbers that CRoaring wrote, and errors for everything else."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from kquery_spark.kernels.roaring import read_positions

NUMBERS = {
    "none": [],
    "one": [0],
    "an array": [1, 5, 65_535],
    "several containers": [3, 65_536, 200_000, 1 << 31],
    "above 32 bits": [7, 1 << 32, (1 << 33) + 5, (1 << 40) + 9],
    "a bitmap": list(range(0, 60_000, 3)),
    "a full container": list(range(65_536)),
    "runs": [*range(10, 500), *range(70_000, 90_000), *range(1 << 32, (1 << 32) + 70_000)],
}


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
def test_the_numbers_are_read(numbers, optimized):
    bitmap = BitMap64(numbers)
    if optimized:
        bitmap.run_optimize()
    positions = read_positions(bitmap.serialize())
    assert positions.dtype == np.int64
    assert positions.tolist() == numbers


@settings(max_examples=200)
@given(st.sets(st.one_of(st.integers(0, 70_000), st.integers(0, 1 << 34)), max_size=200), st.booleans())
def test_any_numbers_are_read(numbers, optimized):
    bitmap = BitMap64(numbers)
    if optimized:
        bitmap.run_optimize()
    assert read_positions(bitmap.serialize()).tolist() == sorted(numbers)


@settings(max_examples=500)
@given(st.data())
def test_damaged_bytes_are_an_error_or_other_numbers_in_order(data):
    whole = bytearray(BitMap64([1, 2, 3, *range(70_000, 75_000), 1 << 32]).serialize())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole
    try:
        positions = read_positions(bytes(cut))
    except ValueError:
        return
    assert (np.diff(positions) > 0).all()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "ends after 0 bytes"),
        (struct.pack("<QI", 1, 0), "ends after 12 bytes"),
        (struct.pack("<QII", 1, 0, 99), "begins with the cookie 99"),
        (struct.pack("<QIII", 1, 0, 12346, 1 << 17), "131,072 containers"),
        (BitMap64([1]).serialize() + b"x", "after the last bitmap"),
        (
            struct.pack("<Q", 2) + 2 * BitMap64([1]).serialize()[8:],
            "the bitmaps are not in ascending order",
        ),
        (
            struct.pack("<QIIIHHI", 1, 0, 12346, 1, 0, 1, 16) + struct.pack("<HH", 5, 5),
            "2 numbers in ascending order",
        ),
    ],
)
def test_what_is_no_bitmap_is_an_error(data, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_positions(data)
