"""Checks the lengths of strings, lists and maps before pyarrow reads them.

ORC's C++ library adds lengths up and uses the sums as positions in memory. It takes a damaged length that is negative for a
huge one, which ends the process. The lengths are run-length encoded (ORC's specification, "Run Length Encoding"): the
header of a run bounds its values, so that almost no run has to be unpacked.
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
    """Check the runs of unsigned integers in a stream; ValueError for a damaged one."""
    at = 0
    try:
        while at < len(data):
            at, bound = _version_1(data, at) if is_version_1 else _version_2(data, at)
            if bound > MAX_SUM:
                raise ValueError(f"its lengths add up to {bound}")
    except IndexError:
        raise ValueError("its lengths end within a run") from None


def _version_2(data: bytes, at: int) -> tuple[int, int]:
    """Where the run at a position ends, and a bound for the sum of its values."""
    kind, code = data[at] >> 6, data[at] >> 1 & 31
    if kind == _SHORT_REPEAT:
        width, count = (data[at] >> 3 & 7) + 1, (data[at] & 7) + _MIN_REPEAT
        return at + 1 + width, count * int.from_bytes(data[at + 1 : at + 1 + width], "big")
    count = ((data[at] & 1) << 8 | data[at + 1]) + 1
    if kind == _DIRECT:
        return _packed(data, at + 2, _WIDTHS[code], count)
    if kind == _PATCHED_BASE:
        return _patched(data, at, _WIDTHS[code], count)
    return _delta(data, at + 2, _WIDTHS[code] if code else 0, count)


def _packed(data: bytes, at: int, width: int, count: int) -> tuple[int, int]:
    """The same for values of this number of bits. They are unpacked only if they may be too large."""
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


def _patched(data: bytes, at: int, width: int, count: int) -> tuple[int, int]:
    """The same for values of few bits above a base, some of which have further high bits in a list of patches."""
    base_bytes, patch_width = (data[at + 2] >> 5) + 1, _WIDTHS[data[at + 2] & 31]
    gap_width, patches = (data[at + 3] >> 5) + 1, data[at + 3] & 31
    base = int.from_bytes(data[at + 4 : at + 4 + base_bytes], "big")
    if base >> (8 * base_bytes - 1):
        raise ValueError("a length is negative")
    if width + patch_width > _MAX_WIDTH:
        raise ValueError(f"its lengths have {width + patch_width} bits")
    entry = next(w for w in _WIDTHS if w >= patch_width + gap_width)
    end, bound = _packed(data, at + 4 + base_bytes, width, count)
    return end + (entry * patches + 7) // 8, bound + count * base + (patches << (width + patch_width))


def _delta(data: bytes, at: int, width: int, count: int) -> tuple[int, int]:
    """The same for values that all rise or all fall by deltas of this number of bits, or by one constant."""
    base, at = _varint(data, at)
    zigzag, at = _varint(data, at)
    first = zigzag >> 1 ^ -(zigzag & 1)
    end, total = (at, first * (count - 1)) if not width else _packed(data, at, width, max(count - 2, 0))
    if width:
        total = first + (total if first >= 0 else -total)
    if base + total < 0 and first < 0:
        return end, _falling(data, at, base, first, width, count)
    return end, count * max(base, base + total)


def _falling(data: bytes, at: int, base: int, first: int, width: int, count: int) -> int:
    """The bound for falling values whose deltas may be less than their number of bits allows."""
    if width:
        bits = np.unpackbits(np.frombuffer(data[at : at + (width * (count - 2) + 7) // 8], np.uint8))
        steps = bits[: width * (count - 2)].astype(np.int64).reshape(-1, width) << np.arange(
            width - 1, -1, -1
        )
        if base + first - int(steps.sum()) >= 0:
            return count * base
    raise ValueError("a length is negative")


def _version_1(data: bytes, at: int) -> tuple[int, int]:
    """The same for a run of Hive 0.11: a first value with a constant step, or single values."""
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
    """An integer of seven bits to a byte, the lowest first, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        if data[at] < 128:
            return value, at + 1
        at, shift = at + 1, shift + 7
