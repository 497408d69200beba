"""One operator at a time: scan, filter, look-up, group by, join, sort, top-k, shuffle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.suites.base import Query, Suite, Table
from benchmarks.suites.write import write_once

ROWS_AT_SCALE_1 = 10_000_000
_CHUNK = 1_000_000

QUERIES = {
    "scan_count": "SELECT count(*) AS n FROM events",
    "scan_sum": "SELECT sum(v) AS v, sum(d) AS d, max(x) AS x FROM events",
    "scan_compute": "SELECT sum(v * (1 - y / 100.0D) + x) AS a, sum(d * 2 + 1) AS b FROM events",
    "filter_few": "SELECT id, v, s FROM events WHERE x = 4711",
    "filter_half": "SELECT count(*) AS n, sum(v) AS v FROM events WHERE x < 5000 AND s <> 'name 0007'",
    "lookup": "SELECT * FROM events WHERE id = 4711",
    "lookup_sorted": "SELECT * FROM history WHERE id = 47110",
    "range_sorted": "SELECT count(*) AS n, sum(c1) AS a, max(note) AS b FROM history WHERE id BETWEEN 20000 AND 40000",
    "filter_text": "SELECT count(*) AS n FROM events WHERE s LIKE '%99%'",
    "group_few": "SELECT few, count(*) AS n, sum(v) AS v, avg(d) AS d, max(x) AS x FROM events GROUP BY few",
    "group_text": "SELECT s, count(*) AS n, sum(d) AS d FROM events GROUP BY s",
    "group_many": "SELECT many, count(*) AS n, sum(v) AS v FROM events GROUP BY many ORDER BY n DESC, many LIMIT 10",
    "distinct": "SELECT count(DISTINCT many) AS n, count(DISTINCT few) AS m FROM events",
    "join_small": "SELECT label, count(*) AS n, sum(v) AS v FROM events JOIN small ON few = small.k GROUP BY label",
    "join_large": "SELECT count(*) AS n, sum(v + w) AS total FROM events JOIN large ON many = large.k WHERE w < 0.5",
    "join_outer": "SELECT count(*) AS n, count(w) AS m FROM events LEFT JOIN large ON id = large.k",
    "join_semi": "SELECT count(*) AS n FROM events WHERE many IN (SELECT k FROM large WHERE w < 0.01)",
    "sort": "SELECT id, v FROM events WHERE x < 500 ORDER BY v, id",
    "sort_wide": "SELECT * FROM events WHERE x < 2000 ORDER BY y, v",
    "sort_text": "SELECT note, k FROM large ORDER BY note DESC",
    "sort_clustered": "SELECT id, d, s FROM events WHERE x < 2000 ORDER BY id",
    "many_rows": "SELECT id, v * y AS p, d + 1 AS d, s FROM events WHERE x < 2000",
    "top_k": "SELECT id, v, s FROM events ORDER BY v DESC, id LIMIT 100",
    "top_k_wide": "SELECT * FROM history ORDER BY c3 DESC, id LIMIT 10",
    "top_k_sorted": "SELECT * FROM history ORDER BY id DESC LIMIT 10",
    "shuffle": (
        "SELECT count(*) AS n, sum(c) AS c, max(t) AS t "
        "FROM (SELECT id, count(*) AS c, max(s) AS t FROM events GROUP BY id) AS g"
    ),
}


def _events(rows: int) -> Iterator[pa.Table]:
    names = pa.array([f"name {i:04d}" for i in range(1000)])
    for chunk, start in enumerate(range(0, rows, _CHUNK)):
        n = min(_CHUNK, rows - start)
        rng = np.random.default_rng([11, chunk])
        cents = pa.array(rng.integers(0, 10_000_000, n)).cast(pa.decimal128(19, 0))
        yield pa.table(
            {
                # a permutation in blocks: neither sorted nor random over the whole table
                "id": pa.array(start + rng.permutation(n)),
                "few": pa.array(rng.integers(0, 100, n).astype(np.int32)),
                "many": pa.array(rng.integers(0, max(1, rows // 4), n)),
                "x": pa.array(rng.integers(0, 10_000, n).astype(np.int32)),
                "y": pa.array(rng.integers(0, 100, n).astype(np.int32), mask=rng.random(n) < 0.05),
                "v": pa.array(rng.random(n)),
                "d": cents.cast(pa.decimal128(12, 2)),
                "s": names.take(pa.array(rng.integers(0, 1000, n))),
            }
        )


def _small() -> Iterator[pa.Table]:
    yield pa.table(
        {"k": pa.array(range(100), pa.int32()), "label": pa.array([f"label {i % 10}" for i in range(100)])}
    )


def _large(rows: int) -> Iterator[pa.Table]:
    for chunk, start in enumerate(range(0, rows, _CHUNK)):
        n = min(_CHUNK, rows - start)
        rng = np.random.default_rng([13, chunk])
        keys = pa.array(start + rng.permutation(n))
        yield pa.table({"k": keys, "w": pa.array(rng.random(n)), "note": pc.cast(keys, pa.string())})


def _history(rows: int) -> Iterator[pa.Table]:
    """Sorted, in large row groups and with many columns, as of a table written in the order of its key."""
    for chunk, start in enumerate(range(0, rows, 4 * _CHUNK)):
        n = min(4 * _CHUNK, rows - start)
        rng = np.random.default_rng([17, chunk])
        columns = {f"c{i}": pa.array(rng.random(n)) for i in range(12)}
        keys = pa.array(np.arange(start, start + n))
        yield pa.table(
            {
                "id": keys,
                **columns,
                "note": pc.binary_join_element_wise("note", pc.cast(keys, pa.string()), " "),
            }
        )


def _make(root: Path, scale: float) -> tuple[Table, ...]:
    rows = max(1000, round(ROWS_AT_SCALE_1 * scale))
    made = {
        "events": lambda: _events(rows),
        "small": _small,
        "large": lambda: _large(rows // 4),
        "history": lambda: _history(rows),
    }
    return write_once(root / f"micro-{scale:g}", {"rows": rows, "version": 2}, made)


def _queries() -> tuple[Query, ...]:
    return tuple(Query(name, sql) for name, sql in QUERIES.items())


MICRO = Suite("micro", "one operator at a time; scale 1 is 10 million rows", _make, _queries)
