"""Queries of unusual shape: the answer is Spark's whatever part the engine runs."""

import pytest

SHAPES = {
    "empty result": "SELECT n_name, count(*) FROM nation WHERE n_nationkey > 1000 GROUP BY n_name",
    "empty global aggregate": "SELECT sum(n_nationkey), count(*), max(n_name) FROM nation WHERE n_nationkey > 1000",
    "empty join": "SELECT * FROM nation JOIN region ON n_regionkey = r_regionkey WHERE r_name = 'nowhere'",
    "count only": "SELECT count(*) FROM lineitem",
    "count with filter": "SELECT count(*) FROM lineitem WHERE l_discount > 0.05",
    "count of a join": "SELECT count(*) FROM orders JOIN customer ON o_custkey = c_custkey",
    "constant per row": "SELECT 1 FROM nation GROUP BY n_regionkey",
    "literal groups": "SELECT 'x' AS x, count(*) FROM nation GROUP BY 1",
    "self-join": """SELECT a.n_name, b.n_name FROM nation a JOIN nation b
                    ON a.n_regionkey = b.n_regionkey AND a.n_nationkey < b.n_nationkey""",
    "self-join of aggregates": """WITH t AS (SELECT n_regionkey k, count(*) c FROM nation GROUP BY 1)
                                  SELECT * FROM t a JOIN t b ON a.k = b.c""",
    "duplicate names": "SELECT n_name, n_name, sum(n_nationkey) AS n_name FROM nation GROUP BY n_name",
    "names that differ in case": "SELECT max(n_name) AS A, min(n_name) AS a FROM nation",
    "odd names": "SELECT count(*) AS `a.b`, max(n_name) AS ``, min(n_name) AS `x y` FROM nation",
    "cross join": "SELECT count(*), max(n_name || r_name) FROM nation CROSS JOIN region",
    "distinct": "SELECT DISTINCT l_shipmode, l_returnflag FROM lineitem",
    "union": "SELECT n_name FROM nation UNION ALL SELECT r_name FROM region",
    "sorted": "SELECT o_orderkey, o_totalprice FROM orders ORDER BY o_totalprice DESC, o_orderkey LIMIT 20",
    "limit zero": "SELECT n_name FROM nation ORDER BY n_name LIMIT 0",
    "limit and offset": "SELECT n_name FROM nation ORDER BY n_name LIMIT 5 OFFSET 3",
    "having": "SELECT l_suppkey, sum(l_quantity) q FROM lineitem GROUP BY 1 HAVING q > 1500",
    "scalar subquery": "SELECT count(*) FROM orders WHERE o_totalprice > (SELECT avg(o_totalprice) FROM orders)",
    "not in": "SELECT count(*) FROM customer WHERE c_custkey NOT IN (SELECT o_custkey FROM orders)",
    "exists": "SELECT count(*) FROM orders WHERE EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey)",
    "left join with nulls": """SELECT c_custkey, count(o_orderkey) FROM customer LEFT JOIN orders
                               ON c_custkey = o_custkey GROUP BY 1""",
    "full join": """SELECT count(*), count(a), count(b) FROM (SELECT n_nationkey a FROM nation) x
                    FULL JOIN (SELECT n_nationkey + 10 b FROM nation) y ON a = b""",
    "the same table many times": " UNION ALL ".join(["SELECT max(n_name) m FROM nation"] * 6),
    "no table": "SELECT 1 AS a, 'b' AS b",
    "values": "SELECT k, sum(v) FROM VALUES (1, 2), (1, NULL), (NULL, 3) AS t(k, v) GROUP BY k",
    "range": "SELECT id % 3 AS k, sum(id) FROM range(1000) GROUP BY 1",
    "window": "SELECT n_name, rank() OVER (PARTITION BY n_regionkey ORDER BY n_name) r FROM nation",
    "rollup": "SELECT n_regionkey, n_name, count(*) FROM nation GROUP BY ROLLUP (n_regionkey, n_name)",
    "lateral view": "SELECT c, count(*) FROM nation LATERAL VIEW explode(split(n_comment, ' ')) t AS c GROUP BY c",
    "intersect": "SELECT n_regionkey FROM nation INTERSECT SELECT r_regionkey FROM region",
    "unused columns of a star": "SELECT count(*) FROM (SELECT * FROM lineitem JOIN orders ON l_orderkey = o_orderkey)",
    "random": "SELECT count(*) FROM (SELECT rand(3) AS r FROM nation) WHERE r >= 0",
    "nondeterministic beside": "SELECT count(*), monotonically_increasing_id() >= 0 AS b FROM nation GROUP BY b",
}


@pytest.mark.parametrize("name", SHAPES)
def test_shape(tables, same, spark, name):
    from kquery_spark import verify

    report = verify(spark.sql(SHAPES[name]))
    assert report.ok, str(report)


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
