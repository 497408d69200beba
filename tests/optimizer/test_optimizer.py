"""The optimizer runs its rules in order, and lets none change the columns of a plan."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.errors import ConfigError, PlanError
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
