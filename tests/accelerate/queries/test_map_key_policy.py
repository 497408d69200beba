"""What builds maps follows ``spark.sql.mapKeyDedupPolicy`` in each frontend."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark.errors import ExecutionError
from kquery_spark.spark_bridge.frames.pyspark_names import arrow_table
from tests.conftest import settings

LAST_WINS = {"spark.sql.mapKeyDedupPolicy": "LAST_WIN"}
MAPS = [
    "map(1, 'a', k, 'b', 2, 'c')",
    "map_from_arrays(array(k, 1, k), array('a', 'b', 'c'))",
    "map_from_entries(array(struct(k, 'a'), struct(k, 'b')))",
    "map_concat(map(k, 1L), map(1L, k), map(k, 3L))",
    "str_to_map(concat('a:1,b:2,a:', k))",
    "transform_keys(map(k, 'x', k + 1, 'y', 7, 'z'), (x, y) -> x DIV 2)",
    "map_from_arrays(array(-0.0D, 0.0D, double(k)), array(1, 2, 3))",
    "map_from_arrays(array(-0.0D, double(k)), array(1, 2))",
    "map(make_dt_interval(int(k)), 1, make_dt_interval(1), k)",
]


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("keys") / "rows")
    spark.sql("SELECT id + 1 AS k FROM range(4)").write.parquet(path)
    return path


@pytest.mark.parametrize("call", MAPS)
def test_last_key_wins(spark: SparkSession, files: str, call: str) -> None:
    with settings(spark, LAST_WINS):
        frame = spark.read.parquet(files).selectExpr("k", f"map_entries({call}) AS entries").orderBy("k")
        expected = repr(arrow_table(frame).to_pylist())
        fast = kq.kquery_plan(frame, when="always", fallback="error")
        assert repr(arrow_table(fast).to_pylist()) == expected
        if "DIV" not in call:  # the types of its keys differ in the plan of the engine's own SQL
            context = kq.ExecutionContext(spark)
            context.register_parquet("t", files)
            own = context.sql(f"SELECT k, map_entries({call}) AS entries FROM t ORDER BY k").to_arrow()
            assert repr(own.to_pylist()) == expected


def test_equal_keys_are_an_error_of_their_own(files: str) -> None:
    path = Path(files)
    for ansi in (True, False):
        context = kq.ExecutionContext(ansi=ansi)
        context.register_parquet("t", path)
        with pytest.raises(ExecutionError, match="DUPLICATED_MAP_KEY"):
            context.sql("SELECT map(k, 1, k, 2) FROM t").to_arrow()
