"""HyperLogLog++ as in Spark's ``approx_count_distinct``: estimates the number of distinct values from their hashes.

It follows Heule, Nunkesser and Hall, "HyperLogLog in Practice" (2013); ``hyperloglog_bias.json`` holds the table of its
appendix. The first bits of a value's hash (their number is the precision) select a register, and the rank is one plus the
number of leading zeros in the other bits. Here one integer, a code, encodes both: a 1, the register, and six bits of rank.
For example, with precision 4 register 0101 and rank 3 are 1 0101 000011. Codes of one register sort by rank, so the highest
code of each register is all that the estimate needs.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.functions.encoding.hashes import xxhash64
from kquery_spark.types.vector import Int64s, Vector

DEFAULT_ERROR = 0.05
_RANK_BITS = 6
_RANKS = np.int64((1 << _RANK_BITS) - 1)
_PRECISIONS = range(4, 19)  # the precisions for which the appendix has tables
_NEIGHBORS = 6  # the bias is the mean of this number of neighboring table entries
# By precision: up to this estimate, linear counting is used, which counts the empty registers.
_LINEAR = (10, 20, 40, 80, 220, 400, 900, 1800, 3100, 6500, 15500, 20000, 50000, 120000, 350000)
_ALPHAS = {4: 0.673, 5: 0.697, 6: 0.709}
_BLOCK_ROWS = 1 << 15  # rows hashed at a time, so that intermediate results stay in the processor's cache
_MAX_DENSE_REGISTERS = 1 << 22  # maximum number of registers in memory at once, including empty ones

Doubles = npt.NDArray[np.float64]


def precision_for_error(error: float | None) -> int:
    """The precision (4 to 18) for a relative standard deviation of at most ``error``.

    Raises PlanError for a deviation that Spark rejects, and Unsupported for a smaller one, for which Spark uses precisions
    beyond the appendix.
    """
    if error is None or not error > 0:
        raise PlanError(f"the error of approx_count_distinct is above 0 and at most 0.39, not {error}")
    bits = math.ceil(2.0 * math.log(1.106 / error) / math.log(2.0))
    if bits < _PRECISIONS.start:
        raise PlanError(f"the error of approx_count_distinct is at most 0.39, not {error}")
    if bits not in _PRECISIONS:
        raise Unsupported(
            f"approx_count_distinct with an error of {error} is not supported, only from 0.0022"
        )
    return bits


def encode_registers(vector: Vector, length: int, precision: int) -> Int64s:
    """Return the code of each of ``length`` values; none may be NULL."""
    if vector.is_dictionary:
        data = vector.data
        dictionary_codes = encode_registers(
            Vector(vector.dtype, data.dictionary), len(data.dictionary), precision
        )
        return np.asarray(dictionary_codes.take(data.indices.to_numpy(zero_copy_only=False)))
    row_codes = np.empty(length, np.int64)
    for start in range(0, length, _BLOCK_ROWS):
        block = vector.data.slice(start, _BLOCK_ROWS)
        row_codes[start : start + len(block)] = _code(
            xxhash64(Vector(vector.dtype, block), len(block)).view(np.uint64), precision
        )
    return row_codes


def _code(hashes: npt.NDArray[np.uint64], precision: int) -> Int64s:
    register = (hashes >> np.uint64(64 - precision)) | np.uint64(1 << precision)
    rest = (hashes << np.uint64(precision)) | np.uint64(1 << (precision - 1))
    # The position of the highest bit is the exponent of the double. Clearing the bit below it keeps the conversion from
    # rounding up to the next power of two.
    highest_ranks = ((rest & ~(rest >> np.uint64(1))).astype(np.float64).view(np.int64) >> 52) - 1023
    return (register.view(np.int64) << _RANK_BITS) | (64 - highest_ranks)


def precision_of_codes(register_codes: Int64s) -> int:
    """Return the precision of codes, which follows from the size of the first one; there must be at least one."""
    return int(register_codes[0]).bit_length() - 1 - _RANK_BITS


def highest_ranks(ids: Int64s, register_codes: Int64s, groups: int) -> tuple[Int64s, Int64s]:
    """Return the highest code of each register of each group, sorted by group.

    A key is the group followed by the code without its leading 1. If an array of all registers of all groups is small
    enough, it collects the highest ranks. Otherwise the keys are sorted: the last one of each register is the highest.
    """
    if not len(register_codes):
        return ids, register_codes
    bits = precision_of_codes(register_codes)
    one = np.int64(1 << (bits + _RANK_BITS))
    keys = (ids << (bits + _RANK_BITS)) | (register_codes & (one - 1))
    if groups << bits <= max(_MAX_DENSE_REGISTERS, len(register_codes)):
        ranks = np.zeros(groups << bits, np.uint8)
        np.maximum.at(ranks, keys >> _RANK_BITS, (keys & _RANKS).astype(np.uint8))
        registers = np.flatnonzero(ranks)
        keys = (registers << _RANK_BITS) | ranks.take(registers)
    else:
        keys.sort()
        registers = keys >> _RANK_BITS
        keys = keys[np.append(registers[1:] != registers[:-1], True)]
    return keys >> (bits + _RANK_BITS), (keys & (one - 1)) | one


def estimates(ids: Int64s, register_codes: Int64s, groups: int) -> Int64s:
    """Estimate the number of distinct values of each group from the codes that ``highest_ranks`` returns."""
    if not len(register_codes):
        return np.zeros(groups, np.int64)
    bits = precision_of_codes(register_codes)
    registers = 1 << bits
    filled = np.bincount(ids, minlength=groups)
    empty = (registers - filled).astype(np.float64)
    inverse = np.bincount(ids, np.ldexp(1.0, -(register_codes & _RANKS).astype(np.int32)), groups) + empty
    alpha = _ALPHAS.get(bits, 0.7213 / (1.0 + 1.079 / registers))
    raw = alpha * registers * registers / inverse
    with np.errstate(divide="ignore"):
        linear = registers * np.log(registers / empty)
    few = (empty > 0) & ((linear <= _LINEAR[bits - _PRECISIONS.start]) | (raw <= 2.5 * registers))
    result = np.where(few, linear, raw)
    biased = np.flatnonzero(~few & (raw < 5.0 * registers))
    result[biased] -= _bias(raw[biased], bits)
    return np.floor(result + 0.5).astype(np.int64)


def _bias(raw: Doubles, bits: int) -> Doubles:
    """The bias of raw estimates: the mean bias of the nearest entries in the table of the appendix."""
    table = _table()
    known, biases = table["raw"][bits - _PRECISIONS.start], table["bias"][bits - _PRECISIONS.start]
    low = np.maximum(_binary_search(known, raw) - _NEIGHBORS + 1, 0)
    high = np.minimum(low + _NEIGHBORS, len(known))
    while True:
        above = np.minimum(high, len(known) - 1)
        nearer = (high < len(known)) & ((raw - known[above]) ** 2 < (raw - known[low]) ** 2)
        if not nearer.any():
            break
        low, high = low + nearer, high + nearer
    total = np.zeros(len(raw))
    for i in range(_NEIGHBORS):
        inside = low + i < high
        total += np.where(inside, biases[np.minimum(low + i, len(known) - 1)], 0.0)
    return np.asarray(total / (high - low))


def _binary_search(known: Doubles, raw: Doubles) -> Int64s:
    """The position at which Java's binary search ends, for all rows at once. The table is not sorted everywhere.

    So another search algorithm would end at other positions than Spark.
    """
    low, high = np.zeros(len(raw), np.int64), np.full(len(raw), len(known) - 1)
    while (low <= high).any():
        middle = np.clip((low + high) >> 1, 0, len(known) - 1)
        going, value = low <= high, known[middle]
        low, high = (
            np.where(going, np.where(value < raw, middle + 1, np.where(value == raw, middle, low)), low),
            np.where(going & (value >= raw), middle - 1, high),
        )
    return low


@functools.cache
def _table() -> dict[str, list[Any]]:
    text = (
        importlib.resources.files("kquery_spark.functions.aggregate")
        .joinpath("hyperloglog_bias.json")
        .read_text()
    )
    return {name: [np.array(row) for row in rows] for name, rows in json.loads(text).items()}
