"""TPC-H data and queries; their answers are looked at in tests/accelerate/queries/test_tpch.py."""

import pytest

from benchmarks import tpch


@pytest.fixture(scope="module")
def tables(spark, tpch_dir):
    tpch.register(spark, tpch_dir)
    yield spark
    for table in tpch.TABLES:
        spark.catalog.dropTempView(table)


def test_there_are_eight_tables_of_scale_factor_one_hundredth(tables):
    assert tables.table("lineitem").count() == 60_175
    assert tables.table("orders").count() == 15_000
    assert tables.table("nation").count() == 25


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_each_query_says_that_it_is_derived(number):
    first = tpch.query(number).splitlines()[0]
    assert first.startswith(f"-- Derived from TPC-H query {number}, ")
    assert "not comparable to published TPC-H results" in first


def test_there_is_no_query_23():
    with pytest.raises(ValueError, match="1 to 22, not 23"):
        tpch.query(23)


def test_data_that_is_there_is_not_made_again(tpch_dir):
    before = (tpch_dir / "lineitem.parquet").stat().st_mtime_ns
    assert tpch.generate(tpch_dir, scale=0.01) == tpch_dir
    assert (tpch_dir / "lineitem.parquet").stat().st_mtime_ns == before


def test_without_the_generator_the_message_says_what_to_type(tmp_path, monkeypatch):
    monkeypatch.setattr(tpch.sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(tpch.shutil, "which", lambda name: None)
    with pytest.raises(tpch.GeneratorMissing, match="pip install tpchgen-cli"):
        tpch.generate(tmp_path / "out", scale=0.01)
