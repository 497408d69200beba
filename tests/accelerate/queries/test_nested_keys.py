"""Structs and arrays as keys in many tasks, signs of zeros in them, session windows; statements are in tests/sql."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from kquery_spark import kquery_plan
from tests.accelerate.checks import check, view_of_files

ROWS = """SELECT * FROM VALUES
 (1, named_struct('x', 1, 'f', 0.0D, 's', 'a'), array(1, 2), array(0.0D), TIMESTAMP'2021-03-28 00:59:59.999999'),
 (2, named_struct('x', 1, 'f', -0.0D, 's', 'a'), array(1, 2, NULL), array(-0.0D), TIMESTAMP'2021-03-28 01:00:00'),
 (3, named_struct('x', 1, 'f', double('NaN'), 's', 'a'), array(), array(double('NaN'), NULL), TIMESTAMP'1960-01-01 00:00:01'),
 (4, named_struct('x', NULL, 'f', NULL, 's', NULL), array(NULL), array(), TIMESTAMP'2021-03-28 01:04:00'),
 (5, NULL, NULL, NULL, NULL),
 (6, named_struct('x', NULL, 'f', NULL, 's', NULL), array(NULL), array(double('-infinity'), 1D), TIMESTAMP'2021-03-28 01:05:00'),
 (7, named_struct('x', -5, 'f', 1.5D, 's', ''), array(-7), array(double('NaN'), NULL), TIMESTAMP'0001-01-03 00:00:00'),
 (8, named_struct('x', -5, 'f', 1.5D, 's', 'a\\0'), array(-7, 3), array(1D), TIMESTAMP'2021-03-28 01:12:00'),
 (9, named_struct('x', -5, 'f', 1.5D, 's', 'a\\0b'), array(2147483647), array(-1D), TIMESTAMP'2021-03-28 01:12:00')
 AS t(k, st, a, fa, ts)"""


@pytest.fixture(scope="module")
def rows(spark, tmp_path_factory):
    with view_of_files(spark, "nk", ROWS, tmp_path_factory.mktemp("rows")):
        yield


def test_many_rows_in_many_tasks(spark, rows):
    frame = spark.range(0, 3000, 1, 3).selectExpr(
        "named_struct('a', id % 7, 'b', array(string(id % 5), NULL, 'x')) st", "id"
    )
    frame.write.mode("overwrite").saveAsTable("nested_many")
    try:
        many = spark.table("nested_many")
        check(many.groupBy("st").agg(F.sum("id"), F.max("st")), coverage=1.0)
        check(
            many.join(many.groupBy("st").agg(F.min("id").alias("m")), "st").groupBy("m").count(), coverage=1.0
        )
    finally:
        spark.sql("DROP TABLE nested_many")


def test_signs_of_zeros_in_keys(spark, rows):
    """Equal keys are shown as one form, which equality of floats does not see."""
    frame = spark.sql("SELECT DISTINCT fa, st FROM nk WHERE k IN (1, 2)")
    fast = frame.transform(kquery_plan, when="always")
    assert sorted(map(str, fast.collect())) == sorted(map(str, frame.collect()))
