"""Each rule on queries of its own: the plan before and after as text, and both sides executed.

A fixture is a query (``#``), the plan that reaches the rule, and the plan it makes. Write new ones with
``KQUERY_FIXTURES=write pytest tests/optimizer`` and read what came out before committing it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquery_spark.expr import walk
from kquery_spark.logical import LogicalPlan, walk_plan
from kquery_spark.logical.subqueries import Subquery
from kquery_spark.optimizer import RULES
from tests.frontends.sql.analyzer.engine import Tables, analyzed, execute, rows

FIXTURES = Path(__file__).parent / "fixtures"
#: Rules for what the SQL of contexts does not have; tests/variants/test_shredded.py has the plans of this one.
NOT_IN_SQL = {"variant_field_pruning"}
DIRECTORY = tempfile.TemporaryDirectory()
EVENTS = pa.table(
    {
        "id": pa.array(range(1000)),
        "day": pa.array([n // 10 if n % 7 else None for n in range(1000)], pa.int32()).cast(pa.date32()),
        "mixed": pa.array([n * 37 % 1000 for n in range(1000)]),
    }
)
pq.write_table(EVENTS, f"{DIRECTORY.name}/events.parquet", row_group_size=100)
TABLES = Tables(
    {
        "sales": pa.table(
            {
                "id": pa.array([1, 2, 3, 4, 5, None], pa.int32()),
                "item": pa.array([1, 1, 2, 3, None, 9], pa.int32()),
                "price": pa.array([10, 20, 30, None, 50, 60], pa.int64()),
                "qty": pa.array([1, 2, 0, 4, 5, 6], pa.int64()),
                "weight": pa.array([0.5, 1.5, 2.5, None, 4.5, 5.5], pa.float64()),
            }
        ),
        "items": pa.table(
            {
                "item": pa.array([1, 2, 3, 4, None], pa.int32()),
                "name": pa.array(["a", "b", "c", None, "e"]),
                "cost": pa.array([5, 6, None, 8, 9], pa.int64()),
            }
        ),
        "notes": pa.table({"item": pa.array([1, 3], pa.int32()), "text": pa.array(["x", "y"])}),
    },
    directory=Path(DIRECTORY.name),
)


def _read(file: Path) -> list[tuple[str, str, str]]:
    cases = []
    for block in file.read_text().split("\n\n"):
        sql, _, plans = block.strip().partition("\n")
        before, _, after = plans.partition("\n->\n")
        cases.append((sql.removeprefix("# "), before, after))
    return cases


def _steps(sql: str, rule: str) -> tuple[LogicalPlan, LogicalPlan]:
    plan = analyzed(sql, TABLES).plan
    for one in RULES:
        after = one(plan)
        if one.__name__ == rule:
            return plan, after
        plan = after
    raise AssertionError(f"there is no rule {rule}")


def _runs(plan: LogicalPlan) -> bool:
    return not any(isinstance(e, Subquery) for n in walk_plan(plan) for x in n.expressions for e in walk(x))


def _finished(plan: LogicalPlan, rule: str) -> LogicalPlan:
    """A plan with subqueries can only run once they are joins."""
    if not _runs(plan):
        return next(r for r in RULES if r.__name__ == "subquery_to_join")(plan)
    return plan


CASES = [(f.stem, sql) for f in sorted(FIXTURES.glob("*.txt")) for sql, _, _ in _read(f)]


@pytest.mark.parametrize(("rule", "sql"), CASES)
def test_a_rule_makes_the_plan_of_its_fixture_and_changes_no_row(rule: str, sql: str):
    file = FIXTURES / f"{rule}.txt"
    before, after = _steps(sql, rule)
    if os.environ.get("KQUERY_FIXTURES") == "write":
        others = [c for c in _read(file) if c[0] != sql]
        cases = [*others, (sql, str(before), str(after))]
        order = [s for r, s in CASES if r == rule]
        cases.sort(key=lambda c: order.index(c[0]))
        file.write_text("\n\n".join(f"# {s}\n{b}\n->\n{a}" for s, b, a in cases) + "\n")
    expected = next(c for c in _read(file) if c[0] == sql)
    assert (str(before), str(after)) == expected[1:]
    assert after.schema.names == before.schema.names
    actual, reference = rows(execute(after)), rows(execute(_finished(before, rule)))
    if "limit" in sql.lower() and "order by" not in sql.lower():
        assert len(actual) == len(reference)
    else:
        assert sorted(map(repr, actual)) == sorted(map(repr, reference))


def test_every_rule_has_a_fixture_that_it_changes():
    for rule in (rule for rule in RULES if rule.__name__ not in NOT_IN_SQL):
        file = FIXTURES / f"{rule.__name__}.txt"
        assert file.exists(), f"write {file.name}"
        assert any(before != after for _, before, after in _read(file)), f"{file.name} shows no change"
