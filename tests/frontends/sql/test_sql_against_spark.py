"""Spark's own parser must read what we print exactly as it reads the original."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kquery_spark.frontends.sql import parse_expression, parse_query, to_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark's parser makes expressions of these right away and leaves the printed call to its analyzer; LIMIT ALL and
# TABLE we print in their plain form. The meaning is the same, the unanalyzed plan is not.
_PRINTED_OTHERWISE = re.compile(r"^(first|last|any_value|overlay)\(|^substr.* from \d\)|limit all|^table ")


def comparable(plan: str) -> str:
    """A plan without expression ids, without the mark of the unresolved and in one letter case."""
    return re.sub(r"#\d+L?", "", plan).replace("'", "").lower()


@pytest.mark.parametrize("kind", ["expressions", "queries"])
def test_spark_reads_the_printed_text_as_it_reads_the_original(kind: str, spark: SparkSession) -> None:
    spark_parser = spark._jsparkSession.sessionState().sqlParser()
    ours, theirs = {
        "expressions": (parse_expression, spark_parser.parseExpression),
        "queries": (parse_query, spark_parser.parsePlan),
    }[kind]
    strings = Path(__file__).with_name(f"{kind}.txt").read_text("utf-8").splitlines()
    assert len(strings) > 80
    different = []
    for text in strings:
        if _PRINTED_OTHERWISE.search(text):
            continue
        printed = to_sql(ours(text))
        if comparable(theirs(printed).toString()) != comparable(theirs(text).toString()):
            different.append((text, printed))
    assert different == []
