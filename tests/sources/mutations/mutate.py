"""Damage to bytes: what a mutation changes, in which region of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from tests.sources.mutations.formats import Mutation

_ODD_BYTES = (0x00, 0x01, 0x02, 0x0F, 0x10, 0x1F, 0x7F, 0x80, 0xF0, 0xFE, 0xFF)
_MAX_RANGE = 24


class Region(NamedTuple):
    """A range of bytes of a file that is worth damaging."""

    name: str
    start: int
    end: int


def mutated(data: bytes, regions: Sequence[Region], rng: Random) -> Mutation:
    """One to three changes in one of the regions, mostly one."""
    region = rng.choice([region for region in regions if region.end > region.start])
    changed = bytearray(data)
    steps = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        change = rng.choices(_CHANGES, _WEIGHTS)[0]
        # an earlier change may have cut the region off
        start, end = min(region.start, len(changed)), min(region.end, len(changed))
        if end > start:
            steps.append(f"{change.__name__.strip('_')} at {change(changed, start, end, rng)}")
    return Mutation(bytes(changed), f"{region.name}: {', '.join(steps)}")


def _flip_bit(data: bytearray, start: int, end: int, rng: Random) -> int:
    at = rng.randrange(start, end)
    data[at] ^= 1 << rng.randrange(8)
    return at


def _set_byte(data: bytearray, start: int, end: int, rng: Random) -> int:
    at = rng.randrange(start, end)
    data[at] = rng.randrange(256)
    return at


def _set_odd_byte(data: bytearray, start: int, end: int, rng: Random) -> int:
    at = rng.randrange(start, end)
    data[at] = rng.choice(_ODD_BYTES)
    return at


def _step_byte(data: bytearray, start: int, end: int, rng: Random) -> int:
    """Zigzag integers and sizes change by one or two then."""
    at = rng.randrange(start, end)
    data[at] = (data[at] + rng.choice((-2, -1, 1, 2))) % 256
    return at


def _zero_range(data: bytearray, start: int, end: int, rng: Random) -> int:
    at, size = _range(start, end, rng)
    data[at : at + size] = bytes(size)
    return at


def _splice(data: bytearray, start: int, end: int, rng: Random) -> int:
    """Bytes from elsewhere in the region replace as many here."""
    at, size = _range(start, end, rng)
    origin = rng.randrange(start, end - size + 1)
    data[at : at + size] = data[origin : origin + size]
    return at


def _delete(data: bytearray, start: int, end: int, rng: Random) -> int:
    at, size = _range(start, end, rng)
    del data[at : at + size]
    return at


def _insert(data: bytearray, start: int, end: int, rng: Random) -> int:
    at, size = _range(start, end, rng)
    data[at:at] = rng.randbytes(size)
    return at


def _truncate(data: bytearray, start: int, end: int, rng: Random) -> int:
    at = rng.randrange(start, end)
    del data[at:]
    return at


def _range(start: int, end: int, rng: Random) -> tuple[int, int]:
    size = min(rng.randint(1, _MAX_RANGE), end - start)
    return rng.randrange(start, end - size + 1), size


_Change = Callable[[bytearray, int, int, Random], int]
_WEIGHTED: dict[_Change, int] = {
    _flip_bit: 6,
    _set_byte: 6,
    _set_odd_byte: 6,
    _step_byte: 6,
    _zero_range: 3,
    _splice: 3,
    _delete: 1,
    _insert: 1,
    _truncate: 1,
}
_CHANGES, _WEIGHTS = tuple(_WEIGHTED), tuple(_WEIGHTED.values())
