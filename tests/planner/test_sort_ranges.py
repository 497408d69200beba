"""Tasks share the last sort by ranges of its first key, taken from footers or from a sample; the answer is one task's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.optimizer import optimize
from kquery_spark.planner import plan_query
from kquery_spark.runtime.local import LocalExecutor
from kquery_spark.stages import StageGraph, build_stages

ROWS = 30_000
SHARED = EngineConfig(small_bytes=0, driver_bytes=0, parallelism=3, split_bytes=60_000)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> kq.ExecutionContext:
    directory: Path = tmp_path_factory.mktemp("shared")
    rng = np.random.default_rng(5)
    skewed = np.where(rng.random(ROWS) < 0.9, 7, rng.integers(0, 100, ROWS))
    table = pa.table(
        {
            "id": np.arange(ROWS),
            "day": pa.array(np.sort(rng.integers(0, 900, ROWS)).astype(np.int32)).cast(pa.date32()),
            "value": pa.array(rng.normal(0, 1e6, ROWS), mask=rng.random(ROWS) < 0.02),
            "price": pa.array(rng.integers(0, 10**7, ROWS))
            .cast(pa.decimal128(20, 0))
            .cast(pa.decimal128(22, 2)),
            "word": [f"customer {i}" for i in rng.integers(0, 5_000, ROWS)],
            "kind": [("north", "south")[i] for i in rng.integers(0, 2, ROWS)],
            "skewed": skewed,
            "code": [f"code {i:07d}" for i in range(ROWS)],
            "amount": pa.array(np.arange(ROWS) * 25).cast(pa.decimal128(20, 0)).cast(pa.decimal128(22, 2)),
            "same": np.zeros(ROWS, np.int64),
        }
    )
    pq.write_table(table, directory / "t.parquet", row_group_size=2_000)
    pq.write_table(table.slice(0, 200), directory / "small.parquet")
    (directory / "t.csv").write_text(
        "id,value\n" + "".join(f"{i},{i * 7919 % 30_011}\n" for i in range(ROWS))
    )
    found = kq.ExecutionContext()
    found.register_parquet("t", str(directory / "t.parquet"))
    found.register_parquet("small", str(directory / "small.parquet"))
    found.register_csv("lines", str(directory / "t.csv"), schema="id bigint, value bigint", header=True)
    return found


def graphs(
    context: kq.ExecutionContext, sql: str, config: EngineConfig = SHARED
) -> tuple[StageGraph, StageGraph]:
    """The stages with a shared sort, and without."""
    plan = optimize(context.sql(sql).plan)
    shared, one = (plan_query(plan, config, shared_sort=s) for s in (True, False))
    return build_stages(shared, config), build_stages(one, config)


def check(context: kq.ExecutionContext, sql: str, config: EngineConfig = SHARED) -> StageGraph:
    """The stages with a shared sort, whose rows are those of one task in the same order."""
    shared, one = graphs(context, sql, config)
    found = LocalExecutor(shared, config).table()
    assert len(one.result.tasks) == 1
    assert found.num_rows and found.equals(LocalExecutor(one, config).table())
    return shared


def rows_by_task(context: kq.ExecutionContext, sql: str, config: EngineConfig = SHARED) -> list[int]:
    """Rows that each task of the last stage gives."""
    graph = check(context, sql, config)
    counts = []
    for index in range(len(graph.result.tasks)):
        last = replace(graph.result, tasks=graph.result.tasks[: index + 1])
        if graph.result.is_map:
            counts.append(LocalExecutor(replace(graph, stages=(last,)), config).table().num_rows)
        else:
            counts.append(
                LocalExecutor(replace(graph, stages=(*graph.stages[:-1], last)), config).table().num_rows
            )
    return [b - a for a, b in zip([0, *counts[:-1]], counts, strict=True)]


@pytest.mark.parametrize(
    "order",
    [
        "value, id",
        "value DESC, id",
        "value DESC NULLS FIRST, id DESC",
        "value NULLS LAST, id",
        "price, id",
        "price DESC, id",
        "word, id",
        "word DESC, id",
        "day DESC, id",
        "value * 2 + id, id",
        "upper(word), id",
        "kind, id DESC",
        "code",
        "amount DESC",
        "id DESC",
    ],
)
def test_the_order_is_that_of_one_task(context: kq.ExecutionContext, order: str) -> None:
    assert "-> range(" in str(check(context, f"SELECT * FROM t ORDER BY {order}"))


@pytest.mark.parametrize(
    "order",
    [
        "value, id",
        "price DESC, id",
        "word, id",
        "day DESC, id",
        "word || 'x', id",
        "code DESC",
        "amount",
        "id DESC",
    ],
)
def test_tasks_get_about_as_many_rows_each(context: kq.ExecutionContext, order: str) -> None:
    counts = rows_by_task(context, f"SELECT id, value FROM t ORDER BY {order}")
    assert len(counts) == 3
    assert max(counts) < 1.4 * ROWS / 3


def test_files_in_the_order_of_the_key_are_not_shuffled(context: kq.ExecutionContext) -> None:
    for order in ("id", "day, value, id"):
        graph = check(context, f"SELECT * FROM t WHERE skewed < 90 ORDER BY {order}")
        assert len(graph.stages) == 1 and len(graph.result.tasks) > 1, str(graph)


def test_the_key_may_come_from_below_joins_and_groups(context: kq.ExecutionContext) -> None:
    joined = "SELECT a.id, b.word, a.value v FROM t a JOIN small b ON a.skewed = b.skewed"
    for sql in (
        "SELECT day, id, count(*) FROM t GROUP BY day, id ORDER BY day DESC, id",
        f"SELECT v, word, id FROM ({joined}) ORDER BY v DESC, id, word",
        "SELECT word w, id FROM t ORDER BY lower(w), id",
        "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY word ORDER BY id) r, value FROM t) ORDER BY value, id",
    ):
        assert "-> range(" in str(check(context, sql)), sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT word, sum(id) s FROM t GROUP BY word ORDER BY s, word",  # known when the query has run
        "SELECT id FROM t ORDER BY same, id",
        "SELECT id FROM (SELECT id, value FROM t UNION ALL SELECT id, value FROM small) ORDER BY value, id",
        "SELECT id FROM t ORDER BY struct(value), id",
        "SELECT id FROM t WHERE id < 0 OR value > 1 ORDER BY 1000 / (id - id), id",  # fails where rows are read
    ],
)
def test_one_task_sorts_where_nothing_is_known(context: kq.ExecutionContext, sql: str) -> None:
    shared, one = graphs(context, sql)
    assert len(shared.result.tasks) == 1
    assert str(shared) == str(one)


def test_a_value_that_most_rows_have_is_not_cut(context: kq.ExecutionContext) -> None:
    counts = rows_by_task(context, "SELECT skewed, id FROM t ORDER BY skewed, id")
    assert len(counts) == 3 and max(counts) > 0.85 * ROWS


def test_lines_are_sampled_from_their_first_block(context: kq.ExecutionContext) -> None:
    assert "-> range(" in str(check(context, "SELECT * FROM lines ORDER BY value, id"))


def test_a_limit_or_a_small_input_takes_one_task(context: kq.ExecutionContext) -> None:
    default = replace(SHARED, small_bytes=EngineConfig().small_bytes)
    assert len(graphs(context, "SELECT * FROM t ORDER BY value LIMIT 10")[0].result.tasks) == 1
    assert len(graphs(context, "SELECT * FROM t ORDER BY value", default)[0].result.tasks) == 1


def test_spilled_ranges(context: kq.ExecutionContext) -> None:
    check(context, "SELECT * FROM t ORDER BY word, id", replace(SHARED, memory_bytes=100_000, batch_rows=500))
