"""Fuzzing as a part of make check: 2,500 random queries and expressions, or five minutes; none may differ from Spark."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from kquery_spark.fuzz.run import Campaign, fuzz

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = float(os.environ.get("KQUERY_FUZZ_SECONDS", "300"))
SEEDS = (1, 2, 3, 4)
#: The same cases each time, so that a change can be distinguished from luck; make fuzz has others.
CASES = int(os.environ.get("KQUERY_FUZZ_CASES", "2500"))


@pytest.mark.timeout(SECONDS + 600)  # a batch that was begun is finished, and what differs is shrunk
def test_a_campaign_finds_no_difference(spark: SparkSession) -> None:
    record = fuzz(
        spark, Campaign(SEEDS, seconds=SECONDS, cases=CASES), found=lambda mismatch: print(mismatch)
    )
    assert record.findings == [], str(record)
    assert record.mismatches == 0, str(record)
    outcomes = record.by(lambda key: key[3])
    assert outcomes["same"] > min(CASES / 2, SECONDS / 10), str(record)  # 40 times as many on an idle machine
    assert outcomes["left to spark"] < sum(outcomes.values()) / 5, str(record)
