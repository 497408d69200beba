"""ORC files come out as Spark reads them, stripe by stripe."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import orc

import kquery_spark as kq
from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.logical.pruning import comparable
from kquery_spark.sources import orc_footer_pb2 as pb
from kquery_spark.sources.base import ColumnRange
from kquery_spark.sources.hybrid_calendar import gregorian_days
from kquery_spark.sources.lru_cache import LruCache
from kquery_spark.sources.orc import file as orc_file
from kquery_spark.sources.orc.footer import Tail, _metadata, orc_tail
from kquery_spark.sources.orc.source import orc_source
from kquery_spark.types import names as t
from kquery_spark.verify import verify
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


VALUES = """
SELECT id, CAST(id % 100 AS TINYINT) AS b, CAST(-id AS INT) AS i, CONCAT('é', id) AS s, IF(id < 90000, NULL, id) AS late,
  CAST(NULL AS INT) AS nothing, CAST(id AS DECIMAL(12, 3)) / 8 AS dec, CAST(-id AS DECIMAL(38, 10)) AS wide,
  DATE'1000-01-01' + CAST(id * 5 AS INT) AS day, id / 7 AS d, TIMESTAMP_NTZ'2019-03-30 12:34:56' AS wall, id % 2 = 0 AS flag
FROM RANGE(0, 200000, 1, 1)
"""


@pytest.fixture(scope="module")
def values(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("values") / "t")
    spark.sql(VALUES).write.option("orc.stripe.size", "100000").orc(path)
    return path


@pytest.mark.parametrize("writer", ["spark", "arrow"])
def test_what_stripes_are_said_to_hold_is_in_them(writer, spark, values, tmp_path):
    path = values
    if writer == "arrow":
        path = str(tmp_path / "t")
        rows = spark.sql(VALUES).drop("wall").toArrow()
        (tmp_path / "t").mkdir()
        orc.write_table(rows, f"{path}/t.orc", stripe_size=1 << 20)
    source = orc_source([path])
    splits = source.splits()
    assert len(splits) > 2
    known = set()
    for field in source.schema:
        for split in splits:
            (batch,) = source.read(split, [field.name])
            assert split.rows == batch.num_rows
            (column,) = batch.to_arrow().columns
            found = source.ranges(split, field.name)
            if found is None:
                continue
            assert found.nulls in (None, column.null_count)
            ends = pc.min_max(column.cast(pa.int32()) if field.type == t.DATE else column).as_py()
            low, high = (comparable(end, field.type) for end in (found.low, found.high))
            if low is not None:
                known.add(field.name)
                assert (low, high) == tuple(comparable(end, field.type) for end in ends.values())
    assert known == {"id", "b", "i", "s", "late", "dec", "wide", "day"}
    assert source.ranges(splits[0], "day").low is None  # of days before 1582


@pytest.mark.parametrize(
    "text",
    [
        "id BETWEEN 150000 AND 150004",
        "s = 'é77'",
        "late IS NOT NULL AND id < 95000",
        "late IS NULL",
        "nothing IS NOT NULL",
        "dec > 24999.5",
        "wide < -199998",
        "day = DATE'1000-01-06' OR day > DATE'3730-01-01'",
        "d > 28571.2",
        "i IN (-5, -199999)",
    ],
)
def test_rows_of_some_stripes(text, spark, values):
    assert verify(spark.read.orc(values).where(text)).ok


def test_stripes_that_statistics_rule_out_are_not_read(tmp_path, monkeypatch):
    path = str(tmp_path / "t.orc")
    orc.write_table(
        pa.table({"id": np.arange(400_000)}), path, stripe_size=1 << 20, compression="uncompressed"
    )
    ctx = kq.ExecutionContext()
    ctx.register_orc("t", path)
    read = []
    real = orc_file.OpenOrc.read
    monkeypatch.setattr(
        orc_file.OpenOrc,
        "read",
        lambda self, stripe, columns: read.append(stripe) or real(self, stripe, columns),
    )
    assert ctx.sql("SELECT id FROM t WHERE id = 399990").to_arrow().to_pylist() == [{"id": 399990}]
    assert read == [orc_source([path]).splits()[-1].pieces[0]]
    assert ctx.sql("SELECT id FROM t ORDER BY id DESC LIMIT 2").to_arrow()["id"].to_pylist() == [
        399999,
        399998,
    ]


def test_planning_opens_a_file_once(values, monkeypatch):
    opened = []
    real = orc_file.InputFile
    monkeypatch.setattr(orc_file, "InputFile", lambda file: opened.append(file.path) or real(file))
    monkeypatch.setattr(orc_file, "_CONTENTS", LruCache(1 << 20))
    source = orc_source([values])
    source.check_files(source.schema.names)
    assert all(source.ranges(split, name) for split in source.splits() for name in ("id", "s", "day"))
    assert opened == [file.path for file in source.files]


def test_statistics_that_may_be_wrong_are_not_used():
    statistics = pb.ColumnStatistics(
        values=3, has_null=True, integers=pb.IntegerStatistics(minimum=1, maximum=5)
    )
    footer = pb.Footer(
        types=[pb.Type(subtypes=[1], field_names=["a"]), pb.Type()], stripes=[pb.StripeInformation(rows=4)]
    )

    def ranges(column: pb.ColumnStatistics, stripes: int = 1) -> list[ColumnRange | None]:
        metadata = pb.Metadata(stripes=[pb.StripeStatistics(columns=[column, column])] * stripes)
        return Tail(0, footer, metadata, 0).ranges("a", t.INT)

    assert ranges(statistics) == [ColumnRange(1, 5, 1)]
    assert ranges(statistics, stripes=2) == []
    statistics.has_null = False  # there would be one
    assert ranges(statistics) == [None]
    statistics.values = 5  # more than rows
    assert ranges(statistics) == [None]
    assert ranges(pb.ColumnStatistics()) == [ColumnRange(None, None, None)]
    assert Tail(0, footer, pb.Metadata(), 0).ranges("a", t.INT) == []
    assert Tail(0, footer, pb.Metadata(), 0).ranges("b", t.INT) == []
    decimal = pb.ColumnStatistics(decimals=pb.StringStatistics(minimum=b"1.5", maximum=b"much"))
    metadata = pb.Metadata(stripes=[pb.StripeStatistics(columns=[decimal, decimal])])
    assert Tail(0, footer, metadata, 0).ranges("a", t.decimal(5, 2)) == [ColumnRange(None, None, None)]
    for types in ([], [pb.Type(field_names=["a"])], [pb.Type(subtypes=[9], field_names=["a"])]):
        contradicting = Tail(0, pb.Footer(types=types, stripes=footer.stripes), metadata, 0)
        assert contradicting.ranges("a", t.INT) == []
        assert contradicting.numbers(["a"]) is None
    post = pb.PostScript(footer_length=3, metadata_length=9, writer_version=0)
    assert not _metadata(b"any bytes", post).stripes  # by a writer before HIVE-8732


def test_partitions_missing_columns_and_other_orders(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.range(3).selectExpr("id", "'a' AS s").write.orc(f"{path}/p=1")
    spark.range(2).selectExpr("'b' AS s", "id").write.orc(f"{path}/p=2")
    spark.range(2).selectExpr("id").write.orc(f"{path}/p=3")
    source = orc_source([path])
    assert_same(spark.read.schema("id bigint, s string, p int").orc(path), source)
    assert {source.ranges(s, "p").low for s in source.splits()} == {1, 2, 3}


DAYS = "SELECT DATE'0001-01-01' - 2000 AS d UNION ALL SELECT NULL UNION ALL SELECT explode(sequence({}))"


@pytest.mark.parametrize("calendar", ["hybrid", "proleptic"])
@pytest.mark.parametrize("codec", ["zstd", "snappy", "zlib", "none"])
def test_days_of_the_julian_calendar(calendar: str, codec: str, spark, tmp_path):
    path = str(tmp_path / "t")
    frame = spark.sql(DAYS.format("DATE'0001-01-01', DATE'2050-12-31', INTERVAL 11 DAYS")).union(
        spark.sql("SELECT explode(sequence(DATE'1582-01-01', DATE'1582-12-31'))")
    )
    writer = frame.write.option("compression", codec)
    writer.option("orc.proleptic.gregorian", str(calendar == "proleptic").lower()).orc(path)
    assert_same(spark.read.orc(path), orc_source([path]))


def test_every_julian_day_is_the_date_that_spark_makes_of_it(spark, tmp_path):
    days = np.arange(-735_600, -141_300, dtype=np.int32)
    orc.write_table(pa.table({"d": pa.array(days).view(pa.date32())}), tmp_path / "t.orc")
    expected = spark.read.orc(str(tmp_path)).selectExpr("unix_date(d) AS n").toArrow().column("n").to_numpy()
    assert (gregorian_days(days.astype(np.int64)) == np.sort(expected)).all()


def test_early_days_of_a_footer_that_is_not_understood_are_an_error(spark, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    spark.sql("SELECT DATE'1500-01-01' AS d, 1 AS x").write.orc(path)
    monkeypatch.setattr(orc_file, "orc_tail", lambda file, size: None)
    with pytest.raises(SourceError, match="1582-10-15"):
        read_all(orc_source([path]), ["d"])
    assert read_all(orc_source([path]), ["x"]).num_rows == 1
    (tmp_path / "short").write_bytes(b"ORC")
    for name in (str(tmp_path / "short"), __file__):
        with pa.OSFile(name) as file, pytest.raises(ValueError, match="tail is damaged"):
            orc_tail(file, file.size())


@pytest.mark.parametrize(
    "time", ["1500-01-01 00:00:00", "1899-12-31 23:59:59", "1969-12-31 12:00:00.5", "9999-12-31 00:00:00"]
)
def test_times_that_readers_disagree_about_are_declined_by_the_footer(time: str, spark, tmp_path):
    path = str(tmp_path / "t")
    spark.sql(f"SELECT TIMESTAMP'{time}' AS at, 1 AS x UNION ALL SELECT NULL, 2").write.orc(path)
    source = orc_source([path])
    with pytest.raises(Unsupported, match="ORC timestamps before 1900"):
        source.check_files(["at", "x"])
    source.check_files(["x"])
    assert sorted(read_all(source, ["x"])["x"].to_pylist()) == [1, 2]
    found = kq.explain(spark.read.orc(path))
    assert not found.accelerated and "ORC timestamps before 1900" in str(found)


def test_columns_that_differ_in_case_only_are_an_error(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.range(1).selectExpr("id AS A").write.orc(f"{path}/p=1")
    spark.range(1).selectExpr("id AS a").write.orc(f"{path}/p=2")
    with pytest.raises(SourceError, match="only in case"):
        read_all(orc_source([path]))


def test_names_with_dots(spark, tmp_path):
    """pyarrow selects field ``b`` of column ``a`` for the name ``a.b``, if this field comes later in the file."""
    columns = [
        "3 AS `a.b`",
        "NAMED_STRUCT('b', 4) AS a",
        "ARRAY(NAMED_STRUCT('d', 5)) AS c",
        "6 AS `c.d`",
        "7 AS `e.f`",
    ]
    spark.range(1).selectExpr(*columns).write.orc(str(tmp_path / "t"))
    frame = spark.read.orc(str(tmp_path / "t"))
    for columns, coverage in ((["a", "c", "`e.f`"], 1), (["`a.b`"], 0), (["`c.d`", "a"], 0)):
        report = verify(frame.select(*columns))
        assert report.ok and report.coverage == coverage


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
