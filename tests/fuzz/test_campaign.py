"""Campaigns: several seeds by turns, a record that a run goes on from, and what the command line says."""

from __future__ import annotations

import json

import click
import pytest

from kquery_spark.cli.fuzzing import Reporter, seed_list
from kquery_spark.fuzz import run as run_module
from kquery_spark.fuzz.batch_results import Judged
from kquery_spark.fuzz.batches import random_batch
from kquery_spark.fuzz.expressions import Expr
from kquery_spark.fuzz.oracle import Outcome
from kquery_spark.fuzz.record import Finding, Record
from kquery_spark.fuzz.run import Campaign, fuzz


class FakeOracle:
    """Every expression is the same in both engines, but for calls of one function."""

    ran = None

    def __init__(self, *given):
        pass

    def run(self, batch):
        self.ran.append((batch.shape, len(batch.exprs)))
        return [
            Judged(e, Outcome("rows" if "md5" in e.text else "same"), in_process=True) for e in batch.exprs
        ]


@pytest.fixture
def fake(monkeypatch):
    FakeOracle.ran = []
    monkeypatch.setattr(run_module, "BatchOracle", FakeOracle)
    return FakeOracle.ran


def test_a_run_goes_on_where_its_record_ends(spark, fake, tmp_path, monkeypatch):
    monkeypatch.setattr(run_module.Fuzzer, "_look_into", lambda *given: None)
    path = tmp_path / "deep" / "record.json"
    first = fuzz(spark, Campaign((1, 2), cases=300, only="expressions"), path)
    assert first.cases >= 300
    assert abs(first.batches[1] - first.batches[2]) <= 1
    sizes = [
        (random_batch(seed, n).shape, len(random_batch(seed, n).exprs)) for n in range(9) for seed in (1, 2)
    ]
    assert fake == sizes[: len(fake)]
    assert Record.load(path) == first
    second = fuzz(spark, Campaign((1, 2), cases=first.cases + 1, only="expressions"), path)
    assert fake == sizes[: len(fake)]
    assert sum(second.batches.values()) == sum(first.batches.values()) + 1
    data = json.loads(path.read_text())
    assert data["cases"] == second.cases
    assert sum(data["sums"]["format"].values()) == sum(data["counts"].values())
    assert [p.name for p in path.parent.iterdir()] == ["record.json"]


def test_a_record_says_what_was_left_to_spark_and_what_differs():
    record = Record()
    record.batches[5] += 1
    for outcome, count in (
        (Outcome("same"), 7),
        (Outcome("left to spark", "no such type"), 2),
        (Outcome("rows"), 1),
    ):
        for _ in range(count):
            record.add("projected", "orc", True, outcome, in_process=outcome.kind == "same")
    record.findings.append(Finding(5, 0, "rows", "1 of 2 values differ", "SELECT 1", {"a": "b"}))
    text = str(record)
    assert "8 cases compared" in text and "left to Spark: 2 of 10 (20.0%)" in text and "1 differ" in text
    assert record.reasons == {"left to spark: no such type": 2}
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_what_differs_in_many_batches_is_looked_into_once(spark, fake, monkeypatch):
    looked = []

    def look(self, store, seed, number, batch, expr, outcome):
        looked.append(expr.text)
        self._known.add((outcome.kind, expr.text))

    monkeypatch.setattr(run_module.Fuzzer, "_look_into", look)
    record = fuzz(spark, Campaign((1,), cases=3000, only="expressions"))
    assert record.mismatches >= len(looked) >= 1
    assert len(looked) == len(set(looked))


def test_seeds_and_an_end_are_asked_for(tmp_path):
    assert seed_list("3,1,3", 0) == (3, 1)
    assert seed_list(None, 7) == (7,)
    with pytest.raises(click.UsageError, match="commas"):
        seed_list("1;2", 0)
    with pytest.raises(ValueError, match="for how long"):
        Campaign((1,))
    reporter = Reporter(tmp_path / "found")
    reporter.progress(Record())
    assert Campaign((1,), cases=5).is_of_queries(15)
    assert not Campaign((1,), cases=5, only="expressions").is_of_queries(15)
    assert Expr("i", "int").sql() == "i"
