"""Functions at the ends of their ranges: a sample of what ``python -m tests.functions.boundaries`` compares with Spark."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kquery_spark.fuzz.settings import UNCOMPILED
from tests.conftest import exhaustive, settings
from tests.functions.boundaries import Probe
from tests.functions.boundary_expressions import EXPRESSIONS
from tests.sql.engines import SPARK_SETTINGS

#: The number of expressions of each group that ``make check`` runs, and the number that ``make test-all`` runs.
QUICK, LONG = 4, 60


def sample(group: str, count: int) -> list[str]:
    """Return the expressions of a group with the smallest hashes."""
    return sorted(EXPRESSIONS[group], key=lambda expression: zlib.crc32(expression.encode()))[:count]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("count", [QUICK, pytest.param(LONG, marks=exhaustive)])
@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize("group", EXPRESSIONS)
def test_a_sample_has_spark_s_answers(
    spark: SparkSession, tmp_path: Path, group: str, ansi: bool, count: int
) -> None:
    session = spark.newSession()
    with settings(session, {**SPARK_SETTINGS, **UNCOMPILED, "spark.kquery.driverBytes": "8m"}):
        probe = Probe(session, tmp_path, ansi)
        different = {
            expression: found
            for expression in sample(group, count)
            if (found := list(probe.findings(expression)))
        }
    assert not different
