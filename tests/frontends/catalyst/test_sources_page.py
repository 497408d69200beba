"""The page of sources: current, and of features that the code declines by."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kquery_spark.errors import Unsupported
from kquery_spark.sources import file_features
from kquery_spark.sources.csv import features as csv
from kquery_spark.sources.delta import features as delta
from kquery_spark.sources.features import Feature
from kquery_spark.sources.iceberg import features as iceberg
from kquery_spark.sources.orc import features as orc
from kquery_spark.sources.parquet import features as parquet
from kquery_spark.spark_bridge.hadoop import object_store_features as stores
from tests.docs.sources_page import sources_page

ROOT = Path(__file__).parents[3]
DECLINED = {
    name: value
    for module in (file_features, parquet, orc, csv, delta, iceberg, stores)
    for name, value in vars(module).items()
    if isinstance(value, Feature)
}


def test_the_page_is_up_to_date() -> None:
    command = "python -m tests.docs.sources_page docs/sources.md"
    assert (ROOT / "docs" / "sources.md").read_text() == sources_page(), f"write it anew: {command}"


@pytest.mark.parametrize("name", sorted(DECLINED))
def test_the_code_declines_by_it(name: str) -> None:
    files = (ROOT / "kquery_spark").rglob("*.py")
    calls = [re.findall(rf"\b{name}\.declined\(", file.read_text()) for file in files]
    assert any(calls), f"nothing raises {name}.declined()"


@pytest.mark.parametrize("name", sorted(DECLINED))
def test_it_is_on_the_page(name: str) -> None:
    assert re.search(rf"\| (\w+: )?{re.escape(DECLINED[name].name)} \|", sources_page())


def test_a_reason_takes_the_words_of_a_case() -> None:
    feature = Feature("many files", reason="the {count:,} files of {path} are not supported")
    assert feature.reader == "Spark" and feature.remark == "the ... files of ... are not supported"
    with pytest.raises(Unsupported, match=r"the 1,000 files of /a are not supported"):
        raise feature.declined(count=1000, path="/a")
