from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from kquery_spark.expr import SortKey
from kquery_spark.logical import Limit, Sort
from tests.physical.harness import CONFIGS, assert_like_spark, c, register, rows_of, run, scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN, INF = float("nan"), float("inf")
ROWS = pa.table(
    {
        "f": [1.0, NAN, None, -INF, INF, 0.0, -1.5, NAN, None, 5e-324],
        "i": pa.array([3, None, -(2**63), 2**63 - 1, 3, 0, None, -1, 7, 7], pa.int64()),
        "s": ["b", None, "", "a", "é", "B", "aa", "b", "z", None],
        "d": pa.array(
            [Decimal(v) if v is not None else None for v in [3, None, -7, 2, 3, 0, None, -1, 10**29, 7]],
            pa.decimal128(30, 0),
        ),
        "b": [True, None, False, True, False, True, None, None, False, True],
        "n": pa.array(range(10), pa.int32()),
    }
)


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession) -> None:
    register(spark, to_sort=ROWS)


@pytest.mark.parametrize("limit", [None, 4])
@pytest.mark.parametrize("name", "fisdb")
def test_every_direction_and_null_placement(name: str, limit: int | None, spark: SparkSession) -> None:
    child = scan(ROWS)
    for ascending in (True, False):
        for nulls_first in (True, False):
            keys = (SortKey(c(child, name), ascending, nulls_first), SortKey(c(child, "n"), False, False))
            plan = Sort(child, keys)
            text = (
                f"{name} {'ASC' if ascending else 'DESC'} NULLS {'FIRST' if nulls_first else 'LAST'}, n DESC"
            )
            sql = f"SELECT * FROM to_sort ORDER BY {text}"
            if limit is None:
                assert_like_spark(spark, sql, plan, ordered=True, configs=CONFIGS[:2])
            else:
                sql += f" LIMIT {limit} OFFSET 1"
                assert_like_spark(spark, sql, Limit(plan, limit, 1), ordered=True, configs=CONFIGS[:2])


def test_order_by_id_desc_offset_two_limit_one() -> None:
    child = scan(pa.table({"id": [1, 2, 3, 4]}), rows_each=1)
    plan = Limit(Sort(child, (SortKey(c(child, "id"), False, False),)), 1, 2)
    for config in CONFIGS:
        assert rows_of(run(plan, config)) == [(2,)]


def test_many_rows_by_keys_too_wide_to_pack() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 50, 5000) * 2**57, rng.integers(-(2**62), 2**62, 5000)
    child = scan(pa.table({"a": a, "b": b}), rows_each=700)
    keys = (SortKey(c(child, "a"), False, False), SortKey(c(child, "b"), True, True))
    want = sorted(zip(a.tolist(), b.tolist(), strict=True), key=lambda r: (-r[0], r[1]))
    for config in CONFIGS[:2]:
        assert rows_of(run(Sort(child, keys), config), ordered=True) == want
        assert rows_of(run(Limit(Sort(child, keys), 37), config), ordered=True) == want[:37]
