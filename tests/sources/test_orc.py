"""ORC files come out as Spark reads them, stripe by stripe."""

from __future__ import annotations

import pytest

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.sources.orc import orc_source
from tests.sources.compare import assert_same, read_all

ROW = """
SELECT id, CAST(id AS TINYINT) AS b, CAST(id AS SMALLINT) AS h, CAST(id AS INT) AS i, CAST(id AS FLOAT) / 3 AS f,
  id / 7 AS d, IF(id % 3 = 0, NULL, CONCAT('s', id % 5)) AS s, CAST(CAST(id AS STRING) AS BINARY) AS bin, id % 2 = 0 AS flag,
  CAST(id AS DECIMAL(12, 3)) / 8 AS dec, CAST(id AS DECIMAL(38, 10)) AS wide, DATE'2019-01-01' + CAST(id AS INT) AS day,
  TIMESTAMP'2019-03-30 12:34:56.789012' + MAKE_INTERVAL(0, 0, 0, CAST(id AS INT)) AS at,
  TIMESTAMP_NTZ'1500-03-30 12:34:56' AS wall, ARRAY(id, NULL) AS xs, NAMED_STRUCT('x', id, 'y', 'z') AS st, MAP('k', id) AS m
FROM RANGE(0, 100, 1, 2)
"""


def test_types(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.sql(ROW).write.orc(path)
    df = spark.read.orc(path)
    # the JVM of these tests runs in the machine's zone, which ORC timestamps depend on
    zone = spark._jvm.java.util.TimeZone.getDefault().getID()
    source = orc_source([path], zone=zone)
    assert_same(df, source)
    assert_same(df, source, ["s", "id"])
    assert source.row_count() == 100


def test_every_stripe_is_read_once(spark, tmp_path):
    path = str(tmp_path / "t")
    data = spark.range(0, 400_000, 1, 1).selectExpr("id", "uuid() AS u")
    data.write.option("orc.stripe.size", "100000").orc(path)
    source = orc_source([path])
    assert len(source.splits()) > 1
    assert sorted(read_all(source, ["id"]).column("id").to_pylist()) == list(range(400_000))
    counted = sum(b.num_rows for s in source.splits() for b in source.read(s, []))
    assert counted == source.row_count() == 400_000


def test_partitions_missing_columns_and_other_orders(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.range(3).selectExpr("id", "'a' AS s").write.orc(f"{path}/p=1")
    spark.range(2).selectExpr("'b' AS s", "id").write.orc(f"{path}/p=2")
    spark.range(2).selectExpr("id").write.orc(f"{path}/p=3")
    source = orc_source([path])
    assert_same(spark.read.schema("id bigint, s string, p int").orc(path), source)
    assert {source.ranges(s, "p").low for s in source.splits()} == {1, 2, 3}


def test_days_of_the_julian_calendar_are_refused(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.sql("SELECT DATE'1500-01-01' AS d, TIMESTAMP'1969-12-31 12:00:00.5' AS at, 1 AS x").write.orc(path)
    source = orc_source([path])
    for column in ("d", "at"):
        with pytest.raises(SourceError, match="not supported"):
            read_all(source, [column])
    assert read_all(source, ["x"]).num_rows == 1


def test_columns_that_differ_in_case_only_are_an_error(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.range(1).selectExpr("id AS A").write.orc(f"{path}/p=1")
    spark.range(1).selectExpr("id AS a").write.orc(f"{path}/p=2")
    with pytest.raises(SourceError, match="upper and lower case"):
        read_all(orc_source([path]))


def test_types_that_are_declined(spark, tmp_path):
    for i, sql in enumerate(
        ("ARRAY(DATE'2019-01-01')", "INTERVAL '1' DAY", "ARRAY(TIMESTAMP'2019-01-01 00:00:00')")
    ):
        path = str(tmp_path / f"t{i}")
        spark.sql(f"SELECT {sql} AS c").write.orc(path)
        with pytest.raises(Unsupported):
            orc_source([path])


def test_damaged_and_changed_files(spark, tmp_path):
    path = tmp_path / "t"
    spark.range(1000).coalesce(1).write.orc(str(path))
    [file] = path.glob("*.orc")
    source = orc_source([str(path)])
    splits = source.splits()
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(SourceError, match="has changed"):
        next(source.read(splits[0], ["id"]))
    with pytest.raises(SourceError, match="as ORC"):
        orc_source([str(path)])
