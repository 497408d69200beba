"""Filters on partition columns alone: Spark decides them for every folder before it reads a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquery_spark import kquery_plan
from kquery_spark.spark_bridge.failures import error_class
from tests.accelerate.checks import check


def table(spark: Any, folder: Path, folders: dict[str, list[int]]) -> Any:
    """Files with a column v in folders named by a string k."""
    for name, rows in folders.items():
        (folder / f"k={name}").mkdir(parents=True)
        pq.write_table(pa.table({"v": pa.array(rows, pa.int64())}), folder / f"k={name}" / "0.parquet")
    return spark.read.schema("v bigint, k string").parquet(str(folder))


@pytest.mark.parametrize(
    "conditions",
    [
        ["k > 0"],
        ["v > 100 AND k > 0"],
        ["v > 100", "k > 0"],
        ["v > 100 AND CAST(k AS INT) = 1"],
        ["v IS NULL AND 10 / CAST(length(k) - 1 AS INT) = 1"],
        ["k <> 'y' AND CAST(k AS INT) > 0"],
        ["k IS NOT NULL AND (k LIKE '1%' OR CAST(k AS INT) > 0)"],
    ],
)
@pytest.mark.parametrize("rows", [[], [5]])
def test_an_error_for_a_folder_is_raised_whatever_is_in_it(spark, tmp_path, conditions, rows):
    frame = table(spark, tmp_path / "t", {"1": [5], "x": rows})
    for condition in conditions:
        frame = frame.where(condition)
    kinds = set()
    for each in (frame, frame.transform(kquery_plan, when="always")):
        with pytest.raises(Exception) as raised:
            each.collect()
        kinds.add(error_class(raised.value))
    assert len(kinds) == 1 and kinds <= {"CAST_INVALID_INPUT", "DIVIDE_BY_ZERO"}


@pytest.mark.parametrize(
    "condition",
    [
        "k <> 'x' AND CAST(k AS INT) > 0",
        "k = 'x' OR CAST(k AS INT) > 1",
        "CASE WHEN k = 'x' THEN false ELSE CAST(k AS INT) > 1 END",
        "coalesce(k = 'x', CAST(k AS INT) > 1)",
        "try_cast(k AS INT) > 0",
        "k NOT IN ('x') AND k IN ('1', '12') AND 10 / CAST(k AS INT) > 1",
    ],
)
def test_an_error_that_no_folder_causes_is_none(spark, tmp_path, condition):
    frame = table(spark, tmp_path / "t", {"1": [5, 6], "x": [7], "12": [8]})
    check(frame.where(condition), coverage=1.0)


@pytest.mark.parametrize(
    "condition",
    [
        "k LIKE '%1'",
        "NOT startswith(k, 'b')",
        "substring(k, 2, 1) = '1'",
        "upper(k) IN ('A1', 'C1')",
        "coalesce(k, '') = 'a1'",
        "k <> 'b2'",
        "length(k) = 2 AND k RLIKE '1$'",
        "CASE WHEN k > 'b' THEN false ELSE true END",
    ],
)
def test_other_conditions_do_not_see_the_rows_of_folders_left_out(spark, tmp_path, condition):
    for name, text in (("a1", "1"), ("b2", "x")):
        (tmp_path / f"k={name}").mkdir()
        pq.write_table(pa.table({"s": [text]}), tmp_path / f"k={name}" / "0.parquet")
    frame = spark.read.parquet(str(tmp_path)).where(f"CAST(s AS INT) = 1 AND {condition}")
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    assert fast.collect() == frame.collect() != []


def test_a_table_of_very_many_folders_is_sparks_where_the_filter_can_fail(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("kquery_spark.logical.folders._MAX_FOLDERS", 2)
    frame = table(spark, tmp_path / "t", {"1": [5], "2": [6], "3": [7]})
    assert check(frame.where("k LIKE '%1'")).coverage == 1.0
    assert check(frame.where("CAST(k AS INT) > 1")).coverage < 1.0
