-- In ANSI mode, a subgroup of a grouping set whose sum overflows is an error, although the groups above it do not overflow.
-- Config: spark.sql.ansi.enabled=true

statement files=1
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, 'a', CAST('6e37' AS DECIMAL(38, 0)), 9223372036854775807L, -0.0D, 1),
  (2, 'a', CAST('-6e37' AS DECIMAL(38, 0)), -9223372036854775807L, 0.0D, 3),
  (1, 'a', CAST('6e37' AS DECIMAL(38, 0)), 5L, -1.0D, 2),
  (2, 'b', CAST('-6e37' AS DECIMAL(38, 0)), -7L, 0.0D, 4),
  (3, 'b', CAST('1' AS DECIMAL(38, 0)), 1L, -0.0D, 5)
AS v(k, g, d, l, f, x)

query expect_error(ARITHMETIC_OVERFLOW)
SELECT k, sum(d) AS s FROM t GROUP BY ROLLUP (k)

query expect_error(ARITHMETIC_OVERFLOW)
SELECT k, avg(d) AS a FROM t GROUP BY ROLLUP (k)

query expect_error(ARITHMETIC_OVERFLOW)
SELECT g, k, sum(d) AS s FROM t GROUP BY CUBE (g, k)

query expect_error(ARITHMETIC_OVERFLOW)
SELECT g, k, avg(d) AS a FROM t GROUP BY CUBE (g, k)
