"""Cached properties: computed once for an object, and without waiting for other objects."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from kquery_spark.cached_property import cached_property

_TWO = Barrier(2, timeout=20.0)


class Chunk:
    """An object with properties."""

    computed = 0

    @cached_property
    def values(self) -> list[int]:
        """The values."""
        self.computed += 1
        return [self.computed]

    @cached_property
    def paired(self) -> object:
        """Pass when two threads compute this property."""
        _TWO.wait()
        return object()


def test_a_value_is_computed_once():
    chunk = Chunk()
    assert chunk.values == [1]
    assert chunk.values is chunk.values
    assert chunk.computed == 1
    assert pickle.loads(pickle.dumps(chunk)).values == [1]
    assert Chunk.values.__doc__ == "The values."


def test_threads_do_not_wait_for_each_other():
    """With a lock for both objects, the first thread would wait at the barrier until it breaks."""
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda chunk: chunk.paired, [Chunk(), Chunk()])
    assert first is not second


def test_threads_that_compute_one_value_get_the_same():
    chunk = Chunk()
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda one: one.paired, [chunk, chunk])
    assert first is second
