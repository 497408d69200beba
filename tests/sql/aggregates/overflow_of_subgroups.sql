-- Sums and averages of DECIMAL(38, s) in grouping sets outside ANSI mode: a subgroup that overflows is NULL, and the groups above it are not.
-- Config: spark.sql.ansi.enabled=false
-- Tables: overflowing_parts

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
