"""Tables for the session's tests, and the comparison nearly all of them end with."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import tpch
from kquery_spark import verify

pytest.register_assert_rewrite("tests.accelerate.python.python_functions")


@pytest.fixture(scope="session")
def rows(spark, tmp_path_factory):
    """A column of each type, NULLs, NaN and -0.0 (``python_functions.ROWS``) in three Parquet files."""
    from tests.accelerate.python.python_functions import ROWS

    path = str(tmp_path_factory.mktemp("functions") / "rows")
    spark.sql(ROWS).repartition(3).write.parquet(path)
    return spark.read.parquet(path)


@pytest.fixture(scope="session")
def nested(spark, rows, tmp_path_factory):
    """Arrays, maps, structs and day-time intervals, with NULLs at every level (``python_functions.NESTED_ROWS``)."""
    from tests.accelerate.python.python_functions import NESTED_ROWS

    path = str(tmp_path_factory.mktemp("functions") / "nested")
    rows.where("id < 120").createOrReplaceTempView("rows_to_nest")
    spark.sql(NESTED_ROWS.format(rows="rows_to_nest")).repartition(2).write.parquet(path)
    spark.catalog.dropTempView("rows_to_nest")
    return spark.read.parquet(path)


@pytest.fixture(scope="module")
def tables(spark, tpch_dir) -> Path:
    """TPC-H's eight tables as views of this session, which other tests drop again; gives the directory of the files."""
    tpch.register(spark, tpch_dir)
    return tpch_dir


@pytest.fixture
def same(spark) -> Callable:
    """``same(frame or SQL)``: the engine runs what it can, and the answer equals that of Spark; gives the report."""

    def check(query, accelerated=True):
        frame = spark.sql(query) if isinstance(query, str) else query
        report = verify(frame)
        assert report.ok, str(report)
        assert report.accelerated == accelerated, f"accelerated is {report.accelerated}"
        return report

    return check
