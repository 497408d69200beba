"""Five minutes of fuzzing as a part of make check: random queries and expressions, none of which may differ from Spark."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from kquery_spark.fuzz.run import Campaign, fuzz

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = float(os.environ.get("KQUERY_FUZZ_SECONDS", "300"))
SEEDS = (1, 2, 3, 4)


@pytest.mark.timeout(SECONDS + 600)  # a batch that was begun is finished, and what differs is shrunk
def test_five_minutes_find_no_difference(spark: SparkSession) -> None:
    record = fuzz(spark, Campaign(SEEDS, seconds=SECONDS), found=lambda mismatch: print(mismatch))
    assert record.findings == [], str(record)
    assert record.mismatches == 0, str(record)
    outcomes = record.by(lambda key: key[3])
    assert outcomes["same"] > SECONDS / 10, str(record)  # 40 times as many on an idle machine
    assert outcomes["left to spark"] < sum(outcomes.values()) / 5, str(record)
