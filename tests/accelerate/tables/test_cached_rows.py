"""Rows in Spark's cache: the engine reads the files that they came from while these are what they were."""

import os
import shutil
import warnings
from datetime import date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import StorageLevel
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark.accelerate.planning.pipeline import plan_frame
from tests.accelerate.checks import check
from tests.conftest import settings

COLUMNS = (
    *("id", "id % 5 AS k", "CAST(id % 7 AS STRING) AS s", "timestamp_seconds(id * 4000) AS t"),
    *("date_add(DATE '2020-01-01', CAST(id AS INT)) AS d", "CAST(id AS DECIMAL(12, 2)) AS x"),
    *("named_struct('a', id, 'b', array(id)) AS n", "CAST(id % 3 AS INT) AS p"),
)
UNFILLED = "a cache that is not completely filled is not supported"
COMPUTED = "cached rows other than plain columns of files are not supported"


@pytest.fixture
def files(spark, tmp_path):
    """A directory of Parquet files with a directory for each p."""
    path = str(tmp_path / "files")
    spark.range(300).selectExpr(*COLUMNS).repartition(2).write.partitionBy("p").parquet(path)
    return path


@pytest.fixture
def cached(spark):
    """Caches DataFrames, fills their caches, and empties them after the test."""
    frames = []

    def cache(frame, fill=True, level=StorageLevel.MEMORY_AND_DISK):
        frames.append(frame.persist(level))
        if fill:
            frame.write.format("noop").mode("overwrite").save()
        return frame

    yield cache
    for frame in frames:
        frame.unpersist(blocking=True)


def grouped(frame):
    aggregates = [F.count("*"), *(F.max(name) for name in frame.columns if name not in ("k", "n"))]
    return frame.groupBy("k").agg(*aggregates)


def reasons(frame):
    return [reason for _, reason in kq.explain(frame).reasons]


def assert_left_to_spark(frame, reason):
    assert reasons(frame) == [reason]
    check(frame)


def a_file(path):
    return next(
        os.path.join(directory, name)
        for directory, _, names in os.walk(path)
        for name in sorted(names)
        if name.endswith(".parquet")
    )


def test_a_full_cache_is_read_from_its_files(spark, files, cached):
    frame = cached(spark.read.parquet(files))
    query = grouped(frame)
    assert "InMemoryRelation" in str(kq.explain(query))
    assert "rows that Spark caches" in str(kq.explain(query))
    check(query, coverage=1.0)
    check(frame.filter("p = 1 AND id > 20").groupBy("s").agg(F.sum("n.a"), F.max("n.b")), coverage=1.0)
    check(frame.select("k", "d").distinct(), coverage=1.0)


@pytest.mark.parametrize("level", ["MEMORY_ONLY", "DISK_ONLY", "MEMORY_AND_DISK_DESER"])
def test_storage_levels(spark, files, cached, level):
    frame = cached(spark.read.parquet(files), level=getattr(StorageLevel, level))
    check(grouped(frame), coverage=1.0)


def test_spark_fills_the_cache(spark, files, cached):
    frame = cached(spark.read.parquet(files), fill=False)
    assert_left_to_spark(grouped(frame), UNFILLED)  # which fills it
    check(grouped(frame), coverage=1.0)


def test_a_cache_that_is_filled_in_part(spark, files, cached):
    frame = cached(spark.read.parquet(files), fill=False)
    # AQE of some releases fills all of it at once
    with settings(spark, {"spark.sql.adaptive.enabled": "false"}):
        frame.take(1)
        assert reasons(grouped(frame)) == [UNFILLED]
    check(grouped(frame))


def test_some_columns_under_other_names(spark, files, cached):
    frame = spark.read.parquet(files)
    swapped = cached(frame.select(F.col("id").alias("k"), F.col("k").alias("id"), "p", F.col("s").alias("t")))
    check(grouped(swapped), coverage=1.0)
    renamed = cached(frame.drop("n").withColumnRenamed("x", "y").toDF(*"abcdefg").withColumnRenamed("b", "k"))
    check(grouped(renamed), coverage=1.0)
    twice = cached(frame.select("k", "id", F.col("id").alias("again"), "id"))
    check(twice.groupBy("k").agg(F.max("again")), coverage=1.0)
    check(twice.toDF("k", "a", "b", "c").groupBy("k").agg(F.max("a"), F.max("b"), F.max("c")), coverage=1.0)


