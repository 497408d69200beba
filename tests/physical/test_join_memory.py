"""The memory of join tables: what they count is what they allocate, and a memory budget bounds it."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import Column
from kquery_spark.logical import JoinKind
from kquery_spark.logical.join import JoinKey
from kquery_spark.physical.joins.join_table import JoinTable
from kquery_spark.physical.operators import BuildSide, JoinExec, ReplicateExec
from kquery_spark.physical.worker_cache import WorkerCache
from kquery_spark.types import names as t
from kquery_spark.types.vector import Vector
from tests.physical.harness import assert_same_by, execute, read

RNG = np.random.default_rng(3)
FAR = 4_000_000

# the keys of the build rows
KEYS = {
    "two far keys": [np.array([0, FAR])],
    "few rows with repeats": [RNG.integers(0, FAR, 1000).repeat(2)],
    "a tenth of the range": [RNG.permutation(1_000_000)[:100_000]],
    "a tenth of the range, repeats": [RNG.integers(0, 1_000_000, 100_000)],
    "all of the range": [RNG.permutation(100_000)],
    "no range": [RNG.integers(0, 1 << 60, 100_000)],
    "two columns": [RNG.integers(0, 3000, 5000), RNG.integers(0, 3000, 5000)],
    "three columns without a range": [RNG.integers(0, 1 << 40, 5000) for _ in range(3)],
}


def long_keys(columns: list[np.ndarray]) -> list[Vector]:
    return [Vector(t.LONG, pa.array(column, t.LONG)) for column in columns]


def table_of(columns: list[np.ndarray], direct_bytes: int) -> JoinTable:
    return JoinTable(long_keys(columns), len(columns[0]), [False] * len(columns), direct_bytes)


@pytest.mark.parametrize("direct_bytes", [0, 1 << 20, 1 << 30])
@pytest.mark.parametrize("name", list(KEYS))
def test_a_table_counts_its_arrays_and_stays_within_its_bytes(name: str, direct_bytes: int) -> None:
    columns = KEYS[name]
    gc.collect()
    tracemalloc.start()
    try:
        table = table_of(columns, direct_bytes)
        for key, matches in zip(long_keys(columns), table.columns, strict=False):
            matches.contains([key], len(columns[0]))
        gc.collect()
        snapshot = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    # Other threads also allocate, for example those that import numba, but only this one allocates arrays.
    arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    allocated = sum(trace.size for trace in snapshot.filter_traces([arrays]).traces)
    # a table with several key columns also counts these, which are allocated before it
    nbytes = table.nbytes - (sum(column.nbytes for column in columns) if len(columns) > 1 else 0)
    assert allocated <= 1.05 * nbytes + 65536
    # the index of a column is counted before it is built, as if all its values were distinct
    assert nbytes <= 2 * allocated + 65536
    # a hash table for each key column, one for all of them, and the rows of each key
    rows = len(columns[0])
    assert allocated <= direct_bytes + (1 + 2 * len(columns)) * max(65536, 80 * rows)


@pytest.mark.parametrize("name", list(KEYS))
def test_the_pairs_do_not_depend_on_the_memory(name: str) -> None:
    columns = KEYS[name]
    probes = [np.concatenate([column[:2000], [-1, FAR, 5]]) for column in columns]
    found = []
    for direct_bytes in (0, 1 << 30):
        table = table_of(columns, direct_bytes)
        pairs = table.matches(*table.counts(long_keys(probes), len(probes[0])))
        hits = table.contains(long_keys(probes), len(probes[0]))
        for probe, build in zip(probes, columns, strict=True):
            assert (probe[pairs.probe] == build[pairs.build]).all()
        assert set(np.flatnonzero(hits)) == set(pairs.probe)
        found.append(set(zip(pairs.probe.tolist(), pairs.build.tolist(), strict=True)))
    assert found[0] == found[1]
    assert len(found[0]) >= min(2000, len(columns[0]))


BUILT = pa.table({"rk": RNG.integers(0, FAR, 3000), "rv": np.arange(3000)})
PROBED = pa.table({"k": np.concatenate([BUILT["rk"].to_numpy()[::2], [7] * 50]), "v": np.arange(1550)})


def broadcast_join(keys: tuple[JoinKey, ...]) -> JoinExec:
    output = pa.schema([*PROBED.schema, *BUILT.schema])
    right = ReplicateExec(read(BUILT, "r"))
    return JoinExec(read(PROBED, "l"), right, JoinKind.INNER, keys, None, BuildSide.RIGHT, output)


KEY = (JoinKey(Column("k", t.LONG), Column("rk", t.LONG)),)


def test_the_cache_counts_the_table_of_a_broadcast_join(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = WorkerCache()
    monkeypatch.setattr("kquery_spark.physical.worker_cache._WORKER", cache)
    execute(broadcast_join(KEY), {"l": PROBED, "r": BUILT})
    # one flag and one slot for each possible key
    assert cache.retained_bytes() > 5 * 3_900_000


@pytest.mark.parametrize("keys", [KEY, ()], ids=["keys", "nested loop"])
def test_a_broadcast_join_spills_beyond_its_budget(
    keys: tuple[JoinKey, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = WorkerCache()
    monkeypatch.setattr("kquery_spark.physical.worker_cache._WORKER", cache)
    plan = broadcast_join(keys)
    tables = {"l": PROBED.slice(0, 1550 if keys else 30), "r": BUILT}
    config = EngineConfig(batch_rows=500)
    want, _ = execute(plan, tables, config, rows=500)
    assert cache.retained_bytes() > 0
    cache.clear()
    actual, task = execute(plan, tables, replace(config, memory_bytes=40_000), rows=500)
    assert task.metrics_of(plan).extra["spilled_bytes"] > 0
    assert cache.retained_bytes() == 0
    assert_same_by(actual, want, ["v", "rv"])
