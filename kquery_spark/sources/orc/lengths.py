"""Checks the lengths of strings, lists and maps before pyarrow reads them.

ORC's C++ library adds the lengths up and uses the sums as memory offsets. It reads a damaged, negative length as a huge
unsigned one, which crashes the process. So this module computes an upper bound of the sum of the lengths in each run.

The lengths are run-length encoded (ORC's specification, "Run Length Encoding"). The header of a run states the number of
values and their width in bits, which bounds their sum, so almost no run has to be unpacked. Example: the run

    5e 03 5c a1 ab 1e de ad be ef

encodes 23713, 43806, 57005, 48879. The first byte is 01 01111 0 in binary: encoding 1 (direct), width code 15, which is 16
bits, and the high bit 0 of the number of values minus 1. The second byte has its low bits, 3, so there are 4 values. They
take 4 * 16 / 8 = 8 bytes, so the run ends after 10 bytes. Each value is less than 2^16, so the sum is less than
4 * 2^16 = 262,144, which is below MAX_SUM: the run is valid, whatever its values are.

The other encodings of version 2: short repeat (one value, 3 to 10 times), delta (a base, then differences of one sign), and
patched base (small values above a base, and a list of extra high bits for outliers). Version 1 has only runs with a constant
step and lists of varints.
"""

from __future__ import annotations

import numpy as np

MAX_SUM = 1 << 31
"""The largest sum of the lengths in one run, as Arrow's offsets have 32 bits."""

_SHORT_REPEAT, _DIRECT, _PATCHED_BASE = 0, 1, 2
_MIN_REPEAT = 3
_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
_MAX_WIDTH = 32


def check_lengths(data: bytes, *, is_version_1: bool) -> None:
    """Check the runs of unsigned integers in a stream; raises ValueError if one is damaged."""
    at = 0
    try:
        while at < len(data):
            at, bound = _version_1_run(data, at) if is_version_1 else _version_2_run(data, at)
            if bound > MAX_SUM:
                raise ValueError(f"its lengths add up to {bound}")
    except IndexError:
        raise ValueError("its lengths end within a run") from None


# Each of the following functions returns the end of the run that begins at `at`, and an upper bound of its values' sum.


def _version_2_run(data: bytes, at: int) -> tuple[int, int]:
    """Bound a run of version 2, by its encoding."""
    kind, code = data[at] >> 6, data[at] >> 1 & 31
    if kind == _SHORT_REPEAT:
        width, count = (data[at] >> 3 & 7) + 1, (data[at] & 7) + _MIN_REPEAT
        return at + 1 + width, count * int.from_bytes(data[at + 1 : at + 1 + width], "big")
    count = ((data[at] & 1) << 8 | data[at + 1]) + 1
    if kind == _DIRECT:
        return _bit_packed_values(data, at + 2, _WIDTHS[code], count)
    if kind == _PATCHED_BASE:
        return _patched_run(data, at, _WIDTHS[code], count)
    return _delta_run(data, at + 2, _WIDTHS[code] if code else 0, count)


def _bit_packed_values(data: bytes, at: int, width: int, count: int) -> tuple[int, int]:
    """Bound ``count`` bit-packed values of ``width`` bits. They are unpacked only if the bound exceeds the limit."""
    if width > _MAX_WIDTH:
        raise ValueError(f"its lengths have {width} bits")
    end = at + (width * count + 7) // 8
    bound = count << width
    if bound > MAX_SUM:
        bits = np.unpackbits(np.frombuffer(data[at:end], np.uint8))[: width * count].astype(np.int64)
        if len(bits) < width * count:
            raise IndexError
        bound = int((bits.reshape(count, width) << np.arange(width - 1, -1, -1)).sum())
    return end, bound


def _patched_run(data: bytes, at: int, width: int, count: int) -> tuple[int, int]:
    """Bound a run of small values above a base, where a list of patches adds high bits to some values.

    Example: 2030, 2000, 2020, 1000000 has the base 2000 and the 8-bit values 30, 0, 20, 112; a patch adds the high bits of
    998000 = 3898 * 2^8 + 112.
    """
    base_bytes, patch_width = (data[at + 2] >> 5) + 1, _WIDTHS[data[at + 2] & 31]
    gap_width, patches = (data[at + 3] >> 5) + 1, data[at + 3] & 31
    base = int.from_bytes(data[at + 4 : at + 4 + base_bytes], "big")
    if base >> (8 * base_bytes - 1):
        raise ValueError("a length is negative")
    if width + patch_width > _MAX_WIDTH:
        raise ValueError(f"its lengths have {width + patch_width} bits")
    entry = next(w for w in _WIDTHS if w >= patch_width + gap_width)
    end, bound = _bit_packed_values(data, at + 4 + base_bytes, width, count)
    return end + (entry * patches + 7) // 8, bound + count * base + (patches << (width + patch_width))


def _delta_run(data: bytes, at: int, width: int, count: int) -> tuple[int, int]:
    """Bound a run of values that only rise or only fall.

    It has the first value, the first (signed) difference, and the other differences as unsigned values of ``width`` bits
    with the same sign; width 0 means that all differences equal the first. Example: 2, 3, 5, 7, 11 has the base 2, the first
    difference 1, and then 2, 2, 4.
    """
    base, at = _varint(data, at)
    zigzag, at = _varint(data, at)
    first = zigzag >> 1 ^ -(zigzag & 1)
    if width:
        end, later_differences = _bit_packed_values(data, at, width, max(count - 2, 0))
        total = first + (later_differences if first >= 0 else -later_differences)
    else:
        end, total = at, first * (count - 1)
    if base + total < 0 and first < 0:
        # The bound allows a negative last value, so compute it exactly.
        return end, _falling_bound(data, at, base, first, width, count)
    return end, count * max(base, base + total)


def _falling_bound(data: bytes, at: int, base: int, first: int, width: int, count: int) -> int:
    """Return the bound of a falling run from its unpacked differences; raises ValueError if a value is negative."""
    if width:
        bits = np.unpackbits(np.frombuffer(data[at : at + (width * (count - 2) + 7) // 8], np.uint8))
        steps = bits[: width * (count - 2)].astype(np.int64).reshape(-1, width) << np.arange(
            width - 1, -1, -1
        )
        if base + first - int(steps.sum()) >= 0:
            return count * base
    raise ValueError("a length is negative")


def _version_1_run(data: bytes, at: int) -> tuple[int, int]:
    """Bound a run of version 1, which Hive 0.11 wrote: a first value with a constant step, or a list of varints."""
    control = data[at]
    if control < 128:
        count, step = control + _MIN_REPEAT, data[at + 1] - (data[at + 1] >> 7 << 8)
        base, end = _varint(data, at + 2)
        last = base + step * (count - 1)
        if last < 0:
            raise ValueError("a length is negative")
        return end, count * max(base, last)
    bound, end = 0, at + 1
    for _ in range(256 - control):
        value, end = _varint(data, end)
        bound += value
    return end, bound


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Read an integer with seven bits per byte, the lowest bits first; returns it and the position after it."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        if data[at] < 128:
            return value, at + 1
        at, shift = at + 1, shift + 7