def test_partitions_that_the_cache_leaves_out(spark, files, cached):
    frame = cached(spark.read.parquet(files).filter("p IN (0, 2)").select("k", "p", "id"))
    check(grouped(frame), coverage=1.0)
    assert {row.p for row in frame.transform(kq.kquery_plan).groupBy("p").count().collect()} == {0, 2}


def test_several_times_in_a_query(spark, files, cached):
    frame = spark.read.parquet(files)
    narrow = frame.select("k", "s")
    other = cached(frame.select("k", "p", "id"))
    check(other.join(other.groupBy("k").agg(F.max("id").alias("id")), ["k", "id"]).groupBy("p").count(), 1.0)
    check(other.union(other).groupBy("k").agg(F.sum("id")), coverage=1.0)
    both = other.join(narrow, "k")  # of the cache, and of the files
    check(both.groupBy("s").agg(F.sum("id")), coverage=1.0)


COMPUTATIONS = {
    "filter": lambda frame: frame.filter("id > 7"),
    "expression": lambda frame: frame.withColumn("id", F.col("id") + 1),
    "field": lambda frame: frame.select("k", "n.a"),
    "file name": lambda frame: frame.select("k", "_metadata.file_name"),
    "input file": lambda frame: frame.select("k", F.input_file_name().alias("file")),
    "row index": lambda frame: frame.select("k", "_metadata.row_index"),
    "shuffle": lambda frame: frame.repartition(3),
    "order": lambda frame: frame.orderBy("id"),
    "limit": lambda frame: frame.limit(50),
    "sample": lambda frame: frame.sample(0.5, seed=1),
    "union": lambda frame: frame.union(frame),
    "aggregate": lambda frame: frame.groupBy("k").agg(F.max("id").alias("id")),
    "subquery": lambda frame: frame.filter("p = (SELECT max(id) % 3 FROM range(9))"),
}


@pytest.mark.parametrize("computation", COMPUTATIONS)
def test_computed_rows_stay_with_spark(spark, files, cached, computation):
    frame = cached(COMPUTATIONS[computation](spark.read.parquet(files)))
    assert_left_to_spark(grouped(frame.select("*")), COMPUTED)


PLACES = (
    "input_file_name()",
    "input_file_block_start()",
    "spark_partition_id()",
    "monotonically_increasing_id()",
)


@pytest.mark.parametrize("place", PLACES)
def test_where_rows_of_a_cache_are(spark, files, cached, place):
    """A cache has no files, and its own partitions."""
    frame = cached(spark.read.parquet(files))
    query = frame.select("id", F.expr(place).alias("place")).groupBy("place").agg(F.max("id"))
    assert check(query).coverage < 1


def test_a_file_that_was_written_again(spark, files, cached):
    frame = cached(spark.read.parquet(files))
    expected = sorted(map(str, grouped(frame).collect()))
    path = a_file(files)
    pq.write_table(pq.read_table(path).slice(1), path)
    query = grouped(frame)
    assert reasons(query) == [f"cached rows are not supported if a file has changed since: {path}"]
    assert sorted(map(str, query.transform(kq.kquery_plan, when="always").collect())) == expected


def test_the_directory_that_is_gone(spark, files, cached):
    frame = cached(spark.read.parquet(files))
    expected = sorted(map(str, grouped(frame).collect()))
    shutil.rmtree(files)
    query = grouped(frame)
    assert "has changed since" in reasons(query)[0]
    assert sorted(map(str, query.transform(kq.kquery_plan, when="always").collect())) == expected


