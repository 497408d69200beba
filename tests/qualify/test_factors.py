"""The factors are the ratios that benchmarks measured."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from kquery_spark.qualify.factors import FACTORS
from kquery_spark.qualify.operators import Kind

ROOT = Path(__file__).parents[2]


def _ratios(source: str) -> dict[str, float]:
    results = json.loads((ROOT / "benchmarks" / "results" / f"{source}.json").read_text())
    if "queries" not in results:
        return {
            name: entry["ratio"]
            for name, entry in results.items()
            if isinstance(entry, dict) and "ratio" in entry
        }
    return {
        query["name"]: query["engines"]["spark"]["median_seconds"]
        / query["engines"]["kquery"]["median_seconds"]
        for query in results["queries"]
    }


@pytest.mark.parametrize("kind", [kind for kind, factor in FACTORS.items() if factor.operations])
def test_a_factor_is_what_was_measured(kind):
    factor = FACTORS[kind]
    ratios = [_ratios(factor.source)[name] for name in factor.operations]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    assert (factor.low, factor.expected, factor.high) == pytest.approx(
        (min(ratios), mean, max(ratios)), abs=0.06
    )


def test_every_kind_has_a_factor():
    assert set(FACTORS) == set(Kind)
    assert all(1 < f.low <= f.expected <= f.high and f.weight > 0 for f in FACTORS.values())
