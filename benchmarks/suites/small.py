"""Fifty small and odd queries: what ``when="auto"`` must not make slower.

Tiny and empty tables, hundreds of columns, results as large as their tables, nested values, long strings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.suites.base import Query, Suite, Table
from benchmarks.suites.write import write_once

BIG_ROWS_AT_SCALE_1 = 500_000
WIDE_COLUMNS = 300

_WIDE_SUM = " + ".join(f"c{i}" for i in range(0, WIDE_COLUMNS, 3))
_WIDE_MAXES = ", ".join(f"max(c{i}) AS m{i}" for i in range(WIDE_COLUMNS))
_LONG_IN = ", ".join(str(i * 3) for i in range(400))
_DEEP_OR = " OR ".join(f"(id = {i} AND g < {i % 9})" for i in range(40))
_DEEP_CASE = "CASE " + " ".join(f"WHEN id < {i * 25} THEN 'b{i}'" for i in range(1, 40)) + " ELSE 'z' END"
_UNIONS = " UNION ALL ".join(f"SELECT id + {i} AS id FROM tiny" for i in range(12))

STRINGS = (
    # constants and tiny tables
    "SELECT 1 AS one",
    "SELECT 1 AS a, 'x' AS b, CAST(NULL AS INT) AS c",
    "SELECT * FROM tiny",
    "SELECT count(*) AS n FROM tiny",
    "SELECT name, sum(amount) AS total FROM tiny GROUP BY name",
    "SELECT * FROM tiny ORDER BY amount DESC",
    "SELECT * FROM tiny LIMIT 1",
    "SELECT a.id, b.name FROM tiny AS a JOIN tiny AS b ON a.id = b.id",
    "SELECT a.id, b.id AS other FROM tiny AS a CROSS JOIN tiny AS b",
    "SELECT DISTINCT name FROM tiny",
    "SELECT * FROM tiny WHERE amount > (SELECT avg(amount) FROM tiny)",
    f"SELECT sum(id) AS total FROM ({_UNIONS}) AS u",
    # empty tables
    "SELECT * FROM empty",
    "SELECT count(*) AS n, sum(amount) AS total FROM empty",
    "SELECT name, count(*) AS n FROM empty GROUP BY name",
    "SELECT t.id, e.amount FROM tiny AS t LEFT JOIN empty AS e ON t.id = e.id",
    "SELECT * FROM tiny WHERE id NOT IN (SELECT id FROM empty)",
    # a thousand rows
    "SELECT g, count(*) AS n, sum(v) AS v FROM thousand GROUP BY g",
    "SELECT * FROM thousand WHERE id = 17",
    "SELECT * FROM thousand ORDER BY v, id LIMIT 5",
    f"SELECT count(*) AS n FROM thousand WHERE id IN ({_LONG_IN})",
    f"SELECT count(*) AS n FROM thousand WHERE {_DEEP_OR}",
    f"SELECT bucket, count(*) AS n FROM (SELECT {_DEEP_CASE} AS bucket FROM thousand) AS t GROUP BY bucket",
    "SELECT a.g, count(*) AS n FROM thousand AS a JOIN thousand AS b ON a.g = b.g GROUP BY a.g",
    "SELECT a.id, b.id AS other FROM thousand AS a JOIN tiny AS b ON a.id < b.id",
    "SELECT g, v, row_number() OVER (PARTITION BY g ORDER BY v, id) AS r FROM thousand",
    "SELECT upper(s) AS s, length(s) AS n, substring(s, 2, 3) AS part FROM thousand WHERE s LIKE '%7%'",
    "SELECT g, count(DISTINCT s) AS n FROM thousand GROUP BY g HAVING count(*) > 3 ORDER BY g",
    "SELECT g, h, sum(v) AS v FROM thousand GROUP BY ROLLUP (g, h)",
    "SELECT id FROM thousand EXCEPT SELECT id FROM tiny",
    "SELECT id FROM thousand INTERSECT SELECT id FROM tiny",
    "SELECT stddev(v) AS s, corr(v, id) AS c, percentile_approx(v, 0.5) AS m FROM thousand",
    "SELECT id, (SELECT max(b.v) FROM thousand AS b WHERE b.g = a.g) AS most FROM thousand AS a",
    # many columns
    "SELECT * FROM wide",
    "SELECT c7 FROM wide WHERE c8 > 0.9",
    f"SELECT sum({_WIDE_SUM}) AS total FROM wide",
    f"SELECT {_WIDE_MAXES} FROM wide",
    "SELECT * FROM wide ORDER BY c0 LIMIT 3",
    "SELECT * FROM wide WHERE c1 < 0.01",
    # results as large as the table
    "SELECT * FROM big",
    "SELECT id, v * 2 AS twice FROM big",
    "SELECT * FROM big WHERE v > 0.1",
    "SELECT id, count(*) AS n FROM big GROUP BY id",
    "SELECT * FROM big ORDER BY v, id",
    "SELECT b.*, t.name FROM big AS b LEFT JOIN tiny AS t ON b.id = t.id",
    # nested values and long strings
    "SELECT * FROM nested",
    "SELECT id, point.x + point.y AS s, items[0] AS head, size(items) AS n FROM nested WHERE size(items) > 0",
    "SELECT id, item FROM nested LATERAL VIEW explode(items) AS item",
    "SELECT id, sort_array(collect_list(tag)) AS tags FROM (SELECT id, explode(map_keys(tags)) AS tag FROM nested) AS t GROUP BY id",
    "SELECT length(body) AS n, count(*) AS m, max(body) AS most FROM strings GROUP BY length(body)",
)


def _tiny() -> Iterator[pa.Table]:
    yield pa.table(
        {
            "id": pa.array([1, 2, 3, 4, None], pa.int64()),
            "name": ["a", "b", "a", None, "c"],
            "amount": [1.5, 2.5, None, -1.0, 0.0],
        }
    )


def _empty() -> Iterator[pa.Table]:
    yield next(_tiny()).slice(0, 0)


def _thousand() -> Iterator[pa.Table]:
    rng = np.random.default_rng(17)
    ids = np.arange(1000)
    yield pa.table(
        {
            "id": ids,
            "g": rng.integers(0, 10, 1000).astype(np.int32),
            "h": rng.integers(0, 3, 1000).astype(np.int32),
            "v": rng.random(1000),
            "s": [f"text {i % 77}" for i in ids.tolist()],
        }
    )


def _wide() -> Iterator[pa.Table]:
    rng = np.random.default_rng(19)
    yield pa.table({f"c{i}": rng.random(2000) for i in range(WIDE_COLUMNS)})


def _big(rows: int) -> Iterator[pa.Table]:
    rng = np.random.default_rng(23)
    ids = np.arange(rows)
    yield pa.table(
        {
            "id": ids,
            "v": rng.random(rows),
            "k": rng.integers(0, 1000, rows),
            "s": pa.array(ids % 5000).cast(pa.string()),
        }
    )


def _nested() -> Iterator[pa.Table]:
    rows = 2000
    points = [None if i % 50 == 0 else {"x": float(i), "y": -float(i)} for i in range(rows)]
    items = [None if i % 40 == 0 else [f"i{j}" for j in range(i % 5)] for i in range(rows)]
    tags = [[(f"k{j}", j) for j in range(i % 3)] for i in range(rows)]
    yield pa.table(
        {
            "id": pa.array(range(rows)),
            "point": pa.array(points, pa.struct([("x", pa.float64()), ("y", pa.float64())])),
            "items": pa.array(items, pa.list_(pa.string())),
            "tags": pa.array(tags, pa.map_(pa.string(), pa.int32())),
        }
    )


def _strings() -> Iterator[pa.Table]:
    bodies = [f"{i:05d}" + "lorem ipsum " * (20 + i % 200) for i in range(2000)]
    yield pa.table({"id": pa.array(range(2000)), "body": bodies})


def _make(root: Path, scale: float) -> tuple[Table, ...]:
    rows = max(1000, round(BIG_ROWS_AT_SCALE_1 * scale))
    makers = {"tiny": _tiny, "empty": _empty, "thousand": _thousand, "wide": _wide, "big": lambda: _big(rows)}
    nested = {"nested": _nested, "strings": _strings}
    return write_once(root / f"small-{scale:g}", {"rows": rows, "version": 1}, {**makers, **nested})


def _queries() -> tuple[Query, ...]:
    return tuple(Query(f"s{number:02d}", sql) for number, sql in enumerate(STRINGS, start=1))


SMALL = Suite(
    "small", "50 small and odd queries; scale says only how large the large result is", _make, _queries
)
