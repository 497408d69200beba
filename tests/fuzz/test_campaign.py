"""Fuzzing as a part of make check: 1,000 random queries and expressions, or five minutes; none may differ from Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kquery_spark.fuzz.run import Campaign, fuzz
from tests.conftest import exhaustive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = 300.0
SEEDS = (1, 2, 3, 4)


@pytest.mark.timeout(SECONDS + 600)  # a batch that was begun is finished, and what differs is shrunk
@pytest.mark.parametrize("cases", [1000, pytest.param(2500, marks=exhaustive)])
def test_a_campaign_finds_no_difference(spark: SparkSession, cases: int) -> None:
    """The cases are the same in each run, so that a change shows; ``make fuzz`` has others."""
    record = fuzz(spark, Campaign(SEEDS, seconds=SECONDS, cases=cases), found=print)
    assert record.findings == [], str(record)
    assert record.mismatches == 0, str(record)
    outcomes = record.counts_by(lambda key: key[3])
    assert outcomes["same"] > min(cases / 2, SECONDS / 10), str(record)  # 40 times as many on an idle machine
    assert outcomes["fallback"] < sum(outcomes.values()) / 5, str(record)
