-- In ANSI mode, a subgroup of a grouping set whose sum overflows is an error, although the groups above it do not overflow.
-- Config: spark.sql.ansi.enabled=true
-- Tables: overflowing_parts

query expect_error(ARITHMETIC_OVERFLOW)
SELECT k, sum(d) AS s FROM t GROUP BY ROLLUP (k)

query expect_error(ARITHMETIC_OVERFLOW)
SELECT k, avg(d) AS a FROM t GROUP BY ROLLUP (k)

query expect_error(ARITHMETIC_OVERFLOW)
SELECT g, k, sum(d) AS s FROM t GROUP BY CUBE (g, k)

query expect_error(ARITHMETIC_OVERFLOW)
SELECT g, k, avg(d) AS a FROM t GROUP BY CUBE (g, k)
