"""Frames of unusual shape: the answer equals that of Spark whatever part the engine runs; statements are in tests/sql."""


def test_case_sensitivity_follows_the_session(spark, tables, same):
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        frame = spark.sql("SELECT n_regionkey AS k, sum(n_nationkey) AS K FROM nation GROUP BY n_regionkey")
        same(frame)
        same(frame.groupBy("K").count())
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_no_columns(spark, tables):
    from kquery_spark import kquery_plan

    frame = spark.table("nation").select()
    fast = frame.transform(kquery_plan, when="always")
    assert fast.columns == []
    assert fast.count() == 25
    assert frame.groupBy().count().transform(kquery_plan, when="always").first()[0] == 25


def test_nested_columns_pass_through(spark, tables, same, tmp_path):
    path = str(tmp_path / "nested")
    spark.sql(
        """SELECT n_nationkey AS k, named_struct('a', n_name, 'b', array(n_regionkey, NULL)) AS s,
                  map(n_name, n_nationkey) AS m FROM nation"""
    ).write.parquet(path)
    frame = spark.read.parquet(path)
    grouped = frame.where("k > 3").groupBy("k").agg({"k": "count"})
    same(frame.join(grouped, "k"))
    same(grouped.join(spark.sql("SELECT n_nationkey AS k, map(n_name, 1) AS m FROM nation"), "k"))


def test_ansi_and_legacy_arithmetic(spark, tables, same):
    for ansi in ("true", "false"):
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            same("SELECT n_regionkey, sum(n_nationkey / nullif(n_regionkey, 0)) FROM nation GROUP BY 1")
        finally:
            spark.conf.unset("spark.sql.ansi.enabled")


def test_rows_without_nulls(spark, numbers, same):
    frame = spark.table(numbers).selectExpr(
        "id",
        "if(id % 3 = 0, NULL, i) AS i",
        "CASE WHEN id % 4 = 0 THEN double('NaN') WHEN id % 5 = 0 THEN NULL ELSE d END AS d",
        "if(id % 7 = 0, NULL, s) AS s",
    )
    for kept in (
        frame.dropna(),
        frame.dropna(how="all", subset=["i", "d"]),
        frame.dropna(thresh=3),
        frame.dropna(thresh=2, subset=["i", "d", "s"]),
    ):
        same(kept.groupBy((kept.id % 3).alias("k")).count())


def test_the_number_of_partitions_is_sparks_where_it_is_seen(spark, tables):
    import kquery_spark as kq
    from kquery_spark import kquery_plan

    frame = spark.table("nation").groupBy("n_regionkey").count().repartition(3)
    assert frame.transform(kquery_plan, when="always").rdd.getNumPartitions() == 3
    below = spark.table("nation").repartition(3).where("n_nationkey > 2").groupBy("n_regionkey").count()
    assert kq.explain(below).coverage == 1.0


def test_char_columns_are_padded(spark, same):
    import kquery_spark as kq

    spark.sql("CREATE TABLE char_columns (id INT, c CHAR(5), v VARCHAR(5), n CHAR(2)) USING parquet")
    try:
        spark.sql(
            "INSERT INTO char_columns VALUES (1, 'ab', 'ab', 'x'), (2, 'abcde', 'ab   ', 'xy'), (3, NULL, NULL, ''), (4, 'äö', 'äö', 'ß')"
        )
        for sql in (
            "SELECT c, v, n, length(c), count(*) FROM char_columns GROUP BY c, v, n",
            "SELECT count(*), max(id) FROM char_columns WHERE c = 'ab' AND v = 'ab'",
            "SELECT a.id, b.id FROM char_columns a JOIN char_columns b ON a.c = b.c AND a.n <> 'x' ORDER BY a.id, b.id",
        ):
            same(sql)
            assert kq.explain(spark.sql(sql)).coverage == 1.0
    finally:
        spark.sql("DROP TABLE char_columns")
