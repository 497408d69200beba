"""The fast reject must only ever say what planning in full would say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquery_spark.accelerate.api import kquery_plan
from kquery_spark.accelerate.planning.decision import decide
from kquery_spark.accelerate.planning.fast_reject import cannot_gain as looked_at
from kquery_spark.accelerate.planning.pipeline import plan_frame
from kquery_spark.spark_bridge.relations.catalog_snapshot import spark_plan
from kquery_spark.spark_bridge.session.bridge import get_bridge
from tests.conftest import settings

PASSING = (
    "SELECT 1 AS one",
    "SELECT id + 1 AS next FROM t WHERE name LIKE 'a%' LIMIT 3",
    "SELECT id FROM t UNION ALL SELECT id * 2 FROM t",
    "SELECT id, item FROM t LATERAL VIEW explode(array(id, id + 1)) AS item",
    "SELECT * FROM range(5)",
    "SELECT * FROM t ORDER BY id LIMIT 2",
    "SELECT id + 1 AS next FROM t WHERE id < 3 ORDER BY name DESC, next LIMIT 2",
)
WORKING = (
    "SELECT * FROM t",  # rows of files may come to the driver as Arrow
    "SELECT id FROM t WHERE id > 1",
    "SELECT count(*) AS n FROM t",
    "SELECT DISTINCT name FROM t",
    "SELECT * FROM t WHERE id > (SELECT avg(id) FROM t)",
    "SELECT * FROM t WHERE id IN (SELECT id + 1 FROM t)",
    "SELECT * FROM t ORDER BY id",
    "SELECT * FROM t ORDER BY id LIMIT 2 OFFSET 1",
    "SELECT name, count(*) AS n FROM t GROUP BY name ORDER BY n LIMIT 2",
    "SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.id ORDER BY a.id LIMIT 2",
    "SELECT row_number() OVER (ORDER BY id) AS r FROM t",
    "SELECT a.id FROM t AS a CROSS JOIN t AS b",
)


def cannot_gain(frame):
    bridge = get_bridge(frame.sparkSession)
    return looked_at(bridge, spark_plan(frame, bridge).optimized)


@pytest.fixture(scope="module")
def table(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("quick") / "t.parquet"
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", None]}), file)
    spark.read.parquet(str(file)).createOrReplaceTempView("t")
    return "t"


@pytest.mark.parametrize("query", PASSING)
def test_what_passes_rows_on_falls_back_to_spark_as_planning_would(spark: Any, table: str, query: str):
    frame = spark.sql(query)
    assert cannot_gain(frame)
    planned = plan_frame(frame)
    assert not any(decide(planned, part).accelerate for part in planned.parts)
    assert kquery_plan(frame) is frame


@pytest.mark.parametrize("query", WORKING)
def test_what_works_on_rows_is_planned(spark: Any, table: str, query: str):
    assert not cannot_gain(spark.sql(query))


def test_the_first_rows_of_a_large_file_are_planned(spark: Any, table: str):
    frame = spark.sql("SELECT * FROM t ORDER BY id LIMIT 2")
    assert cannot_gain(frame)
    # a file is large where nothing else costs anything
    with settings(spark, {"spark.kquery.cost.planningSeconds": "0", "spark.kquery.cost.stageSeconds": "0"}):
        assert not cannot_gain(frame)


def test_what_passes_rows_on_still_says_why_when_it_must_not_stay(spark: Any, table: str):
    planned = kquery_plan(spark.sql("SELECT id FROM t"), fallback="error", when="always")
    assert sorted(r.id for r in planned.collect()) == [1, 2, 3]
