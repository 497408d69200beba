"""Frames of unusual shape: the answer is Spark's whatever part the engine runs; statements are in tests/sql."""


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
