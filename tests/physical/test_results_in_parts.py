"""Expressions whose results are much larger than their arguments: operators compute them for a part of a batch at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.types import batch as batch_module
from kquery_spark.types.batch import Batch, run_in_parts
from kquery_spark.types.sizes import reserve_rows
from tests.physical.harness import assert_same_rows
from tests.support.memory import MEGABYTES, peak_memory

ROWS = 65_536
TABLE = pa.table(
    {
        "i": pa.array(range(ROWS), pa.int32()),
        "n": pa.array([10_000] * ROWS, pa.int32()),
        "u": [None if i % 7 == 0 else f"text {i}" for i in range(ROWS)],
        "l": pa.array([["a", None, "c"]] * ROWS, pa.list_(pa.string())),
        "m": pa.array([list(range(i % 40)) for i in range(ROWS)], pa.list_(pa.int32())),
    }
)


def context(table: pa.Table) -> kq.ExecutionContext:
    ctx = kq.ExecutionContext(config=EngineConfig(parallelism=1))
    ctx.register_arrow("t", table)
    return ctx


LARGE = {
    "repeat": "SELECT sum(length(repeat(u, 1000))) AS n FROM t",
    "space": "SELECT sum(length(space(n + i % 2))) AS n FROM t",
    "replace": "SELECT sum(length(replace(u, 't', repeat('x', 5000)))) AS n FROM t",
    "concat": "SELECT sum(length(concat(u, repeat('x', 10000)))) AS n FROM t",
    "concat_ws": "SELECT sum(length(concat_ws(repeat('-', 3000), u, u, u, u, u))) AS n FROM t",
    "hex": "SELECT sum(length(hex(concat(u, repeat('x', 5000))))) AS n FROM t",
    "array_join": "SELECT sum(length(array_join(l, repeat('-', 10000)))) AS n FROM t",
    "array_repeat": "SELECT sum(size(array_repeat(u, 800))) AS n FROM t",
    "sequence": "SELECT sum(size(sequence(1, 1500 + i % 2))) AS n FROM t",
    "transform": "SELECT sum(size(transform(m, x -> repeat(u, 60)))) AS n FROM t",
    "nested transform": "SELECT sum(size(flatten(transform(m, x -> transform(sequence(1, 150), y -> x * y))))) AS n FROM t",
    "transform and aggregate": "SELECT max(aggregate(transform(sequence(1, 2000), x -> x + i), 0L, (s, x) -> s + x)) AS n FROM t",
    "CASE": "SELECT sum(length(CASE WHEN i > 5 THEN repeat('x', 10000) ELSE u END)) AS n FROM t",
    "filter": "SELECT count(*) AS n FROM t WHERE length(repeat(u, 1000)) > 9000",
    "aggregate": "SELECT max(length(r)) AS n FROM (SELECT max(repeat(u, 1000)) AS r FROM t)",
    "explode": "SELECT sum(e) AS n FROM (SELECT explode(sequence(1, 5000 + i % 2)) AS e FROM t WHERE i < 18000)",
}


@pytest.mark.parametrize("name", list(LARGE))
def test_memory_is_bounded(name: str) -> None:
    """The result for the whole batch has 600 MB or more."""
    frame = context(TABLE).sql(LARGE[name])
    with peak_memory() as peak:
        assert frame.to_arrow().num_rows == 1
    assert peak.nbytes < 550 * MEGABYTES


SMALL = [
    "SELECT i, repeat(u, 1 + i % 9) AS r, concat_ws('--', u, u) AS c, hex(u) AS h FROM t",
    "SELECT i, lpad(u, 30, 'ab') AS a, rpad(u, i % 40, '-') AS b, replace(u, 't', 'long text') AS c FROM t",
    "SELECT i, array_repeat(u, i % 5) AS a, sequence(0, i % 7) AS s, transform(m, x -> concat(u, x)) AS t FROM t",
    "SELECT i FROM t WHERE length(repeat(u, i % 3)) > 9",
    "SELECT i % 10 AS g, max(repeat(u, 2)) AS m, sum(size(array_repeat(i, 3))) AS s FROM t GROUP BY i % 10",
    "SELECT i, explode(sequence(0, i % 4)) AS e, repeat(u, 2) AS r FROM t",
    "SELECT i, CASE WHEN i % 3 = 0 THEN repeat(u, 3) ELSE upper(u) END AS c, array_join(l, repeat('-', 9)) AS j FROM t",
]


@pytest.mark.parametrize("query", SMALL)
def test_parts_do_not_change_the_result(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = context(TABLE.slice(0, 500)).sql(query)
    expected = frame.to_arrow()
    monkeypatch.setattr(batch_module, "_MAX_PART_BYTES", 300)
    assert_same_rows(frame.to_arrow(), expected)


@pytest.mark.parametrize(
    ("width", "rows", "expected"), [(16, 1000, [1000, *[62] * 16, 8]), (5000, 40, [40, 16, 16, 8])]
)
def test_the_size_of_the_parts_follows_from_the_size_of_the_array(
    width: int, rows: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call asks for 16 times the limit. Few rows are computed together, however large they are."""
    monkeypatch.setattr(batch_module, "_MAX_PART_BYTES", 1000)
    calls: list[int] = []

    def function(batch: Batch) -> int:
        calls.append(batch.num_rows)
        reserve_rows(batch.num_rows, width)
        return batch.num_rows

    batch = Batch(pa.schema([("k", pa.int64())]), (pa.array(np.arange(rows)),), rows)
    parts = list(run_in_parts(function, batch, repeatable=True))
    assert sum(count for _, count in parts) == rows
    assert calls == expected
