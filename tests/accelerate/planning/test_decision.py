"""What ``when="auto"`` weighs: rows that go through joins and aggregates, and long strings that go between stages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark.config.cost import CostModel
from kquery_spark.errors import ConfigError
from tests.conftest import exhaustive, settings

ROWS = 1_500_000
WIDE_ROWS = 30_000


@pytest.fixture(scope="module")
def many(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    directory: Path = tmp_path_factory.mktemp("many")
    random = np.random.default_rng(41)
    keys = random.integers(0, ROWS // 3, ROWS)
    columns = {"id": np.arange(ROWS), "k": keys, "g": keys % 50, "v": random.random(ROWS)}
    pq.write_table(pa.table(columns), directory / "facts.parquet")
    pq.write_table(pa.table({"k": np.arange(ROWS // 3), "w": keys[: ROWS // 3]}), directory / "keys.parquet")
    strings = {f"t{i}": [random.bytes(150).hex() for _ in range(WIDE_ROWS)] for i in range(4)}
    pq.write_table(pa.table({"id": np.arange(WIDE_ROWS), **strings}), directory / "wide.parquet")
    for name in ("facts", "keys", "wide"):
        spark.read.parquet(str(directory / f"{name}.parquet")).createOrReplaceTempView(f"many_{name}")
    return spark


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, sum(v) AS s FROM many_facts GROUP BY k",
        pytest.param("SELECT DISTINCT k, g FROM many_facts", marks=exhaustive),
        pytest.param("SELECT id, v, w FROM many_facts JOIN many_keys USING (k)", marks=exhaustive),
        "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS r FROM many_facts",
    ],
)
def test_many_results_of_many_rows_are_worth_it(many: SparkSession, sql: str):
    explained = kq.explain(many.sql(sql))
    assert explained.accelerated, str(explained.decisions)
    assert kq.verify(many.sql(sql)).ok


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT * FROM many_wide",
        "SELECT *, row_number() OVER (PARTITION BY id % 1000 ORDER BY id) AS r FROM many_wide",
        "SELECT id, max(t0) AS a, max(t1) AS b, max(t2) AS c, max(t3) AS d FROM many_wide GROUP BY id",
    ],
)
def test_long_strings_between_stages_are_not(many: SparkSession, sql: str):
    explained = kq.explain(many.sql(sql))
    assert not explained.accelerated
    assert "shuffling wide strings costs more" in str(explained)


def test_strings_that_no_stage_hands_on_are(many: SparkSession):
    """Neither are they long for being many: the columns that go between stages are counted, not those that are read."""
    counted = kq.explain(
        many.sql("SELECT id % 7 AS g, count(t0) AS n, count(t1) AS m FROM many_wide GROUP BY 1")
    )
    assert counted.accelerated, str(counted.decisions)


def test_the_terms_are_shown_and_add_up(many: SparkSession):
    (decision,) = kq.explain(many.sql("SELECT k, sum(v) AS s FROM many_facts GROUP BY k")).decisions
    lines = str(decision).splitlines()
    assert lines[0] == decision.sentence
    assert len(lines) == len(decision.terms) + 2
    assert any("rows of the largest step: 1,500,000" in line for line in lines)
    total = sum(term.seconds for term in decision.terms)
    assert total > 0
    assert f"{total * 1000:+,.1f} ms  in all" in lines[-1]


def test_the_cost_model_is_a_setting(many: SparkSession):
    query = many.sql("SELECT k, sum(v) AS s FROM many_facts GROUP BY k")
    with settings(many, {"spark.kquery.cost.stageSeconds": "10"}):
        explained = kq.explain(query)
        assert not explained.accelerated
        assert "too little work" in explained.decisions[0].sentence
    assert kq.explain(query).accelerated
    for name, value in (("stageSeconds", "fast"), ("stageSeconds", "-1"), ("stageSecond", "1")):
        with settings(many, {f"spark.kquery.cost.{name}": value}), pytest.raises(ConfigError, match=name):
            CostModel().with_settings({f"spark.kquery.cost.{name}": value})


def test_the_model_survives_as_settings():
    model = CostModel(stage_seconds=0.5, decoded_byte_seconds=1e-9)
    assert CostModel().with_settings(model.settings()) == model
    assert CostModel().min_top_k_bytes == pytest.approx(30e6)
