"""The optimizer runs its rules in order, and lets none change the columns of a plan."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kquery_spark as kq
from kquery_spark.errors import ConfigError, PlanError, Unsupported
from kquery_spark.logical import LogicalPlan, Projection
from kquery_spark.optimizer import optimizer


def plan() -> LogicalPlan:
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"a": [1, 2], "b": ["x", "y"]}))
    return context.sql("SELECT a, b FROM t WHERE a > 1").analyzed.plan


def drop_a_column(found: LogicalPlan) -> LogicalPlan:
    return Projection(found, tuple(kq_named(found))[:1])


def kq_named(found: LogicalPlan):
    from kquery_spark.expr import Named

    return [Named(found.column(name), name) for name in found.schema.names]


def test_a_rule_that_changes_the_columns_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer, "RULES", (*optimizer.RULES, drop_a_column))
    with pytest.raises(
        PlanError, match=r"rule drop_a_column changed .* from \(a bigint, b string\) to \(a bigint\)"
    ):
        optimizer.optimize(plan())
    assert optimizer.optimize(plan(), ["drop_a_column"]).schema.names == ["a", "b"]


def test_rules_run_in_their_order_and_may_be_switched_off() -> None:
    steps = optimizer.optimize_steps(plan())
    assert [step.rule for step in steps] == [rule.__name__ for rule in optimizer.RULES]
    fewer = optimizer.optimize_steps(plan(), ["constant_folding"])
    assert "constant_folding" not in [step.rule for step in fewer]
    with pytest.raises(ConfigError, match="unknown optimizer rule nonsense"):
        optimizer.optimize_steps(plan(), ["nonsense"])


@pytest.mark.parametrize("shared", ["", " AND b = 'y'"])
def test_a_disjunction_of_many_terms_stays_shallow(shared: str) -> None:
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"a": [1, 2, 700], "b": ["x", "y", "y"]}))
    terms = [f"(a = {n} AND b < 'z{n}'{shared})" for n in range(500)]
    found = context.sql(f"SELECT a FROM t WHERE {' OR '.join(terms)} ORDER BY a").to_arrow()
    assert found["a"].to_pylist() == ([2] if shared else [1, 2])


def context_with_random_signs() -> kq.ExecutionContext:
    """A context with ``flip``, a nondeterministic function that negates some values."""

    def flip(values: pa.Array) -> pa.Array:
        signs = pc.if_else(pc.greater(pc.random(len(values)), 0.5), 1, -1)
        return pc.multiply(values, signs)

    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"x": range(1, 1001)}))
    context.register_function("flip", flip, "bigint", deterministic=False)
    return context


@pytest.mark.parametrize(
    "keys",
    ["SELECT flip(x) AS k, count(*) AS c FROM t GROUP BY flip(x)", "SELECT DISTINCT flip(x) AS k FROM t"],
)
def test_filters_do_not_evaluate_a_nondeterministic_key_again(keys: str) -> None:
    found = context_with_random_signs().sql(f"SELECT k FROM ({keys}) WHERE k > 0").to_arrow()["k"].to_pylist()
    assert min(found) > 0


def test_a_lateral_query_that_reads_a_nondeterministic_value_twice_is_declined() -> None:
    context = context_with_random_signs()
    with pytest.raises(Unsupported, match="selects a value of the query around it"):
        context.sql("SELECT r, s FROM t, LATERAL (SELECT r, r AS s FROM (SELECT flip(t.x) AS r))").to_arrow()
    with pytest.raises(Unsupported, match="selects a value of the query around it"):
        context.sql("SELECT r FROM t, LATERAL (SELECT r FROM (SELECT flip(t.x) AS r) WHERE r > 0)").to_arrow()