def test_files_that_change_after_planning(spark, files, cached):
    """Spark's cache has the rows; the engine's tasks notice that the files have others."""
    frame = cached(spark.read.parquet(files))
    query = grouped(frame)
    expected = sorted(map(str, query.collect()))
    fast = query.transform(kq.kquery_plan, when="always")
    shutil.rmtree(files)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kq.FallbackWarning)
        assert sorted(map(str, fast.collect())) == expected


def test_files_that_came_later(spark, files, cached):
    frame = cached(spark.read.parquet(files))
    pinned = grouped(frame)
    assert sum(row["count(1)"] for row in pinned.collect()) == 300
    later = spark.range(5).selectExpr(*COLUMNS)
    later.write.partitionBy("p").mode("append").parquet(files)  # empties the cache
    for query in (pinned, grouped(frame), grouped(spark.read.parquet(files))):
        check(query)
        query.collect()
        check(query)
    spark.catalog.refreshByPath(files)
    for query in (pinned, grouped(frame), grouped(spark.read.parquet(files))):
        check(query)


def test_another_program_adds_files(spark, files, cached):
    frame = cached(spark.read.parquet(files))
    shutil.copy(a_file(files), os.path.join(files, "p=1", "part-9.parquet"))
    check(grouped(frame), coverage=1.0)
    assert sum(row["count(1)"] for row in grouped(frame).transform(kq.kquery_plan).collect()) == 300


def test_tables_of_the_catalog(spark):
    spark.range(200).selectExpr("id", "id % 5 AS k", "id % 3 AS p").write.partitionBy("p").saveAsTable(
        "cached_rows"
    )
    try:
        spark.sql("CACHE TABLE cached_rows")
        query = "SELECT k, p, count(*), max(id) FROM cached_rows GROUP BY k, p"
        check(spark.sql(query), coverage=1.0)
        check(spark.sql("SELECT k, sum(id) FROM cached_rows WHERE p = 1 GROUP BY k"), coverage=1.0)
        spark.sql("INSERT INTO cached_rows VALUES (1000, 1, 1), (1001, 1, 9)")
        assert spark.sql(query).collect()  # fills the cache again
        check(spark.sql(query), coverage=1.0)
        spark.sql("UNCACHE TABLE cached_rows")
        check(spark.sql(query), coverage=1.0)
        assert "rows that Spark caches" not in str(kq.explain(spark.sql(query)))
        spark.sql("CACHE TABLE some_rows AS SELECT id, k FROM cached_rows")
        check(spark.sql("SELECT k, sum(id) FROM some_rows GROUP BY k"), coverage=1.0)
    finally:
        spark.sql("DROP TABLE cached_rows")
        spark.catalog.clearCache()
        spark.catalog.dropTempView("some_rows")


def test_files_of_other_formats(spark, files, tmp_path, cached):
    path = str(tmp_path / "text")
    spark.read.parquet(files).select("id", "k").write.csv(path)
    frame = cached(spark.read.schema("id BIGINT, k BIGINT").csv(path))
    assert_left_to_spark(grouped(frame), "cached rows of csv files are not supported")


def foreign_file(path, int96):
    """A file of no Spark: of old dates in an unknown calendar, and times that INT96 has no zone for."""
    table = pa.table(
        {
            "k": pa.array([1, 2, 3]),
            "d": pa.array([date(1200, 1, 1), date(2020, 1, 1), None]),
            "t": pa.array([datetime(2020, 1, 1, 12), datetime(1999, 1, 1), None], pa.timestamp("us", "UTC")),
        }
    )
    pq.write_table(table, path, use_deprecated_int96_timestamps=int96)
    return str(path)


def test_settings_of_when_the_cache_was_filled(spark, tmp_path, cached):
    """Old dates of files that do not name their calendar: it is not known which one Spark used."""
    path = foreign_file(tmp_path / "old.parquet", int96=False)
    with settings(spark, {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}):
        frame = cached(spark.read.parquet(path))
    with settings(spark, {"spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED"}):
        query = frame.groupBy("k").agg(F.max("d"))
        (reason,) = reasons(query)
        assert "may have dates before 1582" in reason
        assert date(1200, 1, 1) not in {row[1] for row in query.collect()}
        check(query)
        check(frame.groupBy("k").agg(F.max("t")), coverage=1.0)


