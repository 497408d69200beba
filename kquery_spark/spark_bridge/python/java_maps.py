"""Computes the order of entries in Java's HashMap.

A map argument of a pickled function passes through one HashMap, and a map result through two, which changes the order of
their entries. Java hashes a key, xors the halves of the hash, and appends the entry to a bucket; iteration follows the
buckets. Resizing retains the order of entries within a bucket. For example, in a map with 16 buckets the keys 17, 2 and 1
are iterated in the order 17, 1 (bucket 1), 2 (bucket 2).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.errors import KQueryError
from kquery_spark.types import names as t

MAX_PICKLED_ENTRIES = 1000
"""The maximum number of entries that Python pickles, and Java reads, in one piece."""
_INTEGERS = (t.BYTE, t.SHORT, t.INT, t.DATE)
_FIRST_CAPACITY = 16  # Java's default capacity
_MAX_CHAIN = 8  # maximum number of entries in a bucket; Java converts longer buckets to trees
_WORD = 0xFFFFFFFF
_TRUE, _FALSE = 1231, 1237


def is_known_key(dtype: pa.DataType) -> bool:
    """Return whether the hashes of this type of keys can be computed."""
    is_plain = dtype in (*_INTEGERS, t.LONG, t.FLOAT, t.DOUBLE, t.BOOL, t.STRING)
    return is_plain or bool(pa.types.is_timestamp(dtype))


def hashes_of(keys: pa.Array) -> list[int]:
    """The hashes of keys in the form in which Spark passes them to the pickler, as unsigned 32-bit integers."""
    if keys.type == t.STRING:
        return [text_hash(text) for text in keys.to_pylist()]
    if keys.type == t.BOOL:
        return [_TRUE if key else _FALSE for key in keys.to_pylist()]
    if keys.type == t.FLOAT:
        return _words(_canonical(keys).view(np.int32).astype(np.int64))
    if keys.type == t.DOUBLE:
        keys = pa.array(_canonical(keys).view(np.int64))
    if keys.type == t.DATE:
        keys = keys.cast(t.INT)
    if keys.type in _INTEGERS:
        return _words(keys.to_numpy().astype(np.int64))
    numbers = keys.cast(t.LONG).to_numpy()
    return _words(numbers ^ (numbers >> 32))


def _words(hashes: npt.NDArray[np.int64]) -> list[int]:
    return cast("list[int]", (hashes & _WORD).tolist())


def _canonical(keys: pa.Array) -> npt.NDArray[np.floating[Any]]:
    """Floating-point keys in which all NaNs have the same bits, as in Java."""
    values: npt.NDArray[np.floating[Any]] = keys.to_numpy().copy()
    values[np.isnan(values)] = np.nan
    return values


def value_hash(key: bool | int | float | str) -> int:
    """The hash of a key that Java unpickles; an integer becomes an Integer if it fits, otherwise a Long."""
    if isinstance(key, float):
        return hashes_of(pa.array([key], t.DOUBLE))[0]
    if isinstance(key, str):
        return text_hash(key)
    if isinstance(key, bool):
        return _TRUE if key else _FALSE
    fits = -(1 << 31) <= key < 1 << 31
    return (key if fits else key ^ key >> 32) & _WORD


@lru_cache(maxsize=1 << 16)
def text_hash(text: str) -> int:
    """``String.hashCode`` as an unsigned 32-bit integer."""
    code = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        code = (31 * code + unit) & _WORD
    return code


def argument_order(hashes: Sequence[int]) -> list[int]:
    """The positions of a map's entries in the order in which a function receives them."""
    return _iteration_order(hashes, range(len(hashes)), _table_size(len(hashes)))


def result_order(hashes: Sequence[int], oversizes_put_all: bool) -> list[int]:
    """The positions of a dictionary's entries in the order in which Spark stores them.

    oversizes_put_all: as in ``Pickling``. Raises KQueryError for dictionaries that Java reads in several pieces.
    """
    n = len(hashes)
    if n > MAX_PICKLED_ENTRIES:
        raise KQueryError(f"only Spark knows the order of more than {MAX_PICKLED_ENTRIES} map entries")
    popped = _iteration_order(
        hashes, range(n)[::-1], _FIRST_CAPACITY
    )  # the unpickler pops entries from a stack
    room = int(n / 0.75 + 1) if oversizes_put_all else math.ceil(n / 0.75)
    return _iteration_order(hashes, popped, _table_size(room))


def _iteration_order(hashes: Sequence[int], inserted: Sequence[int], capacity: int) -> list[int]:
    """The iteration order of a map into which entries are put in the order ``inserted``; KQueryError if it has trees."""
    while len(inserted) > _limit(capacity):
        _check_chains(hashes, inserted[: _limit(capacity) + 1], capacity)
        capacity *= 2
    _check_chains(hashes, inserted, capacity)
    return sorted(inserted, key=lambda i: _bucket(hashes[i], capacity))


def _limit(capacity: int) -> int:
    return capacity * 3 // 4


def _bucket(code: int, capacity: int) -> int:
    return (code ^ code >> 16) & (capacity - 1)


def _check_chains(hashes: Sequence[int], inserted: Sequence[int], capacity: int) -> None:
    if len(inserted) > _MAX_CHAIN:
        chains = Counter(_bucket(hashes[i], capacity) for i in inserted)
        if max(chains.values()) > _MAX_CHAIN:
            raise KQueryError("only Spark knows the order of map entries whose keys have few hashes")


def _table_size(entries: int) -> int:
    return 1 << (entries - 1).bit_length() if entries > 1 else 1
