"""Rows that a join has spread by key are not spread again by that key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig

RNG = np.random.default_rng(8)


def table(prefix: str, rows: int) -> pa.Table:
    key = RNG.integers(0, 40, rows)
    return pa.table(
        {
            f"{prefix}k": pa.array(key, mask=key == 3),
            f"{prefix}v": RNG.integers(0, 9, rows),
            f"{prefix}w": key % 5,
        }
    )


TABLES = {"a": table("a", 300), "b": table("b", 200), "c": table("c", 100)}
ONE_TASK = EngineConfig(parallelism=2)
SHUFFLES = EngineConfig(parallelism=2, small_bytes=-1, broadcast_bytes=-1, shuffle_partitions=3)


def frame(sql: str, config: EngineConfig) -> kq.DataFrame:
    context = kq.ExecutionContext(config=config)
    for name, rows in TABLES.items():
        context.register_arrow(name, rows)
    return context.sql(sql)


def rows_of(found: kq.DataFrame) -> list[str]:
    return sorted(repr(list(r.values())) for r in found.collect())


@pytest.mark.parametrize(
    ("sql", "stages"),
    [
        ("SELECT ak, sum(bv) FROM a JOIN b ON ak = bk GROUP BY ak", 3),
        ("SELECT bk, sum(av) FROM a JOIN b ON ak = bk GROUP BY bk", 3),
        ("SELECT bk, aw, sum(av) FROM a JOIN b ON ak = bk GROUP BY bk, aw", 3),
        ("SELECT aw, sum(bv) FROM a JOIN b ON ak = bk GROUP BY aw", 4),
        ("SELECT ak, sum(bv) FROM a LEFT JOIN b ON ak = bk GROUP BY ak", 3),
        ("SELECT bk, sum(av) FROM a LEFT JOIN b ON ak = bk GROUP BY bk", 4),
        ("SELECT bk, count(ak) FROM a RIGHT JOIN b ON ak = bk GROUP BY bk", 3),
        ("SELECT ak, count(bk) FROM a RIGHT JOIN b ON ak = bk GROUP BY ak", 4),
        ("SELECT ak, count(bk) FROM a FULL JOIN b ON ak = bk GROUP BY ak", 4),
        ("SELECT ak, count(*) FROM a JOIN b ON ak <=> bk GROUP BY ak", 3),
        ("SELECT av, bw, cw FROM a JOIN b ON ak = bk JOIN c ON bk = ck", 4),
        ("SELECT av, bw, cw FROM a LEFT JOIN b ON ak = bk LEFT JOIN c ON ak = ck", 4),
        ("SELECT av, bw, cw FROM a LEFT JOIN b ON ak = bk LEFT JOIN c ON bk = ck", 5),
        (
            "SELECT bk, row_number() OVER (PARTITION BY bk ORDER BY av, bv, aw, bw) FROM a JOIN b ON ak = bk",
            3,
        ),
    ],
)
def test_stages(sql: str, stages: int) -> None:
    spread = frame(sql, SHUFFLES)
    assert spread.explain().split("== Stages ==")[1].count("task(s)") == stages
    assert rows_of(spread) == rows_of(frame(sql, ONE_TASK))