def test_files_that_lack_fields_of_a_struct(spark, tmp_path, cached):
    """Such a struct is NULL before Spark 4.1, and later by a setting."""
    path = str(tmp_path / "structs")
    spark.sql("SELECT 1L AS k, named_struct('a', 1) AS n").write.parquet(path)
    spark.sql("SELECT 2L AS k, named_struct('b', 2) AS n").write.mode("append").parquet(path)
    frame = cached(spark.read.schema("k BIGINT, n STRUCT<a: INT, b: INT>").parquet(path))
    query = frame.groupBy("k").agg(F.max("n.b"))
    assert "reads a struct as NULL if a file has none of the fields" in reasons(query)[0]
    check(query)
    check(frame.groupBy("k").count(), coverage=1.0)


TOKYO = {"spark.sql.session.timeZone": "Asia/Tokyo"}
CONVERSION = "spark.sql.parquet.int96TimestampConversion"


def test_times_without_a_zone(spark, tmp_path, cached):
    path = foreign_file(tmp_path / "times.parquet", int96=True)
    with settings(spark, {CONVERSION: "true", **TOKYO}):
        moved = cached(spark.read.parquet(path).select("k", "t"))
    query = moved.groupBy("k").agg(F.max("t"))
    assert "INT96" in reasons(query)[0]
    check(query)


def test_times_that_spark_wrote_are_never_converted(spark, files, tmp_path):
    foreign = foreign_file(tmp_path / "times.parquet", int96=True)
    with settings(spark, {CONVERSION: "true", **TOKYO}):
        check(spark.read.parquet(files).groupBy("k").agg(F.max("t")), coverage=1.0)
        assert "INT96" in reasons(spark.read.parquet(foreign).groupBy("k").agg(F.max("t")))[0]


def test_where_little_is_done_with_numbers_of_a_cache(spark, tmp_path, cached):
    """Spark adds up numbers that it has in memory as fast as the engine reads them."""
    path = str(tmp_path / "numbers")
    numbers = spark.range(200_000).selectExpr("id", "id % 9 AS k", "rand(1) AS x")
    numbers.write.parquet(path)
    frame = cached(spark.read.parquet(path))
    little, more = frame.groupBy("k").agg(F.sum("x")), frame.groupBy("id").agg(F.sum("x"))
    for query in (little, more, frame.groupBy("k").count()):
        check(query, coverage=1.0)
    sentence = "Spark's cache holds the decoded numbers, and the query does little with them"
    assert sentence in str(kq.explain(little))
    assert sentence not in str(kq.explain(more))
    assert sentence not in str(kq.explain(frame.groupBy("k").count()))
    assert sentence not in str(kq.explain(little.join(frame, "k").groupBy("k").count()))
    frame.unpersist(blocking=True)
    assert sentence not in str(kq.explain(spark.read.parquet(path).groupBy("k").agg(F.sum("x"))))


def test_nan_in_a_cache(spark, tmp_path, cached):
    """Spark's statistics of a batch leave NaN out; it finds the rows where it does not look at them."""
    path = str(tmp_path / "nan")
    spark.sql("SELECT * FROM VALUES (1, 1.0D), (2, double('NaN')), (3, NULL) AS t(k, x)").write.parquet(path)
    frame = cached(spark.read.parquet(path))
    with settings(spark, {"spark.sql.inMemoryColumnarStorage.partitionPruning": "false"}):
        for condition in ("x > 5", "x = double('NaN')", "NOT x <= 1", "x IS NULL"):
            check(frame.filter(condition).groupBy("k").count(), coverage=1.0)


def test_enabled_sessions_leave_the_cache_full(spark, files, cached):
    frame = cached(spark.read.parquet(files))
    kq.enable(spark, when="always")
    try:
        assert grouped(frame).count() == 5
        assert plan_frame(grouped(frame)).whole
        assert frame.storageLevel.useMemory
    finally:
        kq.disable(spark)
