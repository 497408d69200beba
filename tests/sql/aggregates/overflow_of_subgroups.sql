-- Sums and averages of DECIMAL(38, s) in grouping sets outside ANSI mode: a subgroup that overflows is NULL, and the groups above it are not.
-- Config: spark.sql.ansi.enabled=false

statement files=1
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, 'a', CAST('6e37' AS DECIMAL(38, 0)), 9223372036854775807L, -0.0D, 1),
  (2, 'a', CAST('-6e37' AS DECIMAL(38, 0)), -9223372036854775807L, 0.0D, 3),
  (1, 'a', CAST('6e37' AS DECIMAL(38, 0)), 5L, -1.0D, 2),
  (2, 'b', CAST('-6e37' AS DECIMAL(38, 0)), -7L, 0.0D, 4),
  (3, 'b', CAST('1' AS DECIMAL(38, 0)), 1L, -0.0D, 5)
AS v(k, g, d, l, f, x)

query
SELECT k, grouping_id() AS i, sum(d) AS s, avg(d) AS a FROM t GROUP BY ROLLUP (k)

query
SELECT g, k, grouping_id() AS i, sum(d) AS s, avg(d) AS a, sum(l) AS l FROM t GROUP BY CUBE (g, k)

query
SELECT k, g, grouping_id() AS i, sum(d) FILTER (WHERE x > 1) AS s FROM t GROUP BY GROUPING SETS ((k, g), (k), ())

query
SELECT k, grouping_id() AS i, sum(d / 1e10) AS s, avg(d / 1e10) AS a FROM t GROUP BY ROLLUP (k)

query
SELECT k, grouping_id() AS i, sum(d) AS s, sum(DISTINCT d) AS u, avg(DISTINCT d) AS a FROM t GROUP BY ROLLUP (k)

query
SELECT k, grouping_id() AS i, sum(d) AS s FROM t GROUP BY ROLLUP (k) HAVING sum(d) IS NULL
