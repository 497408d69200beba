"""Semi joins on keys that follow from other join keys: which inputs get one, and that the result is the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.logical import Join, JoinKind, LogicalPlan, walk_plan
from kquery_spark.optimizer import optimize
from kquery_spark.optimizer import semi_join_reducers as reducers
from tests.frontends.sql.analyzer.engine import execute, rows

SQL = """
SELECT n_name, count(*) AS n, sum(o_total) AS total
FROM customer, orders, supplier, lines, nation, region
WHERE c_id = o_customer AND l_order = o_id AND l_supplier = s_id AND {} AND {} AND n_region = r_id AND {}
GROUP BY n_name
"""
TRANSITIVE = ("c_nation = s_nation", "s_nation = n_id")
ONE_REGION = "r_name = 'ASIA'"


def column(count: int, values: int, null_every: int = 0) -> list[int | None]:
    """Return ``count`` values below ``values``, NULL in every ``null_every``-th row."""
    return [None if null_every and i % null_every == 0 else i * 7 % values for i in range(count)]


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> kq.ExecutionContext:
    tables: dict[str, dict[str, list]] = {
        "customer": {"c_id": list(range(2000)), "c_nation": column(2000, 25, null_every=11)},
        "orders": {"o_id": list(range(6000)), "o_customer": column(6000, 2000), "o_total": column(6000, 900)},
        "supplier": {"s_id": list(range(100)), "s_nation": column(100, 25, null_every=13)},
        "lines": {"l_order": column(20_000, 6000), "l_supplier": [i * i % 100 for i in range(20_000)]},
        "nation": {
            "n_id": [*range(24), None],
            "n_name": [f"nation {i}" for i in range(25)],
            "n_region": [i % 5 for i in range(25)],
        },
        "region": {"r_id": list(range(5)), "r_name": ["AFRICA", "AMERICA", "ASIA", "EUROPE", None]},
    }
    directory: Path = tmp_path_factory.mktemp("reducers")
    new_context = kq.ExecutionContext()
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), directory / f"{name}.parquet")
        new_context.register_parquet(name, str(directory / f"{name}.parquet"))
    return new_context


@pytest.fixture(autouse=True)
def _small_inputs_are_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reducers, "_MIN_INPUT_ROWS", 1000)
    monkeypatch.setattr(reducers, "_MAX_REDUCER_BYTES", 2000)


def analyzed(context: kq.ExecutionContext, *conditions: str) -> LogicalPlan:
    return context.sql(SQL.format(*conditions)).analyzed.plan


def semi_joins(plan: LogicalPlan) -> list[Join]:
    return [node for node in walk_plan(plan) if isinstance(node, Join) and node.kind is JoinKind.SEMI]


def test_a_join_reduces_the_input_that_has_an_equal_column(context: kq.ExecutionContext):
    plan = analyzed(context, *TRANSITIVE, ONE_REGION)
    (semi,) = semi_joins(optimize(plan))
    assert list(map(str, semi.keys)) == ["#c_nation = #n_id"]
    assert semi.left.schema.names[0] == "c_id"
    reduced, plain = execute(optimize(plan)), execute(optimize(plan, ["join_order"]))
    assert 0 < reduced.num_rows < 25
    assert sorted(rows(reduced)) == sorted(rows(plain))


@pytest.mark.parametrize(
    "keys",
    [
        ("c_nation = s_nation", "s_nation <=> n_id"),
        ("c_nation <=> s_nation", "s_nation = n_id"),
        ("c_nation + 1 = s_nation", "s_nation = n_id"),
        ("c_nation = n_id", "s_nation = n_id"),
    ],
)
def test_other_keys_give_no_semi_join(context: kq.ExecutionContext, keys: tuple[str, str]):
    plan = analyzed(context, *keys, ONE_REGION)
    optimized = optimize(plan)
    assert semi_joins(optimized) == []
    assert sorted(rows(execute(optimized))) == sorted(rows(execute(optimize(plan, ["join_order"]))))


def test_a_reducer_that_keeps_most_rows_is_not_used(context: kq.ExecutionContext):
    assert semi_joins(optimize(analyzed(context, *TRANSITIVE, "r_name IS NOT NULL"))) == []


@pytest.mark.parametrize(("limit", "value"), [("_MIN_INPUT_ROWS", 100_000), ("_MAX_REDUCER_BYTES", 10)])
def test_small_inputs_and_large_reducers_give_no_semi_join(
    context: kq.ExecutionContext, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
):
    monkeypatch.setattr(reducers, limit, value)
    assert semi_joins(optimize(analyzed(context, *TRANSITIVE, ONE_REGION))) == []
